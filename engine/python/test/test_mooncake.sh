#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Mooncake's Python names over hte. Run by `make check` in the build folder; $srcdir is the project's.
set -euo pipefail

source=$(cd "${srcdir:?run by make check}" && pwd)
export HTE_LIBRARY=$PWD/.libs/libhte.so.0 PYTHONPATH=$source/engine/python
export PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only

if ! command -v python3 >/dev/null; then
    echo "skipped: there is no python3"
    exit 77
fi
python3 "$source/engine/python/test/test_mooncake.py"
for same_host in auto off; do
    HTE_SAME_HOST=$same_host python3 "$source/engine/python/test/test_connectors.py"
done
