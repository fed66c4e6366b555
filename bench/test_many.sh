#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A process with one peer and one with 64, for seconds: what it sends when idle, and that all move when a rail fails.
# Run by `make check`, in the build folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if grep -qs -- '-fsanitize=' Makefile; then
    echo "the software card is not loaded in front of a sanitizer"
    exit 77
fi
wrong=$("$here/many" --peers 64,none 2>&1) && exit 1
[[ $wrong == *"--peers 64,none: not numbers"* ]] || { echo "$wrong"; exit 1; }
wrong=$("$here/many" --peers 5000 2>&1) && exit 1
[[ $wrong == *"from 1 to 4096"* ]] || { echo "$wrong"; exit 1; }
"$here/many" --build "$PWD" --peers 1,64 --idle 3 --check
"$here/many" --build "$PWD" --peers 16 --idle 3 --kind mute --check
echo "4 passed, 0 failed"
