#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Make ./configure after a checkout. Needs autoconf, automake, libtool, pkg-config.
set -euo pipefail
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    if ! command -v "$tool" >/dev/null; then
        echo "autogen.sh: $tool is missing. Debian: apt-get install autoconf automake libtool pkg-config" >&2
        exit 1
    fi
done
mkdir -p build-aux m4
scripts/make_minors
exec autoreconf --install --warnings=all "$@"
