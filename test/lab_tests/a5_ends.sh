#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How it ends: no rail left, a killed peer, a stopped one, one that simply exits.
# Bounds: with UCX_HA_RC_DEAD_PEER=5s an endpoint ends with its error at most
# 5 s + margin after the last sign of life, where margin covers the emulation.
#
#   a5_ends.sh [--shape one|two]
set -Eeuo pipefail

shape=one
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    *) echo "a5_ends.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

dead_peer=5
margin=5
bound=$((dead_peer + margin))
limits=(-e "UCX_HA_RC_DEAD_PEER=${dead_peer}s")

now() { date +%s.%N; }

# seconds_between A B, one decimal
seconds_between() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b - a }'; }

# Lines of a log that tell the user of an error: ours and UCX's, not the
# program's own line and not what the tester did.
error_lines() {
    grep -cE 'UCX +(ERROR|FATAL)' "$logs/$1.log" || true
}

# ends_with_error HOST SINCE: the process ends by itself, with an endpoint error,
# in time, and says so once, or once for each of the two interfaces that it has its endpoint on: the
# second connection may end before the program does. Sets $what or $why.
ends_with_error() {
    local log=$run.$1 took lines
    if ! ended "$log" $((bound + 10)); then
        why="$1 still runs $((bound + 10)) s later"
        return 1
    fi
    took=$(seconds_between "$2" "$(now)")
    lines=$(error_lines "$log")
    if [[ $status != 3 ]] || ! grep -q 'endpoint error: ' "$logs/$log.log"; then
        why="$1 ended with status $status after $took s: $(tail -n 2 "$logs/$log.log" | cut -c1-300 | paste -sd' ')"
    elif awk -v t="$took" -v b="$bound" 'BEGIN { exit t <= b }'; then
        why="$1 took $took s, more than $bound"
    elif ((lines < 1 || lines > 2)); then
        why="$1 says $lines errors instead of one or two: $(grep -m 3 -hE 'UCX +(ERROR|FATAL)' "$logs/$log.log" |
            sed 's/^.*UCX/UCX/' | cut -c1-160 | paste -sd'|')"
    else
        what="$1 after $took s: $(sed -n 's/^[0-9.]* endpoint error: //p' "$logs/$log.log")"
        return 0
    fi
    return 1
}

begin() { # NAME ARGS...: a pair with traffic
    local name=$1
    shift
    start "$name" "${limits[@]}" "$@"
    if ! flows 30; then
        not_ok "$name" "no traffic: $(tail -n 1 "$logs/$run.h1.log" | cut -c1-200)"
        abandon
        return 1
    fi
}

both_rails_cut() { # NAME FAULT... -- ARGS
    local name=$1 faults=() since first
    shift
    while [[ $1 != -- ]]; do
        faults+=("$1")
        shift
    done
    shift
    begin "$name" "$@" || return 0
    since=$(now)
    fault "${faults[@]}" || { not_ok "$name" "the lab could not do ${faults[*]}"; abandon; return; }
    if ends_with_error h1 "$since" && first=$what && ends_with_error h2 "$since"; then
        ok "$name" "$first; $what"
    else
        not_ok "$name" "$why"
    fi
    abandon
}

killed() { # NAME VICTIM OTHER ARGS...
    local name=$1 victim=$2 other=$3 since
    shift 3
    begin "$name" "$@" || return 0
    since=$(now)
    signal_host "$victim" "$run.$victim" KILL
    if ends_with_error "$other" "$since"; then
        ok "$name" "$what"
    else
        not_ok "$name" "$why"
    fi
    abandon
}

# A peer that stands still, for 2 s or for longer than DEAD_PEER, is not dead, and its rails are not to blame.
stopped() { # SECONDS
    local name="peer stopped for $1 s" before
    begin "stopped" || return 0
    before=$(field h1 failovers)$(field h2 failovers)
    signal_host h2 "$run.h2" STOP
    sleep "$1"
    signal_host h2 "$run.h2" CONT
    if ! flows 30; then
        not_ok "$name" "no traffic afterwards"
        abandon
        return
    fi
    stop_pair
    if ! verdict; then
        not_ok "$name" "$why"
        abandon
    elif [[ $before != "$(json stopped.h1 failovers)$(json stopped.h2 failovers)" ]]; then
        not_ok "$name" "it failed over"
    else
        ok "$name" "no error, no failover"
    fi
}

# Both rails dark, but one comes back before the peers give each other up.
dark_for_a_while() {
    local name="both rails dark for 2 s"
    # on a busy machine the lab itself may take seconds to mend the rail: more patience than elsewhere
    local limits=(-e UCX_HA_RC_DEAD_PEER=20s)
    begin "dark" || return 0
    if ! fault drop all || ! sleep 2 || ! fault clear b; then
        not_ok "$name" "the lab could not do it"
        abandon
    elif ! flows 30; then
        not_ok "$name" "no traffic when a rail was back"
        abandon
    else
        fault clear
        stop_pair
        if verdict; then
            ok "$name" "$(json dark.h1 failovers) failovers, longest silence $(json dark.h1 max_stall_ms) ms"
        else
            not_ok "$name" "$why"
            abandon
        fi
    fi
}

exits() {
    local name="peer exits normally"
    start leaves "${limits[@]}" --server --linger 8 -- --seconds 2 --leave
    if verdict; then
        if (($(error_lines leaves.h1) + $(error_lines leaves.h2) > 0)); then
            not_ok "$name" "$(grep -m 2 -hE 'UCX +(ERROR|FATAL)' "$logs"/leaves.h?.log | paste -sd'|')"
        else
            ok "$name" "the other lives on without an error"
        fi
    else
        not_ok "$name" "$why"
        abandon
    fi
}

echo "# shape $shape, both ends within $bound s (DEAD_PEER ${dead_peer}s)"
both_rails_cut "both rails down at one side" down all h1 --
both_rails_cut "both rails silent" drop all -- --peer-err
killed "peer killed" h2 h1
killed "peer killed, with error handler" h1 h2 --peer-err
stopped 2
stopped 12
dark_for_a_while
exits
finish
