#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The Python binding: its own tests, the example with two processes, and the package as pip makes it. Run by
# `make check` in the build folder; $srcdir is the project's.
set -euo pipefail

source=$(cd "${srcdir:?run by make check}" && pwd)
builddir=$PWD
export HTE_LIBRARY=$builddir/.libs/libhte.so.0 HTE_LAYOUT=$builddir/engine/python/test/hte_layout
export PYTHONDONTWRITEBYTECODE=1 # the sources may be read-only

if ! command -v python3 >/dev/null; then
    echo "skipped: there is no python3"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0

echo "== the binding"
PYTHONPATH=$source/engine/python python3 "$source/engine/python/test/test_hte.py" 2>&1 | tee "$folder/log"
passed=$((passed + $(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$folder/log")))

echo "== the example"
python3 "$source/engine/examples/kv_cache.py" --bind 127.0.0.1 --prompts 12 --pool 40 | tee "$folder/example"
grep -q '"blocks": 288, .*"verified": true' "$folder/example"
passed=$((passed + 1))
for bad in "--prompts 0" "--block x" "--pool 5" "prefill" "prefill 127.0.0.1:1" "--metadata ftp://x"; do
    # shellcheck disable=SC2086 # words
    if python3 "$source/engine/examples/kv_cache.py" $bad 2>"$folder/log" || grep -q Traceback "$folder/log"; then
        cat "$folder/log"
        echo "$passed passed, 1 failed, 0 skipped"
        exit 1
    fi
done
passed=$((passed + 1))

echo "== the package, as its build backend makes it"
cp -r "$source/engine/python" "$folder/python"
chmod -R u+w "$folder/python"
python3 - "$folder" <<'PACK'
import sys
folder = sys.argv[1]
sys.path.insert(0, folder + "/python")
import build_hte
print(build_hte.build_wheel(folder), build_hte.build_sdist(folder))
PACK
passed=$((passed + 1))
if python3 -m pip --version >/dev/null 2>&1; then
    # no index, and build isolation on: what pip would have to fetch, it could not
    python3 -m pip install --quiet --no-index --disable-pip-version-check --target "$folder/installed" "$folder/python"
    cd "$folder"
    PYTHONPATH=$folder/installed python3 -c 'import hte; print(hte.__file__, hte.version())' | tee "$folder/log"
    grep -q "^$folder/installed/hte/" "$folder/log"
    test ! -e "$folder/installed/mooncake" # Mooncake's own has files of these names
    python3 -m pip install --quiet --no-index --disable-pip-version-check --config-settings mooncake=yes \
        --target "$folder/both" "$folder/python"
    PYTHONPATH=$folder/both python3 -c 'import mooncake.engine; print(mooncake.engine.TransferEngine())'
    passed=$((passed + 2))
else
    echo "skipped: there is no pip"
fi
echo "$passed passed, 0 failed, 0 skipped"
