#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha_torture finds every fault that it is there to find: it plants one of each kind
# itself. Over whatever transport UCX has on this machine; no rails needed.
set -euo pipefail

torture=${HA_TORTURE:-./test/lab_tests/ha_torture}
dir=$(mktemp -d -t ha-torture-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export UCX_TLS=sm,tcp,self UCX_LOG_LEVEL=error
failed=0

# pair ARGS...: runs both sides; $status is the client's exit status
pair() {
    local port=$((20000 + RANDOM % 12000)) server
    timeout 120 "$torture" --port "$port" --stall-limit 30 --quiet --progress "$dir/progress" >"$dir/server" 2>&1 &
    server=$!
    status=0
    timeout 120 "$torture" --port "$port" --stall-limit 30 --quiet --host 127.0.0.1 --seconds 1 "$@" \
        >"$dir/client" 2>&1 || status=$?
    wait "$server" || true
}

# sum NAME: of the figure in both last lines
sum() {
    sed -n "s/^{.*\"$1\":\([0-9]*\).*/\1/p" "$dir/client" "$dir/server" | awk '{ n += $1 } END { print n + 0 }'
}

report() { # NAME WHAT RIGHT
    if (($3)); then
        echo "ok - $1"
    else
        failed=1
        echo "not ok - $1: $2"
        cat "$dir/client" "$dir/server"
    fi
}

pair --eps 3
wrong=$(($(sum lost) + $(sum duplicate) + $(sum reordered) + $(sum corrupt) + $(sum stale_write) + $(sum errors)))
report "nothing planted, nothing found" "status $status, $wrong wrong" "$((status == 0 && wrong == 0 && $(sum atomic) > 0))"
for field in fds connections rss_kib ahs; do
    grep -q " $field=[0-9]" "$dir/progress" || report "progress file" "no $field in it" 0
done

pair --busy 500
report "it computes when told" "$(sum busy_ms) ms" "$(($(sum busy_ms) > 300))"

while read -r plant figure; do
    pair --eps 2 --plant "$plant"
    report "planted: $plant" "status $status, $figure $(sum "$figure")" "$((status == 1 && $(sum "$figure") > 0))"
done <<'END'
lost lost
duplicate duplicate
reordered reordered
corrupt corrupt
stale stale_write
atomic duplicate
error errors
END
exit $failed
