#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_certify as its user runs it, by ssh: a rail broken by `ip link`, a cable that somebody pulls when asked.
#
#   c_certify.sh [--cable | --planted [replay] [standby] [unknown]]     (shape one)
#
#   --cable      the cable as well
#   --planted    instead, all or those named: what must not be certified. A library that sends everything again, a rail
#                without a standby; and faults that Soft-RoCE does not know. By hand: some minutes each, on a busy
#                machine ten.
set -Eeuo pipefail

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
what=${1:-}
case $what in
"" | --cable | --planted) ;;
*) echo "c_certify.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
esac
in_lab one "$@"
shift $(($# > 0))
planted=" ${*:-replay standby unknown} " limit=400
[[ $what != --planted ]] || limit=900

# certify NAME STATUS TEXT ARGS...: its exit status, and what it says. Emulated hosts starve: silence is no proof.
certify() {
    local name=$1 expected=$2 text=$3 status=0 log
    shift 3
    log=$logs/certify-${name//[^a-z0-9]/-}.log
    (cd "$HA_BUILD_DIR" && exec timeout "$limit" "$top/tools/ha_certify" h1 h2 --ssh "$here/lab_ssh" --library "$HA_LIB" \
        --seconds 0 --each 0.5 --window 256 --patience 150 --env UCX_HA_RC_HEARTBEAT_MISSES=30 \
        --env UCX_HA_RC_DEAD_PEER=30s "$@") >"$log" 2>&1 || status=$?
    if [[ $status == "$expected" ]] && grep -qE -- "$text" "$log"; then
        ok "ha_certify: $name" "$(grep -hE -- "$text" "$log" | head -n 1 | cut -c10-200)"
    else
        not_ok "ha_certify: $name" "status $status instead of $expected, or no '$text': $(grep -E 'NOT OK|ha_certify:' "$log" |
            head -n 2 | paste -sd' ' | cut -c1-400 || true)"
    fi
}

# What the person in front of the hosts does: as asked, then Enter.
somebody() { # LOG PULL PUT-BACK: faults of the lab, as 'carrier-off b h2'
    local asked words
    for asked in "Pull the cable" "Put it back"; do
        for _ in {1..8000}; do
            ! grep -q "$asked" "$1" 2>/dev/null || break
            sleep 0.1
        done
        words=$2
        [[ $asked == Pull* ]] || words=$3
        # shellcheck disable=SC2086
        "$LAB" fault $words >>"$logs/fault.log" 2>&1
        echo
    done
}

# Acknowledgements die instead of the cable, so that surely something was executed that nobody knows of. What such
# a library does wrong may end the programs before they can tell: then once more.
planted_replay() {
    local name="everything is sent again" naive=$HA_BUILD_DIR/certify-naive log before again
    log=$logs/certify-${name// /-}.log
    "$top/test/mutants/mutant_library" --build "$HA_BUILD_DIR" --out "$naive" replay-everything
    for again in 1 2 3; do
        before=$failed
        rm -f "$log"
        certify "$name" 1 "NOT OK .*cable of rxe_b2:1 at h2: .*(duplicate|stale write|WRONG)" --faults cable --at h2 \
            --rails rxe_b1:1=rxe_b2:1 --library "$naive/libuct_ha.so.0" < <(somebody "$log" "acks b" "clear b")
        ((failed > before && again < 3)) || break
        failed=$before
    done
    rm -rf "$naive"
}

if [[ $what == --planted ]]; then
    [[ $planted != *" replay "* ]] || planted_replay
    [[ $planted != *" standby "* ]] ||
        certify "a rail without a standby" 1 "NOT OK .*rails of h1: .*rxe_a1:1 has no standby" --faults link \
            --env UCX_HA_RC_RAILS=rxe_a1:1,rxe_a2:1
    [[ $planted != *" unknown "* ]] ||
        certify "what Soft-RoCE cannot do" 0 "^CERTIFIED: [0-9]+ steps ok, 0 not, 2 skipped" --faults link,port,driver \
            --at h1 --rails rxe_a1:1=rxe_a2:1
    finish
fi
certify "a rail goes down" 0 "ok +link of rxe_a1:1 at h1: .*exactly once" --faults link --at h1 --rails rxe_a1:1=rxe_a2:1
if [[ $what == --cable ]]; then
    certify "the cable is pulled" 0 "ok +cable of rxe_b2:1 at h2: .*exactly once" --faults cable --at h2 \
        --rails rxe_b1:1=rxe_b2:1 < <(somebody "$logs/certify-the-cable-is-pulled.log" "carrier-off b h2" "carrier-on b h2")
fi
finish
