#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libtransfer_engine.so exports what its header declares, and nothing else; of libhte it uses what hte.h declares.
# Run by `make check` in the build folder; $srcdir is the project's.
set -euo pipefail

engine=${srcdir:?run by make check}/engine
library=.libs/libtransfer_engine.so
header=$engine/mooncake/include/transfer_engine_c.h

same() {
    local what=$1 left=$2 right=$3
    if [[ $left != "$right" ]]; then
        diff <(echo "$left") <(echo "$right") || true
        echo "$what"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
}

# declarations begin at the line's start, comments do not
declared=$(grep -oE '^[a-z_ ]+ \**[a-zA-Z]+\(' "$header" | grep -v '^typedef' | grep -oE '[a-zA-Z]+\($' | tr -d '(' | sort)
# a sanitizer adds its own, all with two underscores
exported=$(nm -D --defined-only "$library" | awk '$3 !~ /^_/ {print $3}' | sort)
same "libtransfer_engine.so exports (>) something else than its header declares (<)" "$declared" "$exported"
(($(wc -l <<<"$declared") == 28)) || same "functions in the header" 28 "$(wc -l <<<"$declared")"

used=$(nm -D --undefined-only "$library" | grep -oE '\bhte_[a-z_]+$' | sort)
foreign=$(comm -23 <(echo "$used") <(grep -oE '\bhte_[a-z_]+\(' "$engine/include/hte.h" | tr -d '(' | sort -u))
same "libtransfer_engine.so uses of libhte what hte.h does not declare" "$foreign" ""
soname=$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')
same "soname" libtransfer_engine.so "$soname"
echo "4 passed, 0 failed, 0 skipped"
