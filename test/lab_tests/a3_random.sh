#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Faults at random, without waiting for anything: a rail flaps, dies while the
# standby is still being built, loses some packets, is slow; the other one next.
# Never both dead at once. Then what must have been exactly once is checked.
#
#   a3_random.sh [--shape one|two] [--seconds N] [--rounds N] [--start]
#       N seconds of faults per round (default 20), one round per variant of the traffic
#       --start: only the set-up with one rail dead
set -Eeuo pipefail

shape=one seconds=20 rounds=6 only_start=0 seed=${HA_SEED:-$((RANDOM + 1))}
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    --rounds) rounds=$2; shift ;;
    --start) only_start=1 ;;
    *) echo "a3_random.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

RANDOM=$((seed % 32768))

one_fault() { # RAIL: sets $break and $mend
    local rail=$1 host=h$((RANDOM % 2 + 1))
    case $((RANDOM % 8)) in
    0 | 1) break="down $rail $host" mend="up $rail" ;;
    2) break="drop $rail" mend="clear $rail" ;;
    3 | 4) break="drop-from $rail $host" mend="clear $rail" ;;
    5) break="acks $rail $host" mend="clear $rail" ;;
    6) break="loss $rail $((RANDOM % 30 + 1))" mend="clear $rail" ;;
    7) break="carrier-off $rail $host" mend="carrier-on $rail" ;;
    esac
}

# pause MOST: up to MOST tenths of a second, often none
pause() {
    local tenths=$((RANDOM % 2 * RANDOM % ($1 + 1)))
    sleep "$((tenths / 10)).$((tenths % 10))"
}

faults_for() { # SECONDS
    local until=$((SECONDS + $1)) break mend
    while ((SECONDS < until)); do
        if ! kill -0 "${pid_of[$run.h1]}" 2>/dev/null; then
            why="h1 ended: $(tail -n 1 "$logs/$run.h1.log" | cut -c1-200)"
            return 1
        fi
        one_fault "$([[ $((RANDOM % 2)) == 0 ]] && echo a || echo b)"
        # shellcheck disable=SC2086
        fault $break && pause 20 && fault $mend && pause 15 || {
            why="the lab could not do '$break' or '$mend'"
            return 1
        }
    done
}

round() { # NUMBER CLIENT-ARGS[|SERVER-ARGS]
    local name="random faults, traffic: $2" number=$1 client server
    IFS='|' read -r client server <<<"$2"
    # shellcheck disable=SC2086
    start "random$number" --server $server -- --seed $((seed + number)) --seconds 900 $client
    if ! flows 30; then
        not_ok "$name" "no traffic; seed $seed"
        abandon
    elif ! faults_for "$seconds"; then
        not_ok "$name" "$why$(first_wrong); seed $seed"
        abandon
    else
        stop_pair
        if verdict; then
            ok "$name" "$(json "$run.h1" failovers) failovers, $(($(json "$run.h1" replayed) + $(json "$run.h2" replayed))) replayed, \
$(($(json "$run.h1" retired) + $(json "$run.h2" retired))) retired, longest silence $(json "$run.h1" max_stall_ms) ms"
        else
            not_ok "$name" "$why; seed $seed"
            abandon
        fi
    fi
}

# One rail is dead before the processes start, and comes to life later.
starts_without() { # KIND RAIL [HOST]
    local name="set-up with a dead rail ($*)" mend
    case $1 in
    down) mend=up ;;
    *) mend=clear ;;
    esac
    fault "$@"
    start "start-$1-$2" --seed "$seed" --seconds 900
    if ! flows 40; then
        not_ok "$name" "no traffic"
        abandon
        return
    fi
    fault "$mend" "$2"
    sleep 2
    # now the other rail can go
    [[ $2 == a ]] && fault drop b || fault drop a
    if ! flows 20; then
        not_ok "$name" "the rail that came back does not carry on"
        abandon
        return
    fi
    fault clear
    stop_pair
    if verdict; then
        ok "$name"
    else
        not_ok "$name" "$why"
        abandon
    fi
}

echo "# shape $shape, seed $seed"
starts_without drop a
starts_without down a h1
starts_without down b h2
variants=(
    "--sizes mixed"
    "--sizes large --window 512"
    "--sizes small --wakeup|--wakeup"
    "--ops put,get --busy 300"
    "--ops tag,am --oneway|--busy 300"
    "--ops tag,am,put --peer-err"
)
for ((n = 0; n < rounds && !only_start; n++)); do
    round $n "${variants[n % ${#variants[@]}]}"
done
finish
