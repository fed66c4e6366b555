#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The manual pages: none has a mistake that man sees, and each function of hte.h has one. Run by `make check`.
set -euo pipefail

man=engine/man
source=${srcdir:?run by make check}
if ! command -v man >/dev/null; then
    echo "skipped: there is no man"
    exit 77
fi
pages=("$man"/hte.7 "$man"/hte_bench.1 "$source/$man"/*.1)
while read -r page; do
    [[ $(head -c 4 "$man/man3/$page") == .so\  ]] || pages+=("$man/man3/$page")
done <"$man/man3/pages"
failed=0
for page in "${pages[@]}"; do
    if ! warnings=$(LC_ALL=C.UTF-8 MANWIDTH=140 man --warnings -l "$page" 2>&1 >/dev/null) || [[ -n $warnings ]]; then
        echo "$page: $warnings"
        failed=$((failed + 1))
    fi
done
for function in $(grep -oE '\bhte_[a-z_]+\(' "$source/engine/include/hte.h" | tr -d '(' | sort -u); do
    if ! grep -qx "$function.3" "$man/man3/pages"; then
        echo "$function has no page"
        failed=$((failed + 1))
    fi
done
echo "$((${#pages[@]} - failed)) passed, $failed failed, 0 skipped"
((failed == 0))
