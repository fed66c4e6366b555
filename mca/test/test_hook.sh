#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Open MPI component against a stand-in for libuct_ha.so: what it sets, what
# it leaves alone, what it says. Needs Open MPI, no RDMA.
#
#   HOOK_DIR   directory with a built mca_hook_ha.so; default: that of the build tree
#              we are in (make check), else build one
#   OMPI_INCLUDE, MPICC, CC   as usual
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
for tool in mpirun ompi_info mpicc; do
    command -v "$tool" >/dev/null || { echo "SKIP: no $tool here (apt-get install libopenmpi-dev)"; exit 77; }
done
[[ -n ${HOOK_DIR:-} || ! -e mca/.libs/mca_hook_ha.so ]] || HOOK_DIR=$PWD/mca/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
in_states=() # a command that the job is started by

build() {
    local flags=(-std=gnu11 -O1 -g -Wall -Wextra -Werror -fPIC -shared -I"$top")
    local include=${OMPI_INCLUDE:-$(mpicc --showme:incdirs | cut -d' ' -f1)}

    if [[ -z ${HOOK_DIR:-} ]]; then
        HOOK_DIR=$work/mca
        mkdir -p "$HOOK_DIR"
        "${CC:-cc}" "${flags[@]}" -I"$here/.." -isystem "$include" -isystem "$include/openmpi" \
            -o "$HOOK_DIR/mca_hook_ha.so" "$here"/../hook_ha_*.c
    fi
    "${CC:-cc}" "${flags[@]}" -o "$work/libfake.so" "$here/fake_uct_ha.c"
    printf 'int nothing;\n' >"$work/empty.c"
    "${CC:-cc}" -fPIC -shared -o "$work/libempty.so" "$work/empty.c"
    "${MPICC:-mpicc}" -Wall -Wextra -Werror -o "$work/probe" "$here/hook_probe.c"
}

# probe [mpirun arguments]: everything the process printed, in $output.
# HOME is ours, so that the user's own parameter file plays no part.
probe() {
    local components
    components=$(ompi_info --path pkglibdir --parsable 2>/dev/null | cut -d: -f3)
    local root=()
    [[ $(id -u) == 0 ]] && root=(--allow-run-as-root)
    output=$(HOME=${home:-$work} timeout 60 "${in_states[@]}" mpirun "${root[@]}" -np "${ranks:-1}" --oversubscribe \
        --mca mca_base_component_path "$components:$HOOK_DIR" "$@" "$work/probe" 2>&1) || true
}

fake=(--mca hook_ha_library "$work/libfake.so")
# UCX here has no ha_rc: let pml/ucx take what there is.
loose=(--mca hook_ha_tls 'ha_rc,tcp,sm,self' --mca opal_common_ucx_tls any)

expect() { # NAME LINE-OR-TEXT...: all must be in the output; a leading ! means must not
    local name=$1 text ok=1
    shift
    for text in "$@"; do
        if [[ $text == !* ]]; then
            [[ $output != *"${text:1}"* ]] || ok=0
        else
            [[ $output == *"$text"* ]] || ok=0
        fi
        [[ $ok == 1 ]] || break
    done
    if [[ $ok == 1 ]]; then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        echo "FAIL $name: '$text'; output was:"
        sed 's/^/     | /' <<<"$output"
    fi
}

untouched=('UCX_TLS=(unset)' 'OMPI_MCA_pml=(unset)' 'OMPI_MCA_osc=(unset)'
    'OMPI_MCA_opal_common_ucx_devices=(unset)' 'hook_ha_failovers=')

build

probe "${fake[@]}" "${loose[@]}"
expect 'library and device present: defaults are set' \
    'UCX_TLS=ha_rc,tcp,sm,self' 'OMPI_MCA_pml=^cm' 'OMPI_MCA_osc=ucx,sm' \
    'OMPI_MCA_opal_common_ucx_devices=any' '!hook/ha'
expect 'MPI_T shows the totals of the library' 'hook_ha_failovers=3' 'hook_ha_replayed=17' \
    'hook_ha_retired=5' 'hook_ha_outage_ns_total=1500000' 'hook_ha_rails_up=2' \
    'hook_ha_heartbeats_missed=9' '!=error'

probe "${fake[@]}" "${loose[@]}" --mca hook_ha_verbose 1
expect 'verbose tells what was loaded and the totals' "loaded $work/libfake.so" \
    'failovers 3, replayed 17'

probe "${fake[@]}" --mca hook_ha_tls ha_rc,sm,self
expect 'pml/ucx finds no transport: job runs on ob1 and says so' 'Open MPI took pml/ob1' \
    'OMPI_MCA_pml=^cm'

probe "${fake[@]}" "${loose[@]}" -x UCX_TLS=ha_rc,self,sm --mca pml ucx --mca osc sm
expect 'settings of the user stand' 'UCX_TLS=ha_rc,self,sm' 'OMPI_MCA_pml=ucx' 'OMPI_MCA_osc=sm'

probe --mca pml ob1
expect 'another pml chosen: nothing set' 'UCX_TLS=(unset)' 'OMPI_MCA_pml=ob1' \
    'OMPI_MCA_osc=(unset)' '!hook/ha'
probe --mca pml ob1 --mca hook_ha_verbose 1
expect 'another pml chosen: verbose tells' 'nothing to do: pml=ob1 excludes ucx'
probe "${fake[@]}" --mca pml ob1
expect 'another pml chosen, library named: told' 'UCX_TLS=(unset)' 'OMPI_MCA_osc=(unset)' \
    'asked for, but pml=ob1 excludes ucx'
probe -x UCX_TLS=tcp,self --mca hook_ha_enable 1
expect 'enabled by name, UCX_TLS without ha_rc: told' 'UCX_TLS=tcp,self' 'asked for, but UCX_TLS=tcp,self excludes'
probe -x UCX_TLS=ha_rc --mca pml ob1
expect 'ha_rc named, another pml: told' 'asked for, but pml=ob1 excludes ucx'

probe "${fake[@]}" --mca pml ^ucx
expect 'ucx excluded on the command line: nothing set' 'UCX_TLS=(unset)' 'OMPI_MCA_pml=^ucx'

probe "${fake[@]}" -x UCX_TLS=tcp,self --mca hook_ha_verbose 1
expect 'UCX_TLS without ha_rc: nothing set' 'UCX_TLS=tcp,self' 'OMPI_MCA_pml=(unset)' \
    'UCX_TLS=tcp,self excludes ha_rc'
probe "${fake[@]}" -x UCX_TLS=^ha_rc
expect 'UCX_TLS=^ha_rc: nothing set' 'OMPI_MCA_pml=(unset)'
probe "${fake[@]}" "${loose[@]}" -x UCX_TLS=all
expect 'UCX_TLS=all: joins in' 'UCX_TLS=all' 'OMPI_MCA_pml=^cm'

probe "${fake[@]}" "${loose[@]}" --mca pml_ucx_devices 'mlx*'
expect 'a synonym of a parameter counts as set' 'OMPI_MCA_opal_common_ucx_devices=(unset)'

probe "${fake[@]}" --mca hook_ha_enable 0
expect 'disabled: nothing set' "${untouched[@]}" '!hook/ha'

home=$work/home
mkdir -p "$home/.openmpi"
echo 'pml = ob1' >"$home/.openmpi/mca-params.conf"
probe "${fake[@]}"
# the launcher of Open MPI 5 reads that file itself, and passes on what it says
expect 'pml in the own parameter file of the user stands' \
    "${untouched[@]/OMPI_MCA_pml=(unset)/OMPI_MCA_pml=}" '!OMPI_MCA_pml=^cm'
home=

probe -x FAKE_UCT_HA=norail "${fake[@]}" "${loose[@]}" -x UCX_NET_DEVICES=lo
expect 'pml/ucx without ha_rc: told' 'UCX uses no device of ha_rc' 'UCX_NET_DEVICES=lo'

probe --mca hook_ha_require 1 "${fake[@]}" "${loose[@]}"
expect 'required and there: runs' 'UCX_HA_RC_REQUIRE=y' '!hook_ha_require=1'
probe --mca hook_ha_require 1 -x FAKE_UCT_HA=nodevice "${fake[@]}"
expect 'required, no device: the job ends' 'hook_ha_require=1, and this process has no ha_rc: ' 'no usable RDMA device' \
    '!goes on without it' '!OMPI_MCA_pml='
probe --mca hook_ha_require 1 --mca pml ob1
expect 'required, another pml: the job ends' 'hook_ha_require=1' 'pml=ob1 excludes ucx' '!OMPI_MCA_pml='
probe --mca hook_ha_require 1 -x FAKE_UCT_HA=norail "${fake[@]}" "${loose[@]}" -x UCX_NET_DEVICES=lo
expect 'required, UCX uses no rail: the job ends' 'UCX uses no device of it' '!OMPI_MCA_pml='
probe -x FAKE_UCT_HA=nodevice "${fake[@]}"
expect 'no device: nothing set, one line as a library was named' "${untouched[@]}" \
    'no usable RDMA device'
probe -x FAKE_UCT_HA=refused "${fake[@]}"
expect 'UCX refused: nothing set, not told again' "${untouched[@]}" '!hook/ha'
probe -x FAKE_UCT_HA=refused "${fake[@]}" --mca hook_ha_verbose 1
expect 'UCX refused: verbose tells again' "${untouched[@]}" 'the wrong UCX'
probe -x FAKE_UCT_HA=silent "${fake[@]}"
expect 'not registered: nothing set, told' "${untouched[@]}" 'did not register with UCX'
probe --mca hook_ha_library "$work/libempty.so"
expect 'not a transport: nothing set, told' "${untouched[@]}" 'not a UCX transport of ucx-ha'
probe --mca hook_ha_library "$work/none.so"
expect 'library missing: nothing set, told' "${untouched[@]}" "$work/none.so" 'cannot open'

# ---- the report at the end ----

# reported [mpirun arguments]: as probe, with two processes
reported() { ranks=2 probe "${fake[@]}" "${loose[@]}" -x OMPI_MCA_hook_ha_report=1 "$@"; }
report='hook/ha: report:'

probe "${fake[@]}" "${loose[@]}" --mca hook_ha_verbose 1
expect 'no report unless it was asked for' "!$report"
reported
expect 'report: sum, longest pause, rails, endpoints' \
    "$report failovers 6 in 2 of 2 processes" 'sent again 34, confirmed 10' \
    "$report longest pause at most 513.0 ms, silence and move together (rank 0 at $(hostname))" \
    "$report rails now: all up" "$report endpoints: 8, all with a standby" '!NOT all went well' '!rank 1'
[[ $(grep -cF "$report" <<<"$output") == 4 ]] || output+=' (not four lines)'
expect 'report: once for the job' '!(not four lines)'
ranks=2 probe "${fake[@]}" "${loose[@]}" --mca hook_ha_report 2
own="failovers 3, longest pause at most 513.0 ms; rails: fake0:1 up, fake1:1 up; endpoints 4, without a standby 0"
expect 'report 2: and each process' "$report rank 0 at $(hostname): $own" \
    "$report rank 1 at $(hostname): failovers 3" "$report failovers 6 in 2"
reported -x FAKE_UCT_HA=quiet
expect 'report: nothing happened' "$report no failover in 2 processes" '!pause'
reported -x FAKE_UCT_HA=down
expect 'report: a rail down, endpoints without a standby, errors' \
    'rails now, at '"$(hostname)"': fake0:1, fake1:1 (1 up, 1 down)' \
    'endpoints: 8, of them 8 without a standby now (ranks 0, 1)' 'NOT all went well: 2 endpoints ended with an error'
reported -x FAKE_UCT_HA=nodevice
expect 'report: no process has ha_rc' "$report 2 processes had no ha_rc, the first one rank 0" 'no usable RDMA device' \
    '!no failover' '!rails now' '!endpoints:'
reported --mca hook_ha_enable 0
expect 'report: disabled is disabled' "!$report"
cat >"$work/third" <<'THIRD'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" != 2 ] || export OMPI_MCA_hook_ha_enable=0 OMPI_MCA_pml=ucx UCX_TLS=tcp,sm,self \
    OMPI_MCA_opal_common_ucx_devices=any
exec "$@"
THIRD
chmod +x "$work/third"
ranks=3 probe "${fake[@]}" "${loose[@]}" -x OMPI_MCA_hook_ha_report=1 --mca hook_ha_report_wait 2 "$work/third"
expect 'report: a process that sends nothing does not hold up the others' "$report failovers 6 in 2 of 2 processes" \
    '1 process sent nothing for 2 s, the first one rank 2'
# The driver knows which rail is down: a made-up /sys/class for nobody but this job.
states='mount -t tmpfs none /sys/class && for i in 0 1; do mkdir -p /sys/class/infiniband/fake$i/ports/1; done &&
    echo "4: ACTIVE" >/sys/class/infiniband/fake0/ports/1/state &&
    echo "1: DOWN" >/sys/class/infiniband/fake1/ports/1/state'
if unshare --mount --map-root-user sh -c "$states" 2>/dev/null; then
    in_states=(unshare --mount --map-root-user sh -c "$states"' && exec "$@"' sh)
    reported -x FAKE_UCT_HA=down
    in_states=()
    expect 'report: each rail by the state of its port' "rails now, at $(hostname): fake0:1 up, fake1:1 down"
else
    skipped=1
    echo 'skip report: each rail by the state of its port: no name space for a /sys/class of our own'
fi

output=$(OMPI_MCA_mca_base_component_path="$(ompi_info --path pkglibdir --parsable |
    cut -d: -f3):$HOOK_DIR" ompi_info --param hook ha --level 9 2>&1)
expect 'ompi_info shows parameters and variables' '"hook_ha_enable"' '"hook_ha_tls"' \
    '"hook_ha_library"' '"hook_ha_verbose"' '"hook_ha_failovers"' '"hook_ha_report"' '"hook_ha_report_wait"' \
    'rank 0 says for the whole job'

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
