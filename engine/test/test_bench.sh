#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hte_bench in short: each operation, the sweep, the baseline, two processes by hand and with names, its refusals, and whether
# it notices wrong bytes.
set -euo pipefail

# make check gives the build folder as current folder
bench=${HTE_BENCH:-engine/bench/hte_bench}
log=$(mktemp -d)
target="" store=""
clean_up() {
    # shellcheck disable=SC2086 # either may be empty
    [[ -z $target$store ]] || kill $target $store 2>/dev/null || true
    rm -rf "$log"
}
trap clean_up EXIT

fail() {
    echo "test_bench: $1"
    cat "$log"/* >&2
    exit 1
}

short=(--quiet --duration=0.2 --buffer_size=16M --batch_size=8)

# on a terminal a line says what goes on
if command -v python3 >/dev/null; then
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) != 0)' \
        "$bench" --duration=1 --buffer_size=16M --batch_size=8 </dev/null >"$log/out" 2>"$log/err" || fail "on a terminal: status $?"
    tr '\r' '\n' <"$log/out" | grep -qE \
        '^ +[0-9.]+ s  [0-9.]+ GB/s  [1-9][0-9]* requests/s  (same host|RDMA|messages|emulated)  0 retries  [0-9]+ in flight *$' ||
        fail "on a terminal: no line that says what goes on"
fi

for operation in read write mix; do
    "$bench" "${short[@]}" --operation=$operation --json >"$log/out" 2>&1 || fail "$operation: status $?"
    tail -n 1 "$log/out" | grep -q '"throughput_gbps":[0-9].*"p50_us":[0-9].*"p99_us":[0-9].*"verified":true}$' ||
        fail "$operation: last line"
done

"$bench" "${short[@]}" --check --block_size=4K,64K --threads=1,2 --csv >"$log/out" 2>&1 || fail "sweep"
[[ $(grep -c '^write,' "$log/out") == 4 ]] || fail "sweep: not 4 lines"

# the liar's library spoils the last byte of a batch: nothing may pass, of no length and in no operation
liar=$PWD/engine/test/.libs/liar.so
preloaded() { # LIE ARGS...
    env LIAR="$1" LD_PRELOAD="$liar" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        "$bench" --quiet --buffer_size=1M --depth=1 --duration=0.05 --json "${@:2}" >"$log/out" 2>"$log/err"
}
number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$log/out"; }
# shellcheck disable=SC2086 # $check may be empty
if [[ -e $liar ]]; then
    for operation in read write mix; do
        for check in "" --check; do
            for size in "1 1" "7 3"; do
                arguments="--operation=$operation --block_size=${size% *} --batch_size=${size#* } $check"
                preloaded no $arguments || fail "$arguments: status $?"
                for lie in read write; do
                    if preloaded $lie $arguments || ! grep -q '"verified":false}$' "$log/out"; then
                        fail "$arguments: a false $lie went unnoticed"
                    fi
                done
            done
        done
    done

    # the baseline has no more under way than the engine is given
    preloaded no --baseline --rounds=1 --operation=read --block_size=16K --batch_size=3 || fail "baseline of 3: status $?"
    grep -q '^liar: 3 GETs at most' "$log/err" || fail "baseline of 3: $(grep GETs "$log/err" || echo "no GET")"

    # only what was asked for is counted: each READ has its own WRITE before it, each WRITE its READ behind it
    for operation in read write; do
        preloaded no --operation=$operation --check --block_size=4K --batch_size=2 || fail "check of $operation: status $?"
        moved=$(sed -n 's/^liar: read \([0-9]*\) wrote .*/\1/p' "$log/err")
        [[ $(number bytes) == "$moved" ]] || fail "check of $operation: $moved bytes were read, and not as many reported"
    done
fi

# small blocks: neither the sample nor --check takes longer than asked for
for check in --quiet --check; do
    timeout 20 "$bench" --quiet $check --duration=0.2 --buffer_size=32M --block_size=1 --batch_size=1 --json >"$log/out" 2>&1 ||
        fail "block_size=1 $check: status $?"
done

timeout 60 "$bench" --quiet --baseline --rounds=1 --duration=0.2 --buffer_size=64M --block_size=8 --batch_size=1 \
    >"$log/out" 2>&1 || fail "block_size=8 --baseline: status $?"

"$bench" "${short[@]}" --baseline --rounds=2 --json >"$log/out" 2>&1 || fail "baseline"
grep -q '"ratio":[0-9]' "$log/out" || fail "baseline: no ratio"

# what is set of UCX for the engine reaches the baseline, which is the first to run
for arguments in --protocol=no_such --set=UCX_TLS=no_such --device_name=no_such:1+lo --set=devices=lo,no_such:1; do
    if "$bench" "${short[@]}" --baseline "$arguments" >"$log/out" 2>&1 ||
        ! grep -qE "^hte_bench: baseline: |network device 'no_such:1' is not available" "$log/out"; then
        fail "$arguments did not reach the baseline"
    fi
done

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
# its counters, for Prometheus, and nothing else
"$bench" --mode=metrics --segment_id="$segment" >"$log/out" 2>"$log/err" || fail "metrics: status $?"
grep -q "^hte_memory_regions{pid=\"$target\",engine=\"$segment\"} 1$" "$log/out" || fail "metrics: not of the target"
[[ $(grep -cvE '^(# (HELP|TYPE) )?hte_' "$log/out") == 0 ]] || fail "metrics: other lines"
if "$bench" --mode=metrics >"$log/out" 2>&1 || ! grep -q 'needs --segment_id' "$log/out"; then
    fail "metrics of nobody were accepted"
fi
kill "$target"
wait "$target" || fail "target: status $?"
target=""

# mode self with a name: each process has its own
"$bench" "${short[@]}" --local_server_name=127.0.0.1:14999 --block_size=4K,64K --csv >"$log/out" 2>&1 || fail "host:port"
if [[ -x engine/hte_http_store ]]; then
    : >"$log/store"
    engine/hte_http_store --listen=127.0.0.1 --port=0 >"$log/store" 2>&1 &
    store=$!
    for _ in {1..100}; do
        url=$(grep '^http' "$log/store" || true)
        [[ -z $url ]] || break
        sleep 0.1
    done
    "$bench" "${short[@]}" --metadata_server="$url" --json >"$log/out" 2>&1 || fail "$url: status $?"
    "$bench" "${short[@]}" --metadata_server="$url" --local_server_name=me >"$log/out" 2>&1 || fail "me at $url: status $?"
    # a label's value is quoted
    name='a "\ b'
    : >"$log/target"
    "$bench" --mode=target --metadata_server="$url" --local_server_name="$name" --buffer_size=1M >"$log/target" 2>&1 &
    target=$!
    for _ in {1..100}; do
        [[ ! -s $log/target ]] || break
        sleep 0.1
    done
    "$bench" --mode=metrics --metadata_server="$url" --segment_id="$name" >"$log/out" 2>"$log/err" ||
        fail "metrics of $name: status $?"
    grep -qF 'engine="a \"\\ b"} 1' "$log/out" || fail "metrics of $name: not quoted"
    kill "$target"
    wait "$target" || fail "target: status $?"
    target=""
    kill "$store"
    wait "$store" || fail "store: status $?"
    store=""
fi

for bad in --block_size=x --block_size=1T --buffer_size=4K --batch_size=0 --mode=both --set=threads --set=no_such=1 --mode=initiator more; do
    if "$bench" $bad >"$log/out" 2>&1; then
        fail "$bad was accepted"
    fi
    [[ $(wc -l <"$log/out") -le 4 ]] || fail "$bad: too many lines"
done
if "$bench" --baseline --device_name=rdma >"$log/out" 2>&1 || ! grep -q "name them" "$log/out"; then
    fail "--baseline --device_name=rdma was accepted"
fi

for size in 18014398509481985K 99999999999999999999; do # 1024 and 2^64 - 1, if nobody looks
    if "$bench" --quiet --duration=0.05 --block_size=4K,$size >"$log/out" 2>&1 ||
        ! grep -q -- "--block_size='4K,$size': write numbers from 1 to 1099511627776" "$log/out"; then
        fail "$size was accepted"
    fi
done

# more threads than the engine has
"$bench" "${short[@]}" --threads=65 --block_size=4K --json >"$log/out" 2>&1 || fail "65 threads: status $?"
# results that cannot be written
for arguments in --json --csv --help --set=help; do
    status=0
    "$bench" "${short[@]}" "$arguments" >/dev/full 2>"$log/err" || status=$?
    if [[ $status != 2 ]] || ! grep -q 'cannot write to standard output' "$log/err"; then
        fail "$arguments >/dev/full: status $status"
    fi
done

# what UCX has to tell is not among the results
UCX_LOG_LEVEL=info "$bench" "${short[@]}" --csv >"$log/out" 2>"$log/err" || fail "csv: status $?"
[[ $(grep -c UCX "$log/err") != 0 && $(grep -cvE '^(operation|write),' "$log/out") == 0 ]] || fail "UCX's log is in the table"
UCX_LOG_FILE=stdout UCX_LOG_LEVEL=info "$bench" "${short[@]}" --csv >"$log/out" 2>"$log/err" || fail "csv: status $?"
grep -q UCX "$log/out" || fail "UCX_LOG_FILE=stdout is not heeded"
echo "test_bench: ok"
