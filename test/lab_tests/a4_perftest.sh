#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_rc as a transport among others: ucx_info shows it where there are rails and is
# silent where there are none; ucx_perftest runs over UCX_TLS=ha_rc,self alone.
#
#   a4_perftest.sh [--shape one|two]     (default two)
set -Eeuo pipefail

shape=two
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    *) echo "a4_perftest.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# This machine, outside the lab.
without_device() {
    local name="ucx_info without an RDMA device" out="$logs/no-device.log"
    if [[ -n $(ls /sys/class/infiniband 2>/dev/null) ]]; then
        skip "$name" "this machine has some"
        return
    fi
    if ! LD_PRELOAD=$HA_LIB ucx_info -d >"$out" 2>&1; then
        not_ok "$name" "$(tail -n 1 "$out")"
    elif grep -q 'ha_rc\|ucx-ha\|ERROR\|WARN' "$out"; then
        not_ok "$name" "$(grep -m 1 'ha_rc\|ucx-ha\|ERROR\|WARN' "$out")"
    elif ! grep -q 'Component: self' "$out"; then
        not_ok "$name" "it shows nothing at all"
    else
        ok "$name" "absent, no message"
    fi
}

in_lab "$shape" "${arguments[@]}"

with_device() {
    local host name out
    for host in h1 h2; do
        name="ucx_info -d on $host"
        out=$logs/ucx_info.$host.log
        "$LAB" exec "$host" env LD_PRELOAD="$HA_LIB" ucx_info -d -t ha_rc >"$out" 2>&1 || true
        if (($(grep -c 'Transport: ha_rc' "$out") != 2)); then
            not_ok "$name" "not two devices: $(tail -n 1 "$out")"
        elif grep -q 'ERROR\|WARN' "$out"; then
            not_ok "$name" "$(grep -m 1 'ERROR\|WARN' "$out")"
        else
            ok "$name" "$(sed -n 's/.*Device: //p' "$out" | paste -sd' ')"
        fi
    done
}

# perftest NAME ARGS...: server on h2, client on h1, nothing of UCX set but the transports
perftest() {
    local name=$1 log status=0
    shift
    log=$logs/perftest-${name//[^a-z0-9_]/-}.log
    port=$((port + 1))
    # shellcheck disable=SC2016
    "$LAB" exec --timeout 60 both bash -c '
        library=$0 port=$1
        shift
        export LD_PRELOAD=$library UCX_TLS=ha_rc,self
        if [[ $LAB_HOST == h2 ]]; then
            timeout 50 ucx_perftest -p "$port" "$@" >/dev/null
            exit
        fi
        for try in 1 2 3 4 5 6; do # the server may not listen yet
            sleep 0.5
            timeout 50 ucx_perftest h2 -p "$port" "$@" >"/tmp/perftest.$port" 2>&1 && break
            grep -q "Connection refused" "/tmp/perftest.$port" || break
        done
        cat "/tmp/perftest.$port"
        grep -q "^Final:" "/tmp/perftest.$port"
        ' "$HA_LIB" "$port" "$@" >"$log" 2>&1 || status=$?
    if ((status != 0)); then
        not_ok "perftest $name" "status $status: $(grep -hE 'ERROR|error|failed' "$log" | head -n 2 | cut -c1-200 | paste -sd' ')"
    elif grep -q 'UCX *\(ERROR\|WARN\)' "$log"; then
        not_ok "perftest $name" "$(grep -m 1 'UCX *\(ERROR\|WARN\)' "$log" | cut -c1-200)"
    else
        ok "perftest $name" "$(sed -n 's/^.*Final: *//p' "$log" | awk 'NF > 7 { print $3 " us, " $6 " MB/s" }' | tail -n 1)"
    fi
}

perftests() {
    perftest "tag_lat$1" -t tag_lat -s 8 -n 300 -w 20
    perftest "tag_bw$1" -t tag_bw -s 65536 -n 200 -w 10
    perftest "ucp_put_lat$1" -t ucp_put_lat -s 8 -n 300 -w 20
    perftest "ucp_put_bw$1" -t ucp_put_bw -s 65536 -n 200 -w 10
    perftest "ucp_get$1" -t ucp_get -s 4096 -n 200 -w 10
    perftest "ucp_am_lat$1" -t ucp_am_lat -s 8 -n 300 -w 20
    perftest "ucp_am_bw$1" -t ucp_am_bw -s 65536 -n 200 -w 10
}

# Only link-local GIDs: the rails' IPv4 addresses are gone.
without_ipv4() {
    "$LAB" exec both 'for rail in eth0 eth1; do ip -4 addr flush dev $rail; done' >"$logs/flush.log" 2>&1 || {
        not_ok "link-local GIDs" "cannot remove the addresses"
        return
    }
    perftest "tag_lat, link-local GIDs" -t tag_lat -s 8 -n 300 -w 20
    perftest "ucp_put_bw, link-local GIDs" -t ucp_put_bw -s 65536 -n 100 -w 10
}

echo "# shape $shape"
without_device
with_device
perftests ""
perftest "tag_lat, sleeping" -t tag_lat -s 8 -n 200 -w 20 -E sleep
perftest "ucp_am_bw, sleeping" -t ucp_am_bw -s 4096 -n 200 -w 20 -E sleep
perftest "ucp_put_bw, two threads" -t ucp_put_bw -s 4096 -n 200 -w 10 -T 2 -M multi
[[ $shape == one ]] || without_ipv4
finish
