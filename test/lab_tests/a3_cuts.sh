#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail is cut with thousands of operations in flight: at the sender, at the
# receiver, silently, in one direction, acknowledgements only; on either rail, and
# again and again. Nothing lost, doubled, reordered; no PUT executed twice.
#
#   a3_cuts.sh [--shape one|two] [--cuts N]     N: length of the series (default 50; shape two: 6)
set -Eeuo pipefail

shape=one cuts="" seed=${HA_SEED:-$((RANDOM + 1))}
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    --cuts) cuts=$2; shift ;;
    *) echo "a3_cuts.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done
case $shape in
one) cuts=${cuts:-50} ;;
two) cuts=${cuts:-6} ;;
*) echo "a3_cuts.sh: --shape is one or two, not '$shape'" >&2; exit 2 ;;
esac

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

least_in_flight=500 # at a cut; the window is 4096

# cut_rail RESTORE-KIND KIND RAIL [HOST]: one cut of the running pair; 1 when it
# has to be abandoned. $why, else $what.
cut_rail() {
    local restore=$1 rail=$3 before1 before2 flight
    shift
    before1=$(field h1 failovers) before2=$(field h2 failovers)
    redundant 20 || { why="no standby before the cut"; return 1; }
    wait_field h1 outstanding $((2 * least_in_flight)) 20 || true # the window fills in the beginning
    fault "$@" || { why="the lab could not do '$*'"; return 1; }
    wait_field h1 failovers $((before1 + 1)) 15 || { why="no failover at h1 within 15 s"; return 1; }
    wait_field h2 failovers $((before2 + 1)) 15 || { why="no failover at h2 within 15 s"; return 1; }
    flows 20 || { why="no traffic after the failover"; return 1; }
    flight=$(in_flight_after h1 "$fault_at")
    if ((${flight:-0} < least_in_flight)); then
        why="only ${flight:-no} operations in flight at the cut"
        return 1
    fi
    fault "$restore" "$rail" || { why="the lab could not do '$restore $rail'"; return 1; }
    redundant 20 || { why="rail $rail did not become a standby again"; return 1; }
    what="$flight operations in flight"
}

restore_of() {
    case $1 in
    down) echo up ;;
    carrier-off) echo carrier-on ;;
    *) echo clear ;;
    esac
}

one_of_each=(
    "at the sender|down a h1"
    "at the receiver|down b h2"
    "silent, both directions|drop a"
    "silent, one direction|drop-from b h1"
    "silent, the other direction|drop-from a h1"
    "acknowledgements only|acks b h2"
    "acknowledgements of the other side|acks a h1"
    "the cable pulled|carrier-off b h1"
)

# Each kind, the rails alternating, in one pair of processes while nothing fails.
test_kinds() {
    local entry name kind running=0 done=()
    for entry in "${one_of_each[@]}"; do
        IFS='|' read -r name kind <<<"$entry"
        if ((!running)); then
            start kinds --seed "$seed" --seconds 600 "$@"
            flows 30 || why="no traffic at the start"
            running=1
        fi
        # shellcheck disable=SC2086
        if cut_rail "$(restore_of "${kind%% *}")" $kind; then
            done+=("cut $name ($kind)|$what")
        else
            not_ok "cut $name ($kind)" "$why$(first_wrong)"
            for entry in "${done[@]}"; do
                not_ok "${entry%|*}" "never verified, because a later cut failed"
            done
            done=()
            cp "$logs/kinds.h1.log" "$logs/kinds.$failed.h1.log"
            cp "$logs/kinds.h2.log" "$logs/kinds.$failed.h2.log"
            abandon
            running=0
        fi
    done
    ((running)) || return 0
    stop_pair
    if verdict; then
        for entry in "${done[@]}"; do
            ok "${entry%|*}" "${entry#*|}"
        done
    else
        for entry in "${done[@]}"; do
            not_ok "${entry%|*}" "data after all cuts: $why"
        done
        abandon
    fi
}

# Rails alternating, kinds too, one pair of processes.
test_series() {
    local n rail host kinds=(down drop drop-from down acks) kind began=$SECONDS
    start series --seed $((seed + 1)) --seconds 900 "$@"
    flows 30 || why="no traffic at the start"
    for ((n = 1; n <= cuts; n++)); do
        rail=$([[ $((n % 2)) == 1 ]] && echo a || echo b)
        host=h$((n / 2 % 2 + 1))
        kind=${kinds[n % ${#kinds[@]}]}
        [[ $kind == drop ]] && host=""
        # shellcheck disable=SC2086
        if ! cut_rail "$(restore_of "$kind")" "$kind" "$rail" $host; then
            not_ok "$cuts cuts in a row" "cut $n ($kind $rail $host): $why$(first_wrong); seed $((seed + 1))"
            abandon
            return
        fi
    done
    stop_pair
    if verdict; then
        ok "$cuts cuts in a row" "$(json series.h1 failovers) failovers at h1, $(json series.h2 failovers) at h2, \
$(json series.h1 replayed) + $(json series.h2 replayed) replayed, $(json series.h1 retired) + $(json series.h2 retired) retired, \
at least $(json series.h1 inflight_at_cut) in flight, $((SECONDS - began)) s"
    else
        not_ok "$cuts cuts in a row" "$why; seed $((seed + 1))"
        abandon
    fi
}

echo "# shape $shape, seed $seed"
test_kinds
test_series
finish
