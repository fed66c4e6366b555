#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_certify as its user runs it, by ssh: a rail broken by `ip link`, a cable that somebody pulls when asked.
#
#   c_certify.sh [--cable]     (shape one; with --cable both, else the first)
set -Eeuo pipefail

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cable=0
case ${1:-} in
"") ;;
--cable) cable=1 ;;
*) echo "c_certify.sh: unknown option '$1'; see its first lines" >&2; exit 2 ;;
esac
in_lab one "$@"

# certify NAME STATUS TEXT ARGS...: its exit status, and what it says. Emulated hosts starve: silence is no proof.
certify() {
    local name=$1 expected=$2 text=$3 status=0 log
    shift 3
    log=$logs/certify-${name//[^a-z0-9]/-}.log
    (cd "$HA_BUILD_DIR" && exec timeout 400 "$top/tools/ha_certify" h1 h2 --ssh "$here/lab_ssh" --library "$HA_LIB" \
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
somebody() { # LOG
    local asked
    for asked in "Pull the cable" "Put it back"; do
        for _ in {1..2400}; do
            ! grep -q "$asked" "$1" 2>/dev/null || break
            sleep 0.1
        done
        if [[ $asked == Pull* ]]; then
            "$LAB" fault carrier-off b h2 >>"$logs/fault.log" 2>&1
        else
            "$LAB" fault carrier-on b h2 >>"$logs/fault.log" 2>&1
        fi
        echo
    done
}

certify "a rail goes down" 0 "ok +link of rxe_a1:1 at h1: .*exactly once" --faults link --at h1 --rails rxe_a1:1=rxe_a2:1
if ((cable)); then
    certify "the cable is pulled" 0 "ok +cable of rxe_b2:1 at h2: .*exactly once" --faults cable --at h2 \
        --rails rxe_b1:1=rxe_b2:1 < <(somebody "$logs/certify-the-cable-is-pulled.log")
fi
finish
