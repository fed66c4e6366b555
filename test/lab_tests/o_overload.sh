#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host that is too busy is not a rail that is dead: not one failover, not one error
# while a receiver computes, does not poll, is starved of processor time, or is stopped.
#
#   o_overload.sh [--shape one|two] [--seconds N]     N for all parts together (default 60)
set -Eeuo pipefail

shape=two seconds=60 seed=${HA_SEED:-$((RANDOM + 1))}
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    *) echo "o_overload.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

parts=6
each=$(((seconds + parts - 1) / parts))

# part NAME WHAT-HAPPENS [start's ARGS...]: traffic for its time, while that function runs
part() {
    local name=$1 happening=$2 moved
    shift 2
    start "$name" "$@" --seed "$seed" --seconds 900 --window 256
    if ! flows 60; then
        not_ok "$name" "no traffic$(first_wrong)"
        abandon
        return
    fi
    "$happening" || true
    wait_field h1 operations "$(($(field h1 operations) + 50))" 60 || true
    stop_pair
    if ! verdict 180; then
        not_ok "$name" "$why"
        abandon
        return
    fi
    moved=$(($(json "$run.h1" failovers) + $(json "$run.h2" failovers)))
    if ((moved > 0)); then
        not_ok "$name" "$moved failovers without need: $(grep -hoE 'failover [0-9]+:.*|moved .*|ha_rc: .*rail.*' "$logs/$run".h?.log |
            head -n 2 | paste -sd'|' | cut -c1-300)"
    else
        ok "$name" "0 failovers, $(json "$run.h2" tag) tagged messages at the server, longest silence $(json "$run.h1" max_stall_ms) ms"
    fi
}

nothing() { sleep "$each"; }

# The peer's processors are wanted by others, who are more important.
burn() {
    "$LAB" exec --timeout $((each + 60)) h2 \
        "for i in 1 2 3 4; do timeout $each nice -n -5 sha1sum /dev/zero >/dev/null & done; wait" || true
}

# The peer gets a tenth of a processor: it runs for 100 ms of each second.
starve() {
    # shellcheck disable=SC2016
    "$LAB" exec --timeout $((each + 60)) h2 'group=/sys/fs/cgroup$(sed -n "s/^0:://p" "/proc/$(cat "$LAB_SHARE/'"$run"'.h2.pid")/cgroup")
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        test -e "$group/cpu.max" || { echo "no cpu.max in $group"; exit 1; }
        echo "100000 1000000" >"$group/cpu.max"; sleep '"$each"'; echo max >"$group/cpu.max"' || skip "$run" "no cgroup to limit"
}

stop_now_and_then() {
    local until=$((SECONDS + each)) host
    while ((SECONDS < until)); do
        for host in h2 h1; do
            "$LAB" exec --timeout 30 "$host" "kill -STOP \$(cat \$LAB_SHARE/$run.$host.pid); sleep 2; kill -CONT \$(cat \$LAB_SHARE/$run.$host.pid)"
            sleep 1
        done
    done
}

echo "# shape $shape, seed $seed, $parts parts of $each s"
part "receiver computes 0.8 of each second" nothing --server --busy 800 --
part "both compute 0.5 of each second" nothing --server --busy 500 -- --busy 500
part "receiver hardly ever polls" nothing --server --busy 980 -- --oneway --ops tag,am --sizes small
part "peer's processor is taken" burn
part "peer has a tenth of a processor" starve
part "stopped for 2 s again and again" stop_now_and_then
finish
