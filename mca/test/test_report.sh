#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a job is told of its failovers agrees wherever it is told: the lines of the log, of each endpoint and of each
# rail, MPI_T, and the report at the end. Two processes over the card made of software, the rail in use cut several
# times, every byte compared; no card is left without its rail when it ends, then with one.
#
#   HOOK_DIR, HA_LIB   component's folder and library; default: of the build tree we are in
#   CUTS               4
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hook_dir=${HOOK_DIR:-$PWD/mca/.libs}
library=${HA_LIB:-$PWD/.libs/libuct_ha.so.0}
card=$PWD/.libs/libsoftcard.so tool=$PWD/test/softcard/softcard
for program in mpirun mpicc ompi_info; do
    command -v "$program" >/dev/null || { echo "SKIP: no $program (apt-get install libopenmpi-dev)"; exit 77; }
done
[[ -e $card && -x $tool ]] || { echo "SKIP: no card made of software in this build"; exit 77; }
passed=0 failed=0 cuts=${CUTS:-4}
# shellcheck source=mca/test/agree.sh
source "$here/agree.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOFTCARD_DIR=$work/fabric
mkdir "$work/fabric"
components=$(ompi_info --path pkglibdir --parsable 2>/dev/null | cut -d: -f3)
mpicc -O1 -Wall -Wextra -Werror -o "$work/probe" "$here/hook_probe.c"

# job NAME: in the background; what it prints and logs is in $folder/out
job() {
    local root=()
    folder=$work/$1
    mkdir "$folder"
    [[ $(id -u) != 0 ]] || root=(--allow-run-as-root)
    timeout 180 mpirun "${root[@]}" --oversubscribe -np 2 --mca mca_base_component_path "$components:$hook_dir" \
        --mca hook_ha_library "$library" --mca hook_ha_report 2 -x LD_PRELOAD="$card" -x SOFTCARD_DIR \
        -x UCX_TLS=ha_rc,self -x UCX_LOG_LEVEL=info -x UCX_LOG_FILE=stderr \
        -x UCX_HA_RC_STATS_INTERVAL=0.1s -x UCX_HA_RC_STATS_FILE="$folder/%p.prom" \
        -x UCX_HA_RC_HEARTBEAT_MISSES=100 -x UCX_HA_RC_COOLDOWN=10ms -x UCX_HA_RC_COOLDOWN_MAX=10ms \
        "$work/probe" "$folder" >"$folder/out" 2>&1 &
    pid=$!
    wait_for 60 "begun" "$folder/out"
}

# wait_for SECONDS PATTERN FILE: a line is like it
wait_for() {
    local -i rest=$1*10
    until grep -qE -e "$2" "$3" 2>/dev/null; do
        if ((rest-- == 0)); then
            echo "waited in vain for '$2' in $3"
            return 1
        fi
        sleep 0.1
    done
}

# now NAME: what the statistics files of both processes have of it, the smaller one first
now() { sed -n "s/^ucx_ha_$1{.*} //p" "$folder"/*.prom 2>/dev/null | sort -n || true; }

are_protected() { [[ $(now pairs) == "$(now standbys)" && $(now pairs | grep -cvx 0) == 2 ]]; }
have_moved() { (($(now failovers_total | head -n 1) > before)); }

# until_fact NAME: half a minute for it
until_fact() {
    local -i rest=300
    until "$1"; do
        ((rest-- > 0)) || { echo "waited in vain: $1"; return 1; }
        sleep 0.1
    done
}

# cut RAIL: both processes leave it
cut() {
    before=$(now failovers_total | tail -n 1)
    "$tool" fault down "$1"
    until_fact have_moved
}

# mend RAIL: it is a standby again
mend() {
    "$tool" fault clear "$1"
    until_fact are_protected
}

job calm
until_fact are_protected
for ((i = 0; i < cuts; i++)); do
    cut sc$((i % 2))
    mend sc$((i % 2))
done
touch "$folder/stop"
wait "$pid" || expect 'exit status of the job' $? 0
replayed=0 retired=0 ep_errors=0
agree "$folder"
expect 'the longest pause, and the log' "$(longest "$folder")" right
expect 'rails at the end' "$(grep -c 'report: rails now: all up' "$folder/out")" 1
expect 'endpoints at the end' "$(grep -cE 'report: endpoints: [0-9]+, all with a standby' "$folder/out")" 1

job dark
until_fact are_protected
cut sc0
touch "$folder/stop"
wait "$pid" || expect 'exit status of the job' $? 0
expect 'rails at the end, one cut' \
    "$(grep -oE 'report: rails now.*' "$folder/out" | sed -E 's/at [^:]+/at H/')" \
    'report: rails now, at H: sc0:1, sc1:1 (1 up, 1 down)'
expect 'endpoints at the end, one cut' \
    "$(grep -cE 'report: endpoints: [0-9]+, of them [1-9][0-9]* without a standby now \(ranks 0, 1\)' "$folder/out")" 1

echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
