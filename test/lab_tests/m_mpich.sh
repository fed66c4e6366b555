#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's MPICH over both hosts, started by its own mpiexec, with LD_PRELOAD and UCX_TLS and nothing else: every rank
# sends to every other one, every byte compared, while rails fail one after the other.
#
#   m_mpich.sh [--cuts N] [--kinds down,drop,drop-from,acks]     (shape two; default 50 of all: some five minutes, by hand)
set -Eeuo pipefail

cuts=50 kinds=down,drop,drop-from,acks

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "cuts kinds" "$@"
# shellcheck source=mca/test/agree.sh
source "$top/mca/test/agree.sh"
# shellcheck source=test/lab_tests/job_cuts.sh
source "$here/job_cuts.sh"
# shellcheck source=test/lab_tests/mpich.sh
source "$here/mpich.sh"

build=$HA_BUILD_DIR why=''
program=$HA_BUILD_DIR/test/lab_tests/mpich_alltoall # where the guests see it, too
if ! mpich_build "$program"; then
    skip "MPICH" "$why"
    finish
fi
in_lab two "$@"
trap 'rm -f "$program"' EXIT

folder=$logs/mpich
mkdir -p "$folder"
there=$share/mpich.$$ # the same, as the ranks see it
mkdir "$there"
libraries=$(mpich_libraries)
# MPICH's own program at the other host needs them, too.
printf '#!/bin/sh\nhost=$1\nshift\nexec /run/lab/rsh "$host" env LD_LIBRARY_PATH=%s "$@"\n' "$libraries" >"$there/rsh"
chmod +x "$there/rsh"

"$LAB" exec --timeout 1400 h1 env LD_LIBRARY_PATH="$libraries" "$(mpich_folder mpiexec.hydra)/mpiexec.hydra" \
    -launcher rsh -launcher-exec "$there/rsh" -iface eth2 -hosts h1,h2 -n 2 \
    -genv LD_LIBRARY_PATH "$libraries" -genv LD_PRELOAD "$HA_LIB" -genv UCX_TLS ha_rc,self \
    -genv UCX_LOG_LEVEL info -genv UCX_LOG_FILE "$there/ucx-%h-%p.log" -genv UCX_HA_RC_STATS_INTERVAL 0.1s \
    -genv UCX_HA_RC_STATS_FILE "$there/%h.%p.prom" -genv UCX_HA_RC_COOLDOWN_MAX 100ms \
    "$program" 1400 >"$folder/out" 2>&1 </dev/null &
job=$!
begun() { grep -q 'standbys, 2 ranks' "$folder/out"; }
until_fact 180 begun || not_ok "the job begins" "$(grep -v '^ *$' "$folder/out" | tail -n 3 | cut -c1-200 | paste -sd' ')"
make_cuts
declare -A counted=([h1]=$(moved h1) [h2]=$(moved h2))
if ((failed == 0)); then
    "$LAB" exec h1 'pkill -USR1 -f "^[^ ]*mpich_alltoall"'
else
    "$LAB" exec h1 'pkill -f mpiexec.hydra' || true
fi
status=0
wait "$job" || status=$?
expect 'exit status of the job' "$status" 0
cp "$there"/*.log "$folder" 2>/dev/null || true
for host in h1 h2; do
    expect "failovers of $host: its counter, and the lines of its log" "${counted[$host]}" \
        "$(cat "$folder/ucx-$host"-*.log | grep -cE 'failover: endpoint [0-9]+ to')"
    expect "failovers of $host, one a cut at least" "$((counted[$host] >= cuts))" 1
done
result=$(grep '^{' "$folder/out") || result=none
expect "the job's result" "$(grep -oE '"ok":[a-z]*|"wrong":[0-9]*' <<<"$result" | paste -sd,)" '"ok":true,"wrong":0'
echo "$result"
rm -rf "$there"
finish
