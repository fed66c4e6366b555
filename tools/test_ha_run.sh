#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_run: what a program gets, and what --check says of hosts with and without an RDMA port (the software card).
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$PWD/.libs/libuct_ha.so.0 card=$PWD/.libs/libsoftcard.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
unset UCX_TLS LD_PRELOAD UCX_LOG_LEVEL
export SOFTCARD_DIR=$work/fabric

# expect NAME STATUS TEXT COMMAND...
expect() {
    local name=$1 status=$2 text=$3 output got=0
    shift 3
    output=$("$@" 2>&1) || got=$?
    if [[ $got == "$status" && $output == *"$text"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $name: exit status $got, not $status, or no '$text':"
        sed 's/^/     | /' <<<"$output"
    fi
}

run=(env HA_RUN_LIBRARY="$library" "$here/ha_run")
# shellcheck disable=SC2016 # for the program's shell
expect 'preloads and names transports' 0 "$library ha_rc,sm,self" "${run[@]}" sh -c 'echo $LD_PRELOAD $UCX_TLS'
# shellcheck disable=SC2016
expect 'what is set stays' 0 ":$card tcp" env LD_PRELOAD="$card" UCX_TLS=tcp "${run[@]}" sh -c 'echo $LD_PRELOAD $UCX_TLS'
expect "the program's exit status" 7 '' "${run[@]}" sh -c 'exit 7'
expect 'a program of UCX has the transport' 0 'Transport: ha_rc' env LD_PRELOAD="$card" "${run[@]}" ucx_info -d
expect 'check: all is well' 0 'ports for ha_rc: 2' env LD_PRELOAD="$card" "${run[@]}" --check
expect 'check: no port' 1 'finds no RDMA port' env UCX_HA_RC_RAILS=none:1 LD_PRELOAD="$card" "${run[@]}" --check
expect 'check: left out' 1 'UCX_TLS=tcp leaves ha_rc out' env UCX_TLS=tcp LD_PRELOAD="$card" "${run[@]}" --check
expect 'check: linked with UCX' 0 'is linked with UCX' env LD_PRELOAD="$card" "${run[@]}" --check ucx_info
expect 'check: no such program' 1 'there is no program nowhere' env LD_PRELOAD="$card" "${run[@]}" --check nowhere
expect 'no library' 1 'HA_RUN_LIBRARY' env HA_RUN_LIBRARY="$work/none" "$here/ha_run" true
expect 'unknown option' 2 "unknown option '--frob'" "${run[@]}" --frob
mkdir -p "$work/bin" "$work/lib"
cp "$here/ha_run" "$work/bin" && ln -s "$library" "$work/lib/libuct_ha.so.0"
# shellcheck disable=SC2016
expect 'finds the library beside it' 0 "$work/lib/libuct_ha.so.0" "$work/bin/ha_run" sh -c 'echo $LD_PRELOAD'
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
