#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many at once: every MPI rank talks to every other one, a rail dies under all of
# them, then the other one. The job ends well, with every byte right.
#
#   a6_many.sh [--shape one|two] [--per-host N] [--cuts N]    N ranks on each host (default 4), cuts (default 4)
set -Eeuo pipefail

shape=two per_host=4 cuts=4
arguments=("$@")
while (($# > 0)); do
    case $1 in
    --shape) shape=$2; shift ;;
    --per-host) per_host=$2; shift ;;
    --cuts) cuts=$2; shift ;;
    *) echo "a6_many.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
    esac
    shift
done

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
in_lab "$shape" "${arguments[@]}"

alltoall=$HA_BUILD_DIR/test/lab_tests/ha_alltoall
if [[ ! -x $alltoall ]]; then
    skip "many ranks" "no ha_alltoall: built without MPI"
    finish
fi
name="$((2 * per_host)) ranks, $cuts cuts"
log=$logs/many.log

# now NAME: from the last line of the running job, or 0
now() { sed -n "s/.* \([0-9]*\) $1.*/\1/p" "$log" | tail -n 1 | grep . || echo 0; }

# until NAME AT-LEAST SECONDS
until_least() {
    local deadline=$((SECONDS + $3))
    while (($(now "$1") < $2)); do
        ((SECONDS < deadline)) && kill -0 "$job" 2>/dev/null || return 1
        sleep 0.2
    done
}

give_up() {
    not_ok "$name" "$1: $(grep -hE 'WRONG|ERROR|FATAL|error' "$log" | head -n 2 | cut -c1-200 | paste -sd' ')"
    kill "$job" 2>/dev/null || true
    "$LAB" fault clear && "$LAB" fault up all
    finish
}

"$LAB" mpirun --timeout 900 -e LD_PRELOAD="$HA_LIB" -e UCX_TLS=ha_rc,self -e UCX_HA_RC_DEAD_PEER=60s -e UCX_HA_RC_CONNECT_TIMEOUT=120s \
    -np $((2 * per_host)) --mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any --mca osc ^ucx "$alltoall" 3600 >"$log" 2>&1 &
job=$!
until_least rounds 3 180 || give_up "the job did not begin"
pairs=$(now pairs)
worst=0
for ((n = 0; n < cuts; n++)); do
    rail=$([[ $((n % 2)) == 0 ]] && echo a || echo b)
    before=$(now failovers)
    began=$(date +%s%N)
    if ((n % 4 < 2)); then fault down "$rail" h1; else fault drop "$rail"; fi
    # what was on that rail has moved when nothing moves any more and rounds go on
    until_least failovers $((before + 1)) 120 || give_up "cut $n of rail $rail: nothing moved"
    while last=$(now failovers) && sleep 3 && (($(now failovers) > last)); do :; done
    until_least rounds $(($(now rounds) + 2)) 120 || give_up "cut $n of rail $rail: no round afterwards"
    took=$((($(date +%s%N) - began) / 1000000))
    worst=$((took > worst ? took : worst))
    echo "# cut $n, rail $rail: $(($(now failovers) - before)) ends moved, all in order again within $took ms (of which 3 s waiting)"
    if ((n % 4 < 2)); then fault up "$rail"; else fault clear "$rail"; fi
    sleep 5
done
# rank 0 says how long it goes on: ask it to stop by its clock, not by a kill
"$LAB" exec h1 'pkill -USR1 -x ha_alltoall' || true
status=0
wait "$job" || status=$?
if ((status == 0)) && [[ $(json many ok) == true ]]; then
    ok "$name" "$pairs endpoint pairs, $(json many failovers) ends failed over, $(json many messages) messages right, \
longest round $(json many longest_round_ms) ms"
else
    not_ok "$name" "status $status: $(tail -n 3 "$log" | cut -c1-300 | paste -sd' ')"
fi
finish
