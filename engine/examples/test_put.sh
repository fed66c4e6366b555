#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The example in C does what its first comment says. Run by `make check` in the build folder.
set -euo pipefail

program=engine/examples/hte_put
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

timeout 60 "$program" >"$folder/out" &
pid=$!
for ((i = 0; i < 300; i++)); do
    [[ ! -s $folder/out ]] || break
    sleep 0.1
done
timeout 60 "$program" "$(head -n 1 "$folder/out")" "a text, written from afar"
wait "$pid" || { echo "the text, or its notification, did not arrive"; exit 1; }
if [[ $(sed -n 2p "$folder/out") != "a text, written from afar" ]]; then
    cat "$folder/out"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
if "$program" 127.0.0.1:1 x 2>"$folder/err" || ! grep -q 'refused' "$folder/err"; then
    cat "$folder/err"
    echo "1 passed, 1 failed, 0 skipped"
    exit 1
fi
# as a user's strict compiler takes it
source=$(cd "${srcdir:?run by make check}" && pwd)
if command -v cc >/dev/null; then
    cc -std=c99 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$source/engine/include" "$source/engine/examples/hte_put.c"
fi
echo "3 passed, 0 failed, 0 skipped"
