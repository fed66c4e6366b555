#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail that is bad but not dead, while the other one is well: it loses 30 % of all frames, it is gone for 100 ms as
# often as the host can, up to five times a second, it takes far longer than it used to. Two seconds later the traffic has at least 0.8 of its calm rate,
# by the other rail. Both rails equally bad: nobody moves.
#
#   l_bad.sh [--shape one|two] [--parts WORDS]     of loss, loss-there, flaps, delay, both (default: all)
set -Eeuo pipefail

shape=two parts="loss loss-there flaps delay both" seed=${HA_SEED:-$((RANDOM + 1))}

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "shape parts" "$@"
in_lab "$shape" "$@"

look=4         # seconds of each measurement
least_ratio=80 # percent of the calm rate
flapper=""

# sample: "TIME OPERATIONS" of the present pair at h1, of one moment
# shellcheck disable=SC2154 # share: in_lab
sample() {
    tr ' ' '\n' <"$share/$port.$run.h1" | sed -n 's/^\(time\|operations\)=//p' | paste -sd' '
}

# rate: $rate, operations a second from now on
rate() {
    local first second
    first=$(sample)
    sleep "$look"
    second=$(sample)
    rate=$(awk '{ printf "%d", ($4 - $2) / ($3 - $1) }' <<<"$first $second")
}

# The rail is silent for 100 ms, and well for 100 ms, again and again: at h1, where nothing comes in or goes out.
flap() {
    # shellcheck disable=SC2016
    exec "$LAB" exec --timeout 60 h1 bash -c 'mkfifo /tmp/never; exec 9<>/tmp/never # to wait without a process
        for i in $(seq $1); do
            echo "qdisc replace dev $0 root netem loss 100%"; read -rt 0.1 -u 9
            echo "qdisc replace dev $0 root netem loss 0%"; read -rt 0.1 -u 9
            echo "$i" >&2
        done | tc -batch -; tc qdisc del dev "$0" root' "$1" "$2" >"$logs/flaps" 2>&1
}

# Milliseconds for each way, so that a probe takes fifty times as long as it does.
slowed() {
    local seconds
    seconds=$("$LAB" exec --timeout 20 h1 'cat /tmp/bad.*' | sed -n 's/^ucx_ha_path_round_trip{.*rail="rxe_a[^}]*} //p' |
        head -n 1) || true
    echo "# a probe takes $seconds s" >&2
    awk -v usual="${seconds:-0}" 'BEGIN { ms = 25000 * usual; printf "%d", (ms < 25 ? 25 : (ms > 2000 ? 2000 : ms)) }'
}

# strike PART: from now on the rail is bad
strike() {
    case $1 in
    loss) fault loss a 30 ;;
    loss-there) fault loss a h2 30 ;;
    delay) fault delay a "$(slowed)" ;;
    both) fault loss all 10 ;;
    flaps)
        if [[ $shape == two ]]; then device=eth0; else device=va1; fi
        flap "$device" 60 &
        flapper=$!
        ;;
    esac
}

# part WHAT: $found, or $why
bad_rail() {
    local calm moved
    flows 60 && redundant 60 || { why="no traffic with a standby"; return 1; }
    sleep 3 # what is usual is known by then
    rate
    calm=$rate
    moved=$(field h1 failovers)
    ((moved == 0)) || { why="$moved failovers before"; return 1; }
    strike "$1" || { why="the lab could not do it"; return 1; }
    sleep 2
    rate
    [[ $1 != flaps ]] || found="$(wc -l <"$logs/flaps") flaps; "
    if [[ -n $flapper ]]; then
        wait "$flapper" || true
        flapper=""
    fi
    moved=$(($(field h1 failovers) + $(field h2 failovers)))
    found+="$calm operations a second before, $rate from 2 to $((look + 2)) s after, $moved failovers"
    if [[ $1 == both ]]; then
        ((moved == 0)) || { why="$found"; return 1; }
    else
        ((moved > 0 && 100 * rate >= least_ratio * calm)) || { why="$found"; return 1; }
    fi
    fault clear all || { why="the lab could not do it"; return 1; }
    stop_pair
    verdict || return 1
}

devices="rxe_a:1"
[[ $shape == two ]] || devices="rxe_a1:1,rxe_a2:1"
for part in $parts; do
    found="" why=""
    start "bad-$part" -e UCX_NET_DEVICES="$devices" -e UCX_HA_RC_STATS_FILE=/tmp/bad.%h.%p \
        -e UCX_HA_RC_STATS_INTERVAL=1s --seed "$seed" --seconds 900 --ops tag,am,put --sizes small --window 64
    if bad_rail "$part"; then
        ok "$part" "$found"
    else
        not_ok "$part" "$why$(first_wrong)"
        abandon
    fi
done
finish
