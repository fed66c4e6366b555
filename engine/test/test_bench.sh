#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hte_bench in short: each operation, the sweep, the baseline, two processes by hand, and its refusals.
set -euo pipefail

# make check gives the build folder as current folder
bench=${HTE_BENCH:-engine/bench/hte_bench}
log=$(mktemp -d)
target=""
trap '[[ -z $target ]] || kill "$target" 2>/dev/null || true; rm -rf "$log"' EXIT

fail() {
    echo "test_bench: $1"
    cat "$log"/* >&2
    exit 1
}

short=(--quiet --duration=0.2 --buffer_size=16M --batch_size=8)

for operation in read write mix; do
    "$bench" "${short[@]}" --operation=$operation --json >"$log/out" 2>&1 || fail "$operation: status $?"
    tail -n 1 "$log/out" | grep -q '"throughput_gbps":[0-9].*"p50_us":[0-9].*"p99_us":[0-9].*"verified":true}$' ||
        fail "$operation: last line"
done

"$bench" "${short[@]}" --check --block_size=4K,64K --threads=1,2 --csv >"$log/out" 2>&1 || fail "sweep"
[[ $(grep -c '^write,' "$log/out") == 4 ]] || fail "sweep: not 4 lines"

"$bench" "${short[@]}" --baseline --rounds=2 --json >"$log/out" 2>&1 || fail "baseline"
grep -q '"ratio":[0-9]' "$log/out" || fail "baseline: no ratio"

: >"$log/target"
"$bench" --mode=target --local_server_name=127.0.0.1 --buffer_size=16M >"$log/target" 2>&1 &
target=$!
for _ in {1..100}; do
    segment=$(sed -n 's/^segment //p' "$log/target")
    [[ -z $segment ]] || break
    sleep 0.1
done
"$bench" "${short[@]}" --mode=initiator --local_server_name=127.0.0.1 --segment_id="$segment" --json >"$log/out" 2>&1 ||
    fail "initiator"
grep -q '"verified":true}$' "$log/out" || fail "initiator: not verified"
if "$bench" --quiet --mode=initiator --local_server_name=127.0.0.1 --segment_id="$segment" >"$log/out" 2>&1 ||
    ! grep -q 'give both sides the same --buffer_size' "$log/out"; then
    fail "initiator: a smaller target was accepted"
fi
kill "$target"
wait "$target" || fail "target: status $?"
target=""

for bad in --block_size=x --block_size=1T --buffer_size=4K --batch_size=0 --mode=both --set=threads --set=no_such=1 --mode=initiator more; do
    if "$bench" $bad >"$log/out" 2>&1; then
        fail "$bad was accepted"
    fi
    [[ $(wc -l <"$log/out") -le 4 ]] || fail "$bad: too many lines"
done
echo "test_bench: ok"
