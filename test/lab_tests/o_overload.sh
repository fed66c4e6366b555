#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A host that is too busy is not a rail that is dead: not one failover, not one error
# while a receiver computes, does not poll, is starved of processor time, or is stopped.
#
#   o_overload.sh [--shape one|two] [--seconds N]     N for all parts together (default 60)
set -Eeuo pipefail

shape=two seconds=60 seed=${HA_SEED:-$((RANDOM + 1))}

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "shape seconds" "$@"
in_lab "$shape" "$@"

parts=6
each=$(((seconds + parts - 1) / parts))

# part NAME LOAD [start's ARGS...]: traffic for its time, while that function makes the load. It has to prove
# that it did: $proof; else it fails, with $why, or leaves $cannot where this host has no such thing.
part() {
    local name=$1 load=$2 moved proof="" cannot="" loaded=1
    shift 2
    why=""
    start "$name" "$@" --seed "$seed" --seconds 900 --window 256
    if ! flows 60; then
        not_ok "$name" "no traffic$(first_wrong)"
        abandon
        return
    fi
    "$load" || loaded=0
    if ((!loaded)); then
        if [[ -n $cannot ]]; then
            skip "$name" "$cannot"
        else
            not_ok "$name" "it never took place: ${why:-the lab could not do it}"
        fi
        abandon
        return
    fi
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
    elif [[ $load == compute ]] && ! computed "$@"; then
        not_ok "$name" "it never took place: $why"
    else
        ok "$name" "$proof; 0 failovers, $(json "$run.h2" tag) tagged messages at the server, longest silence $(json "$run.h1" max_stall_ms) ms"
    fi
}

# at_least FOUND LEAST WHAT: $proof, or $why
at_least() {
    proof="${1:-0} $3"
    if ((${1:-0} < $2)); then
        why="only $proof, not $2"
        return 1
    fi
}

# The programs themselves do it, by --busy.
compute() { sleep "$each"; }

# computed start's ARGS...: each side that had to, at least half as long as it had to
computed() {
    local host=h1 all=""
    while (($# > 0)); do
        case $1 in
        --server) host=h2 ;;
        --) host=h1 ;;
        --busy)
            at_least "$(json "$run.$host" busy_ms)" $((each * $2 / 2)) "ms computed at $host" || return 1
            all+="${all:+, }$proof"
            shift
            ;;
        esac
        shift
    done
    proof=$all
    [[ -n $all ]]
}

# The peer's processor is wanted by four others as well: a fifth of an emulated one is left for the
# thread that answers heartbeats, which needs about that. Not what a card would do by itself:
# Soft-RoCE does that in ksoftirqd.
burn() {
    local seconds
    seconds=$("$LAB" exec --timeout $((each + 60)) h2 \
        "renice -n -10 -p \$(pgrep ksoftirqd) >/dev/null
         for i in 1 2 3 4; do timeout $each sha1sum /dev/zero >/dev/null & done; wait; times" |
        tail -n 1 | awk -F'[ms ]+' '{ printf "%d", 60 * ($1 + $3) + $2 + $4 }')
    at_least "$seconds" $(((each + 1) / 2)) "s of processor time taken"
}

# The peer gets a tenth of a processor: it runs for 100 ms of each second.
starve() {
    local throttled
    # shellcheck disable=SC2016
    throttled=$("$LAB" exec --timeout $((each + 60)) h2 'group=/sys/fs/cgroup$(sed -n "s/^0:://p" "/proc/$(cat "$LAB_SHARE/'"$run"'.h2.pid")/cgroup")
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        test -e "$group/cpu.max" || { echo "none"; exit 0; }
        before=$(sed -n "s/^nr_throttled //p" "$group/cpu.stat")
        echo "100000 1000000" >"$group/cpu.max"; sleep '"$each"'; echo max >"$group/cpu.max"
        echo $(($(sed -n "s/^nr_throttled //p" "$group/cpu.stat") - before))' | tail -n 1) || return 1
    if [[ $throttled == none ]]; then
        cannot="no cgroup to limit"
        return 1
    fi
    at_least "$throttled" $(((each + 2) / 3)) "times throttled"
}

stop_now_and_then() {
    local until=$((SECONDS + each)) host state
    local -A stops=([h1]=0 [h2]=0)
    while ((SECONDS < until)); do
        for host in h2 h1; do
            state=$("$LAB" exec --timeout 30 "$host" "pid=\$(cat \$LAB_SHARE/$run.$host.pid); kill -STOP \$pid; sleep 2
                sed -n 's/^State:[[:space:]]*//p' /proc/\$pid/status; kill -CONT \$pid") || return 1
            [[ $state != T* ]] || stops[$host]=$((stops[$host] + 1))
            sleep 1
        done
    done
    at_least "${stops[h1]}" 1 "stops at h1" && at_least "${stops[h2]}" 1 "stops at h2" || return 1
    proof="${stops[h1]} + ${stops[h2]} stops of 2 s"
}

echo "# shape $shape, seed $seed, $parts parts of $each s"
part "receiver computes 0.8 of each second" compute --server --busy 800 --
part "both compute 0.5 of each second" compute --server --busy 500 -- --busy 500
part "receiver hardly ever polls" compute --server --busy 980 -- --oneway --ops tag,am --sizes small
part "peer's processor is taken" burn
part "peer has a tenth of a processor" starve
part "stopped for 2 s again and again" stop_now_and_then
finish
