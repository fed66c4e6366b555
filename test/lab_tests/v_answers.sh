#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The software card that plays Soft-RoCE answers verbs as the kernel's Soft-RoCE does: traffic of some seeds and each
# fault alone (test/softcard/answers), line by line.
#
#   v_answers.sh [--seeds "1 2 3"]     (shape two)
set -Eeuo pipefail

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

all=("$@")
seeds="1 2 3 4 5 6"
options "seeds" "$@"
answers=$HA_BUILD_DIR/test/softcard/answers
card=$HA_BUILD_DIR/.libs/libsoftcard.so
[[ -x $answers && -e $card ]] || { echo "no $answers or $card; run make there" >&2; exit 2; }

in_lab two "${all[@]}"

read -ra seed <<<"$seeds"
# Soft-RoCE learnt to tell of the last request of a shared queue, and better words for some faults, in Linux 6.6.
kernel=$("$LAB" exec --timeout 60 h1 "uname -r")
personality=rxe
[[ $(printf '%s\n' 6.6 "$kernel" | sort -V | head -n 1) == 6.6 ]] || personality=rxe-old
echo "# Linux $kernel: personality $personality"
SOFTCARD_DIR=$logs/fabric SOFTCARD_PERSONALITY=$personality ANSWERS_QUIET_MS=1200 LD_PRELOAD=$card \
    "$answers" sc0 "${seed[@]}" >"$logs/softcard" 2>&1 || not_ok "software card" "ended with status $?"
"$LAB" exec --timeout 600 h1 "exec '$answers' \$LAB_RAIL_A ${seed[*]}" >"$logs/kernel" 2>&1 ||
    not_ok "Soft-RoCE" "ended with status $?"

# each seed's traffic, each fault: lines that begin alike
mapfile -t parts < <(sed -E 's/[:,].*//' "$logs/softcard" "$logs/kernel" | sort -u)
for part in "${parts[@]}"; do
    if diff <(grep -E "^${part}[:,]" "$logs/softcard") <(grep -E "^${part}[:,]" "$logs/kernel") >"$logs/diff"; then
        ok "$part" "$(grep -cE "^${part}[:,]" "$logs/kernel") lines"
    else
        not_ok "$part" "software card (<) and Soft-RoCE (>) differ"
        sed 's/^/# /' "$logs/diff"
    fi
done
finish
