#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_info as a program: options, exit statuses, JSON that parses. With or without devices;
# what it finds is tested by test/unit/test_info and in the lab.
#
#   test_ha_info.sh     (in the build folder)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=./tools/ha_info
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect STATUSES ARGS...: the exit status is one of them; output in $work/out and err
expect() {
    local statuses=$1 status=0
    shift
    "$program" "$@" >"$work/out" 2>"$work/err" || status=$?
    if [[ " $statuses " != *" $status "* ]]; then
        echo "ha_info $*: status $status instead of $statuses: $(head -n 2 "$work/out" "$work/err")"
        failed=1
    fi
}

# says WHERE TEXT: the last output has it
says() {
    if ! grep -qF -- "$2" "$work/$1"; then
        echo "'$2' is not in: $(head -n 5 "$work/$1")"
        failed=1
    fi
}

valid_json() {
    if ! python3 -c 'import json, sys; json.load(sys.stdin)' <"$work/out"; then
        echo "no JSON: $(head -c 300 "$work/out")"
        failed=1
    fi
}

expect 0 --help
says out "usage: ha_info"
expect 2 --nonsense
says err "usage: ha_info"
expect 2 word
says err "'word'"
expect "0 1"
says out "locked memory limit"
expect "0 1" --check
expect "0 1" --pairs
expect "0 1" --json
valid_json
expect 0 --matrix
valid_json
expect "0 1" --pairs
[[ -s $work/out ]] || says err "this host: no rails"
if [[ -s $work/out ]]; then # there are rails: what is exported can be imported
    expect 0 --matrix
    says out '"cpu:0":[['
    cp "$work/out" "$work/matrix.json"
    expect "0 2" --import "$work/matrix.json" # 2: built without jansson
fi
expect 2 --import "$work/none"
grep -q "built without jansson" "$work/err" || says err "$work/none: No such file or directory"
echo '{"cpu:0":[["no_such:1"],[]],"cpu:1":7}' >"$work/matrix.json"
expect "1 2" --import "$work/matrix.json"
if ! grep -q "built without jansson" "$work/err"; then
    says out "WRONG   cpu:0: no rail of this host is called no_such:1"
    says out "WRONG   cpu:1: is not [[preferred...],[available...]]"
    echo '{"cpu:0":' >"$work/matrix.json"
    expect 2 --import "$work/matrix.json"
    says err "unexpected token"
fi

# the transport's own knobs and checks
UCX_HA_RC_TIMEOUT=77 expect 2 --check
says out "UCX_HA_RC_TIMEOUT=77"
UCX_HA_RC_ZONES=nonsense expect 2 --check
says out "UCX_HA_RC_ZONES='nonsense'"
UCX_HA_RC_RAILS=no_such_device:1 expect 2 --check
says err "'no_such_device:1' is no rail of this host"
UCX_HA_RC_HEARTBEAT=0 expect 1 --check
says out "[heartbeat-off]"
(
    ulimit -l 64
    expect 1 --check
    says out "[memlock]"
    exit $failed
) || failed=1

# what counts, for prologs and for Nagios
UCX_HA_RC_HEARTBEAT=0 expect "0 1" --check --fail-on=problem
says out "[heartbeat-off]"
UCX_HA_RC_HEARTBEAT=0 expect "0 1" --check --ignore=heartbeat-off,memlock
! grep -qE 'heartbeat-off|memlock' "$work/out" || says out "nothing of what is ignored"
UCX_HA_RC_HEARTBEAT=0 expect 0 --check --fail-on=warning \
    --ignore="$(UCX_HA_RC_HEARTBEAT=0 "$program" --check | grep -oE '\[[a-z-]+\]$' | tr -d '[]' | sort -u | paste -sd,)"
UCX_HA_RC_HEARTBEAT=0 expect "1 2" --nagios
grep -qE '^HA_RC (WARNING|CRITICAL) - [0-9]+ problems, [0-9]+ warnings, .*host heartbeat-off' <(head -n 1 "$work/out") ||
    says out "a line for Nagios"
(
    ulimit -l 64
    expect 2 --nagios --fail-on=problem
    says out "HA_RC CRITICAL - "
    exit $failed
) || failed=1
UCX_HA_RC_TIMEOUT=77 expect 3 --nagios
expect 2 --fail-on=everything
says err "--fail-on=everything: use problem or warning"
expect 2 --ignore=shared-fat
says err "--ignore=shared-fat: no such finding; there are no-rail"

expect 2 --hwloc "$work/none"
expect 2 --hwloc "$here/test_ha_info.sh"
if ! grep -q "built without hwloc" "$work/err"; then
    python3 "$here/../test/topo/shapes.py" "$work" >"$work/names"
    expect 0 --hwloc "$work/single_dual_port_card.xml"
    says out "SHARED FATE"
    sed 's/osdev_type="3"/osdev_type="2"/' "$work/single_dual_port_card.xml" >"$work/bare.xml"
    expect 0 --hwloc "$work/bare.xml"
    says err "bare.xml: no rails"
fi

if [[ -w /dev/full ]]; then
    status=0
    "$program" --json >/dev/full 2>"$work/err" || status=$?
    [[ $status == 2 ]] || { echo "a full disk is not noticed"; failed=1; }
fi
((failed == 0)) && echo "ha_info: all is well"
exit $failed
