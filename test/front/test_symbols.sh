#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the built transport imports from UCX is what its list says: no more, as the front would load it
# into a UCX that lacks it; no less, as the front would refuse a UCX for nothing.
#
#   HA_GLUE    library; default: the one of the build tree that we are in
#   HA_UCX     folder of the UCX that it is for; default: where the loader finds it
#   HA_FRONT   libuct_ha.so.0; default: beside the library
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
glue=${HA_GLUE:-$(echo "$PWD"/.libs/libuct_ha_1_*.so | cut -d' ' -f1)}
front=${HA_FRONT:-${glue%/*}/libuct_ha.so.0}
minor=${glue##*libuct_ha_1_}
minor=${minor%.so}

ucx_libraries() {
    if [[ -n ${HA_UCX:-} ]]; then
        echo "$HA_UCX"/libuc[mpst].so.0
    else
        ldd "$glue" | awk '/libuc[mpst]\.so/ { print $3 }'
    fi
}

exported_by_ucx() {
    local library
    for library in $(ucx_libraries); do
        nm -D --defined-only "$library" | awk '{ print $3 }'
    done | sort -u
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --undefined-only "$glue" | awk '$1 == "U" { print $2 }' | sort >"$work/imports"
comm -12 "$work/imports" <(exported_by_ucx) >"$work/imported"
"$here/../../scripts/ucx_symbols" "$minor" | sort >"$work/listed"
if [[ ! -s "$work/imported" ]] || ! diff "$work/listed" "$work/imported"; then
    echo "${glue##*/} imports from UCX something else (>) than ucx.symbols lists for 1.$minor (<): change the list"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
# the front has none of it, and needs nothing but libc
needed=$(readelf -d "$front" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -Ev '^(libc\.so|libdl\.so|ld-linux)' || true)
if [[ -n $needed ]]; then
    echo "libuct_ha.so.0 links $needed"
    echo "1 passed, 1 failed, 0 skipped"
    exit 1
fi
echo "2 passed, 0 failed, 0 skipped"
