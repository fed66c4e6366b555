#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the built transport imports from UCX is what its list says: no more, as the front would load it
# into a UCX that lacks it; no less, as the front would refuse a UCX for nothing.
#
#   HA_GLUE   library; default: of the build tree that we are in
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
glue=${HA_GLUE:-$PWD/.libs/libuct_ha_1_13.so}
list=$here/../../uct_ha/abi/ucx_1_13.symbols

exported_by_ucx() {
    local library
    for library in $(ldd "$glue" | awk '/libuc[mpst]\.so/ { print $3 }'); do
        nm -D --defined-only "$library" | awk '{ print $3 }'
    done | sort -u
}

nm -D --undefined-only "$glue" | awk '$1 == "U" { print $2 }' | sort >imports.$$
trap 'rm -f imports.$$ imported.$$ listed.$$' EXIT
comm -12 imports.$$ <(exported_by_ucx) >imported.$$
sed '/^#/d' "$list" | sort >listed.$$
if [[ ! -s imported.$$ ]] || ! diff listed.$$ imported.$$; then
    echo "${glue##*/} imports from UCX something else (>) than ${list##*/} lists (<): change the list"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
# the front has none of it, and needs nothing but libc
needed=$(readelf -d "${glue%/*}/libuct_ha.so.0" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -Ev '^(libc\.so|libdl\.so|ld-linux)' || true)
if [[ -n $needed ]]; then
    echo "libuct_ha.so.0 links $needed"
    echo "1 passed, 1 failed, 0 skipped"
    exit 1
fi
echo "2 passed, 0 failed, 0 skipped"
