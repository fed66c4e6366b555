#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Open MPI component in jobs of Python: the distribution's mpi4py, the library as built, nothing
# stands in. Python loads libmpi with RTLD_LOCAL, so the component finds Open MPI only if it says what
# it needs; else Open MPI leaves it out and the job runs on unprotected. Needs no RDMA: without a
# device the component says so.
#
#   HOOK_DIR, HA_LIB   component's folder and library; default: of the build tree we are in
#   PYTHON             a Python with mpi4py; default: /usr/bin/python3
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hook_dir=${HOOK_DIR:-$PWD/mca/.libs}
library=${HA_LIB:-$PWD/.libs/libuct_ha.so.0}
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import mpi4py' 2>/dev/null || { echo "SKIP: no mpi4py (apt-get install python3-mpi4py)"; exit 77; }
command -v mpirun >/dev/null || { echo "SKIP: no mpirun (apt-get install openmpi-bin)"; exit 77; }
passed=0 failed=0 skipped=0
traffic=() # until this file is there: none
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
components=$(ompi_info --path pkglibdir --parsable 2>/dev/null | cut -d: -f3)

# job RANKS [mpirun arguments]: everything the job printed, and its exit status, in $output.
job() {
    local ranks=$1 root=()
    shift
    [[ $(id -u) != 0 ]] || root=(--allow-run-as-root)
    timeout 90 mpirun "${root[@]}" --oversubscribe -np "$ranks" --mca mca_base_component_path "$components:$hook_dir" "$@" \
        "$python" "$here/mpi4py_probe.py" "${traffic[@]}" >"$work/out" 2>&1 && echo "exit 0" >>"$work/out" || true
    output=$(<"$work/out")
}

expect() { # NAME TEXT COUNT ...: each text comes so many times
    local name=$1 count
    shift
    while (($# > 0)); do
        count=$(grep -oF -e "$1" <<<"$output" | wc -l || true)
        if [[ $count != "$2" ]]; then
            failed=$((failed + 1))
            echo "FAIL $name: '$1' $count times, not $2; output was:"
            sed 's/^/     | /' <<<"$output"
            return
        fi
        shift 2
    done
    passed=$((passed + 1))
    echo "ok   $name"
}

# "loaded" where there is a device, else why not: said by the component in both cases.
decided='hook/ha: '

job 1 --mca hook_ha_library "$library" --mca hook_ha_verbose 1
expect 'one process: the component is there' 'rank 0 of 1: sum 1' 1 'rank 0 sees hook_ha_failovers' 1 \
    'undefined symbol' 0 'exit 0' 1
[[ $output == *"$decided"* ]] || { failed=$((failed + 1)); echo "FAIL the component said nothing: $output"; }

job 2 --mca hook_ha_library "$library"
expect 'two processes: the component is in both' 'of 2: sum 3' 2 'sees hook_ha_failovers' 2 \
    'undefined symbol' 0 'exit 0' 1

job 2 --mca hook_ha_library /nowhere/libuct_ha.so.0
expect 'no library: one line for the host' 'sum 3' 2 "$decided" 1 '--mca hook_ha_library PATH' 1 'exit 0' 1

job 2 --mca hook_ha_enable 1 --mca pml ob1
expect 'another pml: one line' 'sum 3' 2 "$decided" 1 'pml=ob1 excludes ucx' 1 'exit 0' 1

job 2 -x UCX_TLS=ha_rc,self --mca pml ob1
expect 'ha_rc named, another pml: one line' 'sum 3' 2 "$decided" 1 'exit 0' 1

job 2 --mca pml ob1
expect 'nobody asked: no line' 'sum 3' 2 "$decided" 0 'exit 0' 1

# Over ha_rc itself, where the tree has a card made of software.
card=$PWD/.libs/libsoftcard.so tool=$PWD/test/softcard/softcard fabric=$work/fabric
mkdir "$fabric"
if [[ -e $card ]]; then
    job 2 -x LD_PRELOAD="$card" -x SOFTCARD_DIR="$fabric" -x UCX_TLS=ha_rc,self --mca hook_ha_library "$library" \
        --mca hook_ha_verbose 1
    expect 'over ha_rc: loaded, used, counted' 'sum 3' 2 "${decided}loaded $library" 2 "${decided}failovers 0" 2 \
        'Open MPI took' 0 'UCX uses no device' 0 'exit 0' 1
fi

# And with a rail cut while messages are under way: all of them are right, and the component counted.
cut() {
    for _ in {1..200}; do
        ! grep -q begun "$work/out" || break
        sleep 0.1
    done
    sleep 0.5
    SOFTCARD_DIR=$fabric "$tool" fault down sc0
    sleep 1
    touch "$work/stop"
}
if [[ -e $card && -x $tool ]]; then
    traffic=("$work/stop")
    : >"$work/out"
    cut &
    job 2 -x LD_PRELOAD="$card" -x SOFTCARD_DIR="$fabric" -x UCX_TLS=ha_rc,self --mca hook_ha_library "$library" \
        --mca hook_ha_verbose 1
    wait $! || true
    expect 'over ha_rc, a rail cut in the middle' 'wrong 0' 2 'sum 3' 2 'failover: 1 endpoint' 2 ' left sc0:1' 2 \
        "${decided}failovers 1" 2 'endpoint errors 0' 2 'exit 0' 1
else
    skipped=1
    echo "skip over ha_rc, a rail cut in the middle: no $tool"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
