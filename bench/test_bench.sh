#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The benchmark programs on one machine over shared memory: results, checks, errors.
# Run from the build tree (make check), or give BENCH_DIR with ha_bw and ha_lat.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${BENCH_DIR:-$PWD/bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

for tool in mpirun python3; do
    command -v "$tool" >/dev/null || { echo "SKIP: no $tool here"; exit 77; }
done
[[ -x $bin/ha_bw && -x $bin/ha_lat ]] || { echo "no ha_bw and ha_lat in $bin: set BENCH_DIR"; exit 1; }

run() { # NP PROGRAM ARGS: $out, $err, $status; without the hook, which is not what is tested
    local np=$1 program=$2 root=()
    shift 2
    [[ $(id -u) == 0 ]] && root=(--allow-run-as-root)
    status=0
    timeout 60 mpirun "${root[@]}" -np "$np" --oversubscribe --mca pml ob1 --mca btl self,vader \
        "$bin/$program" "$@" >"$work/out" 2>"$work/err" || status=$?
    out=$(<"$work/out") err=$(<"$work/err")
}

report() { # NAME RESULT
    if [[ $2 == 0 ]]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        echo "FAIL $1 (status $status)"
        printf '%s\n%s\n' "$out" "$err" | head -20
    fi
}

check() { # NAME PYTHON-EXPRESSION over r, the last line of stdout, and csv, the rows of the series
    local good=0
    tail -1 "$work/out" >"$work/json"
    python3 - "$work" "$2" <<'PY' || good=1
import csv, json, os, sys
work, expression = sys.argv[1:]
with open(f"{work}/json") as file:
    r = json.load(file)
rows = []
if os.path.exists(f"{work}/series.csv"):
    with open(f"{work}/series.csv", newline="") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
sys.exit(0 if eval(expression, {"r": r, "csv": rows}) else 1)
PY
    report "$1" "$good"
}

refused() { # NAME TEXT ARGS: status 2 and one line that says why
    local name=$1 text=$2 good=0
    shift 2
    run 2 "$@"
    [[ $status == 2 && $err == *"$1: "*"$text"* ]] || good=1
    report "$name" "$good"
}

run 2 ha_bw --size 1:64K --iters 3 --verify --json "$work/result.json"
check 'ha_bw verifies a sweep of sizes' \
    'r["verified"] and r["errors"] == 0 and len(r["results"]) == 17 and r["checked"] > 17 * 3 * 64'
cmp -s "$work/json" "$work/result.json" && report '--json writes the same line' 0 ||
    report '--json writes the same line' 1

run 2 ha_bw --size 4K --seconds 1 --verify --csv "$work/series.csv" --interval 50
check 'ha_bw runs for a time' 'r["verified"] and 0.9 < r["seconds"] < 3'
check 'the series holds every message' 'sum(row["messages"] for row in csv) == r["checked"]'
check 'the series has a row per interval' \
    'all(abs(b["time_s"] - a["time_s"] - 0.05) < 0.002 for a, b in zip(csv, csv[1:]))'
rm -f "$work/series.csv"

run 2 ha_bw --size 64K --iters 5 --bidir --verify --window 8
check 'ha_bw in both directions' \
    'r["verified"] and r["bidir"] and r["messages"] == 2 * 5 * 8 and r["checked"] == 2 * 7 * 8'
run 2 ha_lat --size 8:8K --iters 50 --verify
check 'ha_lat verifies and orders its percentiles' \
    'r["verified"] and r["min_us"] <= r["p50_us"] <= r["p99_us"] <= r["max_us"] and r["trips"] == 50'

refused 'size 0 is refused' "'0' is not a size" ha_bw --size 0
refused 'a size range upside down is refused' "'64:8' is not" ha_bw --size 64:8
refused 'an unknown option is refused' "unknown option '--fast'" ha_bw --fast
refused 'a missing value is refused' '--window needs N' ha_bw --window
refused 'two ends are refused' 'give one of them' ha_bw --iters 2 --seconds 2
refused 'more memory than sense is refused' 'smaller --window' ha_bw --verify --size 1G
refused 'options of ha_bw are not those of ha_lat' "unknown option '--bidir'" ha_lat --bidir
run 3 ha_bw
[[ $status == 2 && $err == *'needs 2: mpirun -np 2 ha_bw'* ]] && report 'three ranks are refused' 0 ||
    report 'three ranks are refused' 1
run 2 ha_bw --csv "$work/none/x.csv"
[[ $status == 1 && $err == *'none/x.csv: No such file'* ]] && report 'a bad file name is told' 0 ||
    report 'a bad file name is told' 1

# A peer that stops answering: the other side gives up after --stall.
stop_for_a_while() {
    local pid i
    for ((i = 0; i < 100; i++)); do
        sleep 0.1
        # rank 1 is the one that writes the series
        pid=$(fuser "$work/stall.csv" 2>/dev/null | tr -d ' ') && break
    done
    sleep 0.3
    kill -STOP "$pid"
    sleep 4
    kill -CONT "$pid" 2>/dev/null || true
}
if command -v fuser >/dev/null; then # without it there is nobody to kill, perhaps before its trap is off
    { trap - EXIT; stop_for_a_while; } & # the trap would remove the folder when this is killed
    stopper=$!
    run 2 ha_bw --seconds 20 --stall 1 --csv "$work/stall.csv"
    [[ $status == 1 && $err == *'rank 0: no progress for 1 s (--stall)'* ]] &&
        report 'a stalled peer is told' 0 || report 'a stalled peer is told' 1
    kill "$stopper" 2>/dev/null || true
    wait "$stopper" 2>/dev/null || true
else
    skipped=$((skipped + 1))
fi

{
    echo time_s,boottime_s,realtime_s,mb_s,messages
    for ((i = 0; i < 100; i++)); do
        echo "$((i / 10)).$((i % 10))00,$((i / 10 + 50)).$((i % 10))00,$((i / 10 + 900)).$((i % 10))00,$((i >= 40 && i < 47 ? 0 : 30)),9"
    done
} >"$work/cut.csv"
python3 "$here/plot_outage.py" --no-plot --clock realtime --cut 903.95:a "$work/cut.csv" >"$work/out"
status=0 out='' err=''
check 'plot_outage finds the outage' 'r["cuts"][0] == {"cut_s": 3.95, "label": "a", "bw_before": 30.0,
    "bw_during": 0.0, "bw_after": 30.0, "outage_ms": 700, "resolution_ms": 100}'
if command -v gnuplot >/dev/null; then
    python3 "$here/plot_outage.py" -o "$work/cut.png" --cut 4 "$work/cut.csv" >"$work/out"
    [[ $(head -c 4 "$work/cut.png" | tail -c 3) == PNG ]] && report 'plot_outage draws' 0 ||
        report 'plot_outage draws' 1
else
    skipped=$((skipped + 1))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
