#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_arrival over what UCX finds, by messages, and over ha_rc on the software card where there is one. In the build
# folder, as make check does; test_arrival.sh FOLDER: of libsoftcard.so and libuct_ha.so.0.
set -euo pipefail

test=engine/test/test_arrival
card=$(realpath "${1:-.libs}")
"$test"
HTE_MOVES=messages "$test"
if [[ -e $card/libsoftcard.so && -e $card/libuct_ha.so.0 ]] && ! grep -qE 'lib[atu].*san' <<<"$(ldd .libs/libhte.so.0)"; then
    fabric=$(mktemp -d)
    trap 'rm -rf "$fabric"' EXIT
    SOFTCARD_DIR=$fabric/f UCX_TLS=ha_rc,self UCX_HA_RC_RAILS=sc0:1+sc1:1 UCX_WARN_UNUSED_ENV_VARS=n \
        LD_PRELOAD=$card/libsoftcard.so:$card/libuct_ha.so.0 "$test"
fi
