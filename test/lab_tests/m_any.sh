#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Any MPI program, over both hosts, by mpirun with nothing but the hosts and the component, while rails fail one after
# the other until it ends. It must end well, and have seen failovers; whether its results are right is its own to say.
#
#   m_any.sh [--cuts N] [--kinds down,drop,drop-from,acks] -- PROGRAM [ARGUMENT...]     (shape two; default: until the
#                                                            end, all kinds; by hand)
# What the program writes to must be in $LAB_SHARE, which both hosts have; what it says is kept in HA_TEST_LOGS.
set -Eeuo pipefail

cuts=1000 kinds=down,drop,drop-from,acks
all=("$@") words=()
while (($# > 0)) && [[ $1 != -- ]]; do
    words+=("$1")
    shift
done
(($# > 1)) || { echo "m_any.sh: which program? m_any.sh -- PROGRAM [ARGUMENT...]" >&2; exit 2; }
shift

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "cuts kinds" "${words[@]}"
# shellcheck source=mca/test/agree.sh
source "$top/mca/test/agree.sh"
# shellcheck source=test/lab_tests/job_cuts.sh
source "$here/job_cuts.sh"

hook=$HA_BUILD_DIR/mca/.libs
if [[ ! -e $hook/mca_hook_ha.so ]]; then
    skip "mpirun with the hook" "this build has no component for Open MPI"
    finish
fi
in_lab two "${all[@]}"

folder=$logs/any
mkdir -p "$folder"
there=$share/any.$$ # the same, as the ranks see it
mkdir "$there"
"$LAB" mpirun --timeout 1400 -e UCX_LOG_LEVEL=info -e UCX_LOG_FILE="$there/ucx-%h-%p.log" \
    -e UCX_HA_RC_STATS_INTERVAL=0.1s -e UCX_HA_RC_STATS_FILE="$there/%h.%p.prom" -e UCX_HA_RC_COOLDOWN_MAX=100ms \
    -np 2 --mca mca_base_component_path "SYSTEM_DEFAULT:$hook" --mca hook_ha_library "$HA_LIB" \
    --mca hook_ha_report 2 --mca hook_ha_require 1 "$@" >"$folder/out" 2>&1 </dev/null &
job=$!
is_over() { ! kill -0 "$job" 2>/dev/null; }
made=0 why=''
for ((n = 0; n < cuts; n++)); do
    break_one "$n" && made=$((made + 1)) || is_over || not_ok "cut $n" "$why; $(tail -n 1 "$folder/out" | cut -c1-200)"
    ((failed == 0)) && ! is_over || break
done
((failed == 0)) || keep_kernel_words
status=0
wait "$job" || status=$?
expect 'exit status of the job' "$status" 0
cp "$there"/*.log "$folder" 2>/dev/null || true
moves=$(cat "$folder"/ucx-*.log 2>/dev/null | grep -cE 'failover: endpoint [0-9]+ to') || true
expect "failovers, two a cut at least: $moves of $made cuts" "$((made > 0 && moves >= 2 * made))" 1
grep 'report:' "$folder/out" || true
rm -rf "$there"
finish
