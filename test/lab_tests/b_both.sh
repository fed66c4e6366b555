#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Both rails at work at once, each the other's standby: UCX's multi-rail uses both devices, and one alone
# when the other is dead; and whose own rail is well notices nothing of those who lose theirs.
#
#   b_both.sh [--shape one|two] [--rounds N]     N failovers beside healthy traffic (default 4)
set -Eeuo pipefail

shape=two rounds=4 seed=${HA_SEED:-$((RANDOM + 1))}

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "shape rounds" "$@"
in_lab "$shape" "$@"

look=4          # seconds of each measurement
least_share=20  # percent of the bytes on each rail when both work
least_ratio=80  # percent of the throughput that a healthy rail had before

# ---- one process, two devices ------------------------------------------------------------

# sent RAIL: bytes that h1 has sent on it, of whatever kind
sent() {
    local device
    case $shape.$1 in
    two.a) device=eth0 ;;
    two.b) device=eth1 ;;
    *) device=v${1}1 ;;
    esac
    "$LAB" exec h1 "cat /sys/class/net/$device/statistics/tx_bytes"
}

# measure_shares: $share_a and $share_b, percent of what h1 sends meanwhile
measure_shares() {
    local a b total
    a=$(sent a) b=$(sent b)
    sleep "$look"
    a=$(($(sent a) - a)) b=$(($(sent b) - b)) total=$((a + b))
    ((total > 100000)) || { why="only $total bytes sent in $look s"; return 1; }
    share_a=$((100 * a / total)) share_b=$((100 * b / total))
}

# both_carry TRIES: each rail has its share, at the latest in the last try
both_carry() {
    local try
    for ((try = 0; try < $1; try++)); do
        measure_shares || return 1
        ((share_a < least_share || share_b < least_share)) || return 0
    done
    why="rail a carries $share_a %, rail b $share_b % of the bytes"
    return 1
}

multi_rail() {
    local before found
    flows 60 || { why="no traffic"; return 1; }
    redundant 60 || { why="no standby for every pair"; return 1; }
    both_carry 3 || return 1
    found="$share_a % on rail a, $share_b % on rail b"
    before=$(field h1 failovers)
    fault drop a || { why="the lab could not do it"; return 1; }
    wait_field h1 failovers $((before + 1)) 20 || { why="no failover within 20 s"; return 1; }
    flows 30 || { why="no traffic after the failover"; return 1; }
    sleep 2 # the last lane may have found out later
    measure_shares || return 1
    ((share_a <= 2)) || { why="the dead rail still carries $share_a % of the bytes"; return 1; }
    found+="; $share_b % on rail b after the cut"
    fault clear a || { why="the lab could not do it"; return 1; }
    redundant 60 || { why="rail a did not become a standby again"; return 1; }
    both_carry 8 || { why="after the repair $why"; return 1; }
    stop_pair
    verdict || return 1
    what="$found; $share_a % and $share_b % after the repair"
}

test_multi_rail() {
    local name="both rails carry one job"
    start multi -e UCX_MAX_RNDV_RAILS=2 -e UCX_MAX_EAGER_RAILS=2 -e UCX_RNDV_THRESH=16k -e UCX_HA_RC_FAILBACK=1s \
        --seed "$seed" --seconds 900 --ops tag --sizes large --window 64
    if multi_rail; then
        ok "$name" "$what"
    else
        not_ok "$name" "$why$(first_wrong)"
        abandon
    fi
}

# ---- two jobs, one device each -----------------------------------------------------------

declare -A port_of=()
last_port=$port

# begin NAME RAIL ARGS...: a pair of its own beside others, over that rail's device
begin() {
    local name=$1 rail=$2 devices="rxe_$2:1"
    shift 2
    [[ $shape == two ]] || devices="rxe_${rail}1:1,rxe_${rail}2:1"
    port=$last_port
    start "$name" -e UCX_NET_DEVICES="$devices" --seed "$seed" --seconds 900 --ops tag,am --sizes small "$@"
    last_port=$port port_of[$run]=$port
}

# turn_to NAME: fields, verdict and so on are those of that pair
turn_to() { run=$1 port=${port_of[$1]}; }

# sample: "TIME OPERATIONS" of the present pair at h1, of one moment
# shellcheck disable=SC2154 # share: in_lab
sample() {
    tr ' ' '\n' <"$share/$port.$run.h1" | sed -n 's/^\(time\|operations\)=//p' | paste -sd' '
}

# add NAME SAMPLE SAMPLE: to the sums "SECONDS OPERATIONS" in the variable NAME
add() {
    printf -v "$1" %s "$(awk '{ print $1 + $5 - $3, $2 + $6 - $4 }' <<<"${!1} $2 $3")"
}

# Each round another job, of little work, loses rail a, while one that has its work on rail b goes on. What that
# one does is measured before, meanwhile, and when the other has its standby again: a drift of the machine cancels out.
beside_a_dying_one() {
    local n first second third calm="0 0" during="0 0" ratio rate_calm rate_during
    for ((n = 1; n <= rounds; n++)); do
        begin "dying$n" a --window 16
        flows 60 && redundant 60 || { why="round $n: no traffic with a standby on rail a"; return 1; }
        turn_to healthy
        redundant 30 || { why="round $n: the healthy job has no standby"; return 1; }
        first=$(sample)
        sleep "$look"
        second=$(sample)
        fault drop a || { why="the lab could not do it"; return 1; }
        sleep "$look"
        third=$(sample)
        add calm "$first" "$second"
        add during "$second" "$third"
        turn_to "dying$n"
        wait_field h1 failovers 1 20 || { why="round $n: no failover within 20 s"; return 1; }
        flows 30 || { why="round $n: no traffic after the failover"; return 1; }
        fault clear a || { why="the lab could not do it"; return 1; }
        redundant 60 || { why="round $n: rail a did not become a standby again"; return 1; }
        turn_to healthy
        first=$(sample)
        sleep "$look"
        add calm "$first" "$(sample)"
        turn_to "dying$n"
        stop_pair
        verdict || { why="round $n: $why"; return 1; }
    done
    turn_to healthy
    stop_pair
    verdict || return 1
    if (($(json healthy.h1 failovers) + $(json healthy.h2 failovers) > 0)); then
        why="the healthy job failed over"
        return 1
    fi
    read -r ratio rate_calm rate_during < <(awk '{ printf "%d %d %d\n", 100 * ($4 / $3) / ($2 / $1), $2 / $1, $4 / $3 }' \
        <<<"$calm $during")
    what="$rate_calm operations/s in calm, $rate_during while others fail over ($ratio %)"
    ((ratio >= least_ratio)) || { why="$what"; return 1; }
}

test_healthy() {
    local name="a healthy rail does not slow down" n
    begin healthy b --window 256
    if flows 60 && beside_a_dying_one; then
        ok "$name" "$what; longest silence $(json healthy.h1 max_stall_ms) ms"
    else
        not_ok "$name" "${why:-no traffic}$(first_wrong)"
        for ((n = 1; n <= rounds; n++)); do
            [[ -z ${port_of[dying$n]:-} ]] || { turn_to "dying$n"; abandon; }
        done
        turn_to healthy
        abandon
    fi
}

why="" what=""
echo "# shape $shape, seed $seed, $rounds rounds"
test_multi_rail
last_port=$port
test_healthy
finish
