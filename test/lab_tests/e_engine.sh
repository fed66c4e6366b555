#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The batch engine over ha_rc: batches between the hosts while rails are cut. Every request completes,
# every byte is right; a target that is killed ends the batches with an error, in bounded time.
#
#   e_engine.sh [--shape one|two] [--seconds N]     N of traffic with cuts, per operation (default 30)
set -Eeuo pipefail

shape=one seconds=30
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    *) echo "e_engine.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

bench=$HA_BUILD_DIR/engine/bench/.libs/hte_bench
if [[ ! -x $bench ]]; then
    skip "engine" "this build has no hte_bench (libjansson-dev?)"
    finish
fi
sizes=(--buffer_size=8M --block_size=64K --batch_size=16 --depth=2 --threads=1 --quiet)

# target_up NAME: $segment is what it is called
target_up() {
    run=$1
    on_host h2 "$run.h2" LD_LIBRARY_PATH="$HA_BUILD_DIR/.libs" "$bench" --mode=target --local_server_name=h2 \
        "${sizes[@]}"
    segment=""
    for _ in {1..300}; do
        segment=$(sed -n 's/^segment //p' "$logs/$run.h2.log")
        [[ -z $segment ]] || return 0
        sleep 0.1
    done
    return 1
}

initiator() { # ARGS...
    on_host h1 "$run.h1" LD_LIBRARY_PATH="$HA_BUILD_DIR/.libs" "$bench" --mode=initiator --local_server_name=h1 \
        --segment_id="$segment" "${sizes[@]}" --json "$@"
}

failovers() { cat "$logs/$run".h?.log | grep -cE ' failover: [0-9]+ endpoint' || true; }

end_pair() {
    signal_host h2 "$run.h2" KILL >/dev/null 2>&1 || true
    signal_host h1 "$run.h1" KILL >/dev/null 2>&1 || true
    wait "${pid_of[$run.h1]}" "${pid_of[$run.h2]}" 2>/dev/null || true
    "$LAB" fault clear >/dev/null 2>&1 || true
}

last_words() { tail -n 3 "$logs/$run.h1.log" | cut -c1-200 | paste -sd'|'; }

# cut_while NAME ARGS...: rails die in turn, silently, and come back; every byte that was moved is compared (--check)
cut_while() {
    local name=$1 rail=a until=$((SECONDS + seconds))
    shift
    if ! target_up "$name"; then
        not_ok "$name" "the target did not start: $(tail -n 1 "$logs/$run.h2.log" | cut -c1-200)"
        return
    fi
    initiator --duration="$seconds" --check "$@"
    sleep 3
    while ((SECONDS < until - 6)) && kill -0 "${pid_of[$run.h1]}" 2>/dev/null; do
        fault drop "$rail" || true
        sleep 4
        fault clear || true
        sleep 3
        if [[ $rail == a ]]; then rail=b; else rail=a; fi
    done
    if ! ended "$run.h1" $((seconds + 120)); then
        not_ok "$name" "does not end: $(last_words)"
    elif [[ $status != 0 || $(json "$run.h1" verified) != true || $(json "$run.h1" failed) != 0 ]]; then
        not_ok "$name" "status $status: $(last_words)"
    elif (($(failovers) == 0)); then
        not_ok "$name" "no failover happened: nothing is proven"
    else
        ok "$name" "$(failovers) failover lines, $(json "$run.h1" bytes) bytes, 0 requests failed, all bytes compared"
    fi
    end_pair
}

target_killed() {
    local name=target-killed began
    if ! target_up "$name"; then
        not_ok "$name" "the target did not start"
        return
    fi
    initiator --duration=20
    sleep 5
    began=$SECONDS
    signal_host h2 "$run.h2" KILL
    if ! ended "$run.h1" 90; then
        not_ok "$name" "the initiator hangs: $(last_words)"
    elif [[ $status == 0 ]]; then
        not_ok "$name" "the initiator noticed nothing"
    else
        ok "$name" "ended with status $status after $((SECONDS - began)) s"
    fi
    end_pair
}

cut_while write --operation=write
cut_while read --operation=read
target_killed
finish
