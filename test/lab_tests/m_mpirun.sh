#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun, given nothing but the hosts and where the component is: the hook loads the transport and makes all choices.
# Messages of 1 byte to 128 KiB go around, every byte compared, while rails fail one after the other; at the end
# MPI_T, the report and the lines of the log have to tell the same of each process.
#
#   m_mpirun.sh [--cuts N]     (shape two; default 50: some five minutes, by hand)
set -Eeuo pipefail

cuts=50

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "cuts" "$@"
# shellcheck source=mca/test/agree.sh
source "$top/mca/test/agree.sh"

probe=$HA_BUILD_DIR/test/lab_tests/hook_probe # where the guests see it, too
hook=$HA_BUILD_DIR/mca/.libs
if [[ ! -e $hook/mca_hook_ha.so ]]; then
    skip "mpirun with the hook" "this build has no component for Open MPI"
    finish
fi
mpicc -O1 -o "$probe" "$top/mca/test/hook_probe.c"
in_lab two "$@"
trap 'rm -f "$probe"' EXIT

folder=$logs/mpirun work=$logs
mkdir -p "$folder"
there=$share/mpirun.$$ # the same, as the ranks see it
mkdir "$there"

# moved HOST: failovers of its rank so far
moved() { sed -n 's/^ucx_ha_failovers_total{.*} //p' "$there/$1".*.prom 2>/dev/null | grep . || echo 0; }

# protected: both ranks have as many standbys as pairs
protected() {
    local host pairs
    for host in h1 h2; do
        pairs=$(sed -n 's/^ucx_ha_pairs{.*} //p' "$there/$host".*.prom 2>/dev/null) || true
        [[ ${pairs:-0} != 0 && $pairs == "$(sed -n 's/^ucx_ha_standbys{.*} //p' "$there/$host".*.prom)" ]] || return 1
    done
}

both_moved() { (($(moved h1) > before1 && $(moved h2) > before2)); }

# until_fact SECONDS NAME: as long as the job runs
until_fact() {
    local until=$((SECONDS + $1))
    until "$2"; do
        ((SECONDS < until)) && kill -0 "$job" 2>/dev/null || return 1
        sleep 0.1
    done
}

# break_rail KIND RAIL [HOST]: 1 and $why when the lab could not do it, 2 when nobody left the rail
break_rail() {
    local restore=clear moved=0
    [[ $1 != down ]] || restore=up
    until_fact 60 protected || { why="no standby before"; return 1; }
    before1=$(moved h1) before2=$(moved h2)
    fault "$@" || { why="the lab could not do it"; return 1; }
    until_fact 15 both_moved || moved=2
    fault "$restore" "$2" || { why="the lab could not mend it"; return 1; }
    return "$moved"
}

# break_one N: sides and kinds alternate, and rails: it is to be the one in use, which is the other one when a busy
# machine made them leave theirs meanwhile.
break_one() {
    local kinds=(down drop drop-from acks) rails=(a b) host kind verdict
    host=h$(($1 / 2 % 2 + 1))
    kind=${kinds[$1 % ${#kinds[@]}]}
    [[ $kind != drop ]] || host=""
    for _ in 0 1; do
        verdict=0
        # shellcheck disable=SC2086
        break_rail "$kind" "${rails[next_rail]}" $host || verdict=$?
        next_rail=$((1 - next_rail))
        ((verdict == 2)) || return "$verdict"
    done
    why="neither rail was left within 15 s"
    return 1
}
next_rail=0

env=()
for word in "${more_env[@]}"; do
    env+=(-e "$word")
done
"$LAB" mpirun --timeout 1400 "${env[@]}" -e UCX_LOG_LEVEL=info -e UCX_LOG_FILE=stderr \
    -e UCX_HA_RC_STATS_INTERVAL=0.1s -e UCX_HA_RC_STATS_FILE="$there/%h.%p.prom" -e UCX_HA_RC_COOLDOWN_MAX=100ms \
    -np 2 --mca mca_base_component_path "SYSTEM_DEFAULT:$hook" --mca hook_ha_library "$HA_LIB" \
    --mca hook_ha_report 2 "$probe" "$there" >"$folder/out" 2>&1 </dev/null &
job=$!
begun() { grep -q '^begun' "$folder/out"; }
until_fact 180 begun || not_ok "the job begins" "$(grep -v '^ *$' "$folder/out" | tail -n 3 | cut -c1-200 | paste -sd' ')"
for ((n = 0; n < cuts && failed == 0; n++)); do
    break_one "$n" || not_ok "cut $n of $cuts" "$why; $(tail -n 1 "$folder/out" | cut -c1-200)"
done
((failed == 0)) || keep_kernel_words
((failed > 0)) || until_fact 60 protected || not_ok "after the last cut" "no standby"
touch "$there/stop"
status=0
wait "$job" || status=$?
expect 'exit status of the job' "$status" 0
if ((failed == 0)); then
    cp "$there"/*.values "$folder"
    replayed=0 retired=0 ep_errors=0
    agree "$folder"
    expect 'the longest pause, and the log' "$(longest "$folder")" right
fi
rm -rf "$there"
finish
