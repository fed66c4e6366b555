#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_stat: what it shows of a statistics file, of files that are none, and of a process over the software card.
#
#   test_ha_stat.sh     (in the build folder)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$here/ha_stat
build=$PWD
work=$(mktemp -d)
job=""
trap '[[ -z $job ]] || kill -9 "$job" 2>/dev/null || true; rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# expect NAME STATUS TEXT... -- ARGS...: its exit status, and what it says on either stream
expect() {
    local name=$1 wanted=$2 status=0 texts=() text
    shift 2
    while [[ $1 != -- ]]; do
        texts+=("$1")
        shift
    done
    shift
    "$program" "$@" >"$work/out" 2>&1 || status=$?
    for text in "${texts[@]}"; do
        if ! grep -qF -- "$text" "$work/out"; then
            echo "not ok $name: '$text' is not in: $(head -n 40 "$work/out")"
            failed=$((failed + 1))
            return
        fi
    done
    if [[ " $wanted " != *" $status "* ]]; then
        echo "not ok $name: status $status instead of $wanted: $(head -n 5 "$work/out")"
        failed=$((failed + 1))
        return
    fi
    echo "ok $name"
    passed=$((passed + 1))
}

sample() {
    cat <<FILE
# HELP ucx_ha_info who writes this file
# TYPE ucx_ha_info gauge
ucx_ha_info{pid="$$",host="$(hostname)",program="a \"job\"",version="0.1",job="77"} 1
ucx_ha_written_timestamp_seconds{pid="$$"} $1
# HELP ucx_ha_failovers_total endpoint pairs that moved to another rail
ucx_ha_failovers_total{pid="$$"} 12
# HELP ucx_ha_pairs endpoint pairs that can send
ucx_ha_pairs{pid="$$"} 4
ucx_ha_standbys{pid="$$"} $2
ucx_ha_rails_up{pid="$$"} 2
ucx_ha_move_seconds_bucket{pid="$$",le="0.001"} 3
ucx_ha_move_seconds_bucket{pid="$$",le="0.002"} 3
ucx_ha_move_seconds_bucket{pid="$$",le="+Inf"} 12
ucx_ha_move_seconds_sum{pid="$$"} 24
ucx_ha_move_seconds_count{pid="$$"} 12
ucx_ha_rail_failures_total{pid="$$",rail="x:1",last_cause="heartbeat"} 3
ucx_ha_rail_left_total{pid="$$",rail="x:1",cause="port"} 12
ucx_ha_path_usable{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 0
ucx_ha_path_active{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 4
ucx_ha_path_standby{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 0
ucx_ha_path_silent{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 0.43
ucx_ha_path_cooldown{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 1.5
ucx_ha_path_failures{pid="$$",rail="x:1",peer="10.1.0.7",instance="00ff"} 2
ucx_ha_paths_left_out{pid="$$"} 0
FILE
}

now=$(date +%s)
sample "$now" 4 >"$work/good.prom"
sample "$now" 3 >"$work/bare.prom"
sample $((now - 600)) 4 >"$work/old.prom"
sample "$now" 4 | head -n 8 >"$work/half.prom"
echo "hello" >"$work/other.prom"
expect "a healthy process" 0 'a "job" (pid' 'job 77' 'endpoints 4, with a standby 4' 'failovers 12' \
    'rail x:1: 3 failures, the last by heartbeat; endpoints that left it: port 12' '10.1.0.7' '430 ms' '1.5 s' \
    'moves of endpoints: 12, mean 2.0 s' 'below 1 ms' '2 ms or longer' -- "$work/good.prom"
expect "all counters" 0 'endpoint pairs that moved to another rail' -- --all "$work/good.prom"
expect "a standby is missing" 1 'with a standby 3' -- "$work/bare.prom"
expect "an old file" 1 's ago' -- "$work/old.prom"
expect "half a file" 2 'only part of one' -- "$work/half.prom"
expect "no statistics file" 2 'not a statistics file' -- "$work/other.prom"
expect "no such file" 2 'No such file' -- "$work/none.prom"
expect "no such process" 2 'process 999999999' -- 999999999
expect "a process without a file" 2 'UCX_HA_RC_STATS_FILE' -- $$
expect "a wrong option" 2 'unknown option --frob' -- --frob
UCX_HA_RC_STATS_FILE=$work/%h.%p.prom expect "no file at all" 2 'is UCX_HA_RC_STATS_FILE set' --
UCX_HA_RC_STATS_FILE=$work/good.pro%p expect "found by the pattern" 0 'a "job"' --
expect "help" 0 'usage: ha_stat' -- --help

# A program over ha_rc: found by its pid, and nothing of it is left behind.
card=$build/.libs/libsoftcard.so
if [[ -e $card ]] && command -v ucx_perftest >/dev/null && ! grep -qa '__[at]san_init' "$card"; then
    mkdir "$work/fabric" "$work/stats"
    port=$((20000 + $$ % 10000))
    alone=() # one that was built with MPI is a job of one rank otherwise
    # not by grep -q, which would end it by SIGPIPE
    [[ $(ucx_perftest -h 2>/dev/null) != *'MPI mode'* ]] || alone=(-P 0)
    over=(env LD_PRELOAD="$card:$build/.libs/libuct_ha.so.0" SOFTCARD_DIR="$work/fabric" UCX_TLS=ha_rc,self
        UCX_HA_RC_STATS_FILE="$work/stats/%h.%p.prom" UCX_HA_RC_STATS_INTERVAL=200ms UCX_WARN_UNUSED_ENV_VARS=n
        timeout 120 ucx_perftest "${alone[@]}" -p "$port" -t tag_lat -n 100000000)
    "${over[@]}" >"$work/server" 2>&1 &
    server=$!
    for _ in {1..600}; do
        ! grep -qi ":$(printf '%04X' "$port") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    "${over[@]}" 127.0.0.1 >"$work/client" 2>&1 &
    client=$!
    file=""
    for _ in {1..600}; do
        file=$(grep -l 'ucx_ha_pairs{.*} [1-9]' "$work"/stats/*.prom 2>/dev/null | head -n 1) || true
        [[ -z $file ]] || break
        sleep 0.1
    done
    if [[ -n $file ]]; then
        job=$(grep -oE 'info.pid="[0-9]+' "$file" | grep -oE '[0-9]+')
        expect "a process by its pid" "0 1" "ucx_perftest (pid $job on $(hostname)" 'rail sc0:1' 'usable' -- "$job"
    else
        echo "not ok a process by its pid: no statistics file; the programs said:"
        head -n 5 "$work/server" "$work/client"
        failed=$((failed + 1))
    fi
    for file in "$work"/stats/*.prom; do
        kill -9 "$(grep -oE 'info.pid="[0-9]+' "$file" | grep -oE '[0-9]+')" 2>/dev/null || true
    done
    kill "$server" "$client" 2>/dev/null || true
    wait "$server" "$client" 2>/dev/null || true
    job=""
    for file in "$work"/stats/*.prom; do
        [[ ! -e $file || -n $job ]] || expect "a process that was killed" 1 'has ended without removing this file' -- "$file"
    done
else
    echo "skip a process by its pid: no software card, or one with a sanitizer"
    skipped=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
