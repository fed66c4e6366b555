#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# deaths_matrix in short: two rounds of each cell over what every machine has; whether it notices what it looks for; and
# over ha_rc on the software card that a dead target is noticed before the transport's patience ends.
set -euo pipefail

matrix=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/deaths_matrix
# make check gives the build folder as current folder
"$matrix" --build "$PWD" --self-test
"$matrix" --build "$PWD" --rounds 2 --over tcp,default --what kill,stop
if [[ -e .libs/libsoftcard.so && -e .libs/libuct_ha.so.0 ]] && ! grep -qE 'lib[atu].*san' <<<"$(ldd .libs/libhte.so.0)"; then
    "$matrix" --build "$PWD" --rounds 3 --over ha_rc --side target --what kill --bound 15
fi
