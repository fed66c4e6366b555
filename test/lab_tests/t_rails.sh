#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rails: ha_info finds each planted misconfiguration and nothing on a healthy host; jobs start
# with a dead rail, with one rail against two, with three, in zones; and are refused where
# rails cannot reach each other.
#
#   t_rails.sh     (shape two: own kernels, own subnets)
set -Eeuo pipefail

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

info=$HA_BUILD_DIR/tools/ha_info
[[ -x $info ]] || { echo "no $info; run make there" >&2; exit 2; }

in_lab two "$@"

# guest HOST SCRIPT: quietly; says so when it fails
guest() {
    "$LAB" exec --timeout 60 "$1" "$2" >>"$logs/guest.log" 2>&1 || {
        echo "# on $1: '$2' failed, see guest.log"
        return 1
    }
}

# ---- ha_info -----------------------------------------------------------------------------

# finds NAME STATUS IDS [A=B]...: on h1, ha_info --check ends with that status, and the ids of
# its findings but for notes are those, sorted, each once.
finds() {
    local name=$1 wanted_status=$2 wanted=$3 status=0 ids log
    shift 3
    log=$logs/info-${name//[^a-z0-9]/-}.log
    # shellcheck disable=SC2016
    "$LAB" exec --timeout 60 h1 bash -c 'ulimit -l "$1"; shift; exec env "$@" --check' x \
        "${memlock:-unlimited}" "$@" "$info" >"$log" 2>&1 || status=$?
    ids=$(sed -n 's/^\(WARNING\|PROBLEM\).*\[\([a-z-]*\)\]$/\2/p' "$log" | sort -u | paste -sd' ')
    if [[ $status == "$wanted_status" && $ids == "$wanted" ]]; then
        ok "ha_info: $name" "${ids:-nothing found}"
    else
        not_ok "ha_info: $name" "status $status, found '$ids' instead of $wanted_status, '$wanted'"
    fi
}

planted() {
    finds "healthy" 0 ""
    if grep -q '^note .*\[apm-capable\]' "$logs/info-healthy.log"; then
        ok "ha_info: path migration is noted" # Soft-RoCE says that it is capable
    else
        not_ok "ha_info: path migration is noted" "no note in info-healthy.log"
    fi
    finds "one rail only" 1 "single-rail" UCX_HA_RC_RAILS=rxe_a:1
    finds "no backup" 1 "backup-off" UCX_HA_RC_ENABLE_BACKUP=n
    finds "short RTO" 1 "rto-rule" UCX_HA_RC_RTO=500ms
    finds "long timeout" 1 "rto-rule" UCX_HA_RC_TIMEOUT=17 UCX_HA_RC_RTO=2s
    finds "retry for ever" 1 "retry-forever" UCX_HA_RC_RETRY_COUNT=7
    finds "no heartbeat" 1 "heartbeat-off" UCX_HA_RC_HEARTBEAT=0
    finds "no partition key there" 1 "cannot-open no-rail" UCX_HA_RC_PKEY_INDEX=3
    finds "no zone" 1 "no-zone" UCX_HA_RC_ALLOW_UNKNOWN_ZONE=n UCX_HA_RC_ZONES=eth0:x
    finds "bad value" 2 "" UCX_HA_RC_TIMEOUT=77
    memlock=64 finds "little locked memory" 1 "memlock"

    fault down a h1
    finds "dead port" 1 "port-down"
    fault up a h1
    guest h1 'ip addr flush dev eth1 scope global'
    finds "no address" 1 "gid-type"
    guest h1 'ip addr add 10.77.1.101/24 dev eth1'
    finds "one subnet" 1 "same-subnet"
    guest h1 'ip addr flush dev eth1 scope global; ip addr add 10.77.2.1/24 dev eth1; ip link set eth1 mtu 1500'
    finds "small MTU" 1 "mtu"
    guest h1 'ip link set eth1 mtu 4300'
    # two devices of one card: Soft-RoCE makes its GUIDs of the hardware address
    # shellcheck disable=SC2016
    guest h1 'rdma link delete rxe_b; ip link set eth1 down; cat /sys/class/net/eth1/address >/tmp/mac
        ip link set eth1 address $(cat /sys/class/net/eth0/address) up; ip addr replace 10.77.2.1/24 dev eth1
        rdma link add rxe_b type rxe netdev eth1'
    finds "one card" 1 "shared-fate"
    # shellcheck disable=SC2016
    guest h1 'rdma link delete rxe_b; ip link set eth1 down; ip link set eth1 address $(cat /tmp/mac) up
        ip addr replace 10.77.2.1/24 dev eth1; rdma link add rxe_b type rxe netdev eth1'
    finds "healthy again" 0 ""
}

# ---- jobs --------------------------------------------------------------------------------

# job NAME H1-SETTINGS H2-SETTINGS: a ping-pong; sets $job_status and $job_log. The settings are
# assignments separated by blanks.
job() {
    job_log=$logs/job-${1//[^a-z0-9]/-}.log
    job_status=0
    port=$((port + 1))
    # shellcheck disable=SC2016
    "$LAB" exec --timeout 90 both bash -c '
        library=$0 port=$1
        if [[ $LAB_HOST == h2 ]]; then settings=$3; else settings=$2; fi
        for setting in $settings; do export "${setting?}"; done
        export LD_PRELOAD=$library UCX_TLS=ha_rc,self
        if [[ $LAB_HOST == h2 ]]; then
            timeout 45 ucx_perftest -p "$port" 2>&1 | grep -v "^+\|^|"
            exit 0
        fi
        for try in 1 2 3 4 5 6; do # the server may not listen yet
            sleep 0.5
            timeout 40 ucx_perftest h2 -p "$port" -t tag_lat -s 8 -n 200 -w 20 >"/tmp/perftest.$port" 2>&1 && break
            grep -q "Connection refused" "/tmp/perftest.$port" || break
        done
        cat "/tmp/perftest.$port"
        grep -q "^Final:" "/tmp/perftest.$port"
        ' "$HA_LIB" "$port" "$2" "$3" >"$job_log" 2>&1 || job_status=$?
}

# runs NAME H1-SETTINGS H2-SETTINGS [TEXT]: the job runs; its output has the text
runs() {
    job "$1" "$2" "$3"
    if ((job_status != 0)); then
        not_ok "$1" "status $job_status: $(grep -hE 'ERROR|error|failed' "$job_log" | head -n 2 | cut -c1-200 | paste -sd' ')"
    elif [[ -n ${4:-} ]] && ! grep -q "$4" "$job_log"; then
        not_ok "$1" "nothing says '$4'"
    else
        ok "$1"
    fi
}

# refused NAME H1-SETTINGS H2-SETTINGS: UCX says that there is no way, and does not hang
refused() {
    job "$1" "$2" "$3"
    if ((job_status == 0)); then
        not_ok "$1" "it runs"
    elif ! grep -qi 'unreachable\|no .*transport' "$job_log"; then
        not_ok "$1" "status $job_status, not refused: $(tail -n 2 "$job_log" | cut -c1-200 | paste -sd' ')"
    else
        ok "$1" "$(grep -hoiE 'destination is unreachable[^.]*|no [a-z ]*transport[^.]*' "$job_log" | head -n 1 | cut -c1-80)"
    fi
}

dead_at_start() {
    fault down a h1
    runs "job starts, rail a dead at h1" "" ""
    fault up a h1
    fault down a h2
    runs "job starts, rail a dead at h2" "" ""
    fault up a h2
    fault drop a
    runs "job starts, rail a silent" "" ""
    fault clear a
}

different_numbers() {
    runs "one rail against two" "UCX_HA_RC_RAILS=rxe_a:1" "" "no failover with peer .* single rail"
    runs "two rails against one" "" "UCX_HA_RC_RAILS=rxe_b:1" "no failover with peer .* single rail"
}

zones() {
    local both_a="UCX_HA_RC_ZONES=10.77.1.0/24:x,10.77.2.0/24:y"
    runs "zones, all alike" "$both_a" "$both_a"
    runs "zones alone allowed" "$both_a UCX_HA_RC_ALLOW_UNKNOWN_ZONE=n" "$both_a UCX_HA_RC_ALLOW_UNKNOWN_ZONE=n"
    runs "zones forbid rail a" "UCX_HA_RC_ZONES=rxe_a:x,rxe_b:y" "UCX_HA_RC_ZONES=rxe_a:z,rxe_b:y" "no failover with peer"
    refused "zones forbid every pair" "UCX_HA_RC_ZONES=rxe_a:x,rxe_b:x" "UCX_HA_RC_ZONES=rxe_a:z,rxe_b:z"
    refused "an unknown zone is not allowed" "UCX_HA_RC_ZONES=rxe_a:x,rxe_b:x UCX_HA_RC_ALLOW_UNKNOWN_ZONE=n" ""
}

# The rails of the lab are two fabrics that do not know each other.
separate_fabrics() {
    runs "separate fabrics, rails in another order" "UCX_HA_RC_RAILS=rxe_a:1+rxe_b:1" "UCX_HA_RC_RAILS=rxe_b:1+rxe_a:1"
    refused "separate fabrics, rails that never meet" "UCX_HA_RC_RAILS=rxe_a:1" "UCX_HA_RC_RAILS=rxe_b:1"
}

# The management network carries a third one.
three_rails() {
    guest both 'rdma link add rxe_c type rxe netdev eth2'
    if (($("$LAB" exec h1 "$info" --pairs | tee "$logs/pairs.log" | grep -c 'other card') == 3)); then
        ok "three rails back each other in turn"
    else
        not_ok "three rails back each other in turn" "$(paste -sd' ' "$logs/pairs.log")"
    fi
    runs "three rails" "" ""
    runs "three rails against two" "" "UCX_HA_RC_RAILS=rxe_a:1+rxe_b:1"
    guest both 'rdma link delete rxe_c'
}

# The first rail of all is UCX's choice among equals; with SPREAD it is either, by chance, and
# both sides make the same choice.
chosen() { # the rail of the first lane, as each host says
    grep -ohE 'ep_cfg\[[0-9]+\]:.*\(ha_rc/rxe_[ab]:1' "$job_log" | grep -oE 'rxe_[ab]' | sort -u | paste -sd' '
}

spread() {
    local said="UCX_LOG_LEVEL=info" seen="" tries=0
    job "rails alike" "$said" "$said"
    if ((job_status == 0)) && [[ $(chosen) == rxe_a ]]; then
        ok "of equal rails the first one is taken"
    else
        not_ok "of equal rails the first one is taken" "status $job_status, '$(chosen)'"
    fi
    while ((tries < 16)) && [[ $seen != *rxe_a* || $seen != *rxe_b* ]]; do
        tries=$((tries + 1))
        job "spread $tries" "$said UCX_HA_RC_SPREAD=y" "$said UCX_HA_RC_SPREAD=y"
        ((job_status == 0)) && [[ $(chosen) == rxe_[ab] ]] || break
        seen+=" $(chosen)"
    done
    if ((job_status == 0)) && [[ $seen == *rxe_a* && $seen == *rxe_b* ]]; then
        ok "SPREAD=y takes either of two equal rails" "$seen"
    else
        not_ok "SPREAD=y takes either of two equal rails" "status $job_status, seen '$seen'"
    fi
}

planted
dead_at_start
different_numbers
zones
separate_fabrics
three_rails
spread
finish
