#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun, given nothing but the hosts and where the component is: the hook loads the transport and makes all choices.
# Messages of 1 byte to 128 KiB go around, every byte compared, while rails fail one after the other; at the end
# MPI_T, the report and the lines of the log have to tell the same of each process.
#
#   m_mpirun.sh [--cuts N] [--kinds down,drop,drop-from,acks]     (shape two; default 50 of all: some five minutes, by hand)
set -Eeuo pipefail

cuts=50 kinds=down,drop,drop-from,acks

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "cuts kinds" "$@"
# shellcheck source=mca/test/agree.sh
source "$top/mca/test/agree.sh"
# shellcheck source=test/lab_tests/job_cuts.sh
source "$here/job_cuts.sh"

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
make_cuts
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
