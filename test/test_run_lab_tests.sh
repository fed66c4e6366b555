#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run_lab_tests gives a second chance to what a busy machine may have spoilt, and to nothing else.
# Its scripts are replaced by small ones; needs no lab.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d -t ha-run-lab-XXXXXX)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/lab_tests"
cp "$here/run_lab_tests" "$dir"
failed=0

# script NAME FIRST [SECOND]: commands of its first try, and of all later ones
script() {
    # shellcheck disable=SC2016
    printf '#!/usr/bin/env bash\ntries=%q\necho >>"$tries"\nif (($(wc -l <"$tries") == 1)); then\n%s\nelse\n%s\nfi\n' \
        "$dir/tries.$1" "$2" "${3:-$2}" >"$dir/lab_tests/$1"
    chmod +x "$dir/lab_tests/$1"
    rm -f "$dir/tries.$1"
}

# expect NAME STATUS LAST-LINE [TEXT]: of run_lab_tests --quick
expect() {
    local status=0
    env -u HA_TEST_LOGS TMPDIR="$dir" "$dir/run_lab_tests" --quick >"$dir/out" 2>&1 || status=$?
    if [[ $status == "$2" && $(tail -n 1 "$dir/out") == "$3" ]] && grep -q -- "${4:-}" "$dir/out"; then
        echo "ok - $1"
    else
        failed=1
        echo "not ok - $1: status $status"
        cat "$dir/out"
    fi
}

good='echo "2 passed, 0 failed, 0 skipped"'
bad='echo "1 passed, 1 failed, 0 skipped"; exit 1'

script a3_cuts.sh "$good"
script a5_ends.sh "$good"
expect "all well" 0 "4 passed, 0 failed, 0 skipped"
if grep -q 'second try' "$dir/out" || ls -d "$dir"/ha-lab-tests-* >/dev/null 2>&1; then
    failed=1
    echo "not ok - all well: nothing is left, and nothing is said of second tries"
fi

script a5_ends.sh "echo '{\"lost\":0,\"corrupt\":0}' >\"\$HA_TEST_LOGS/x.h1.log\"; $bad" "$good"
expect "starved once" 0 "4 passed, 0 failed, 0 skipped" "^passed at the second try: a5_ends.sh --shape one$"

script a5_ends.sh "$bad"
expect "failed twice" 1 "3 passed, 1 failed, 0 skipped" "^logs: "

script a5_ends.sh "exit 1" "$good"
expect "crashed once" 0 "4 passed, 0 failed, 0 skipped" "ended without a result"

for figure in lost duplicate reordered corrupt stale_write; do
    script a5_ends.sh "echo '{\"ok\":false,\"$figure\":1,\"errors\":0}' >\"\$HA_TEST_LOGS/x.h2.log\"; $bad" "$good"
    expect "$figure in a log" 1 "3 passed, 1 failed, 0 skipped" "no second try"
done
script a5_ends.sh "echo 'not ok - cut: h1 ended with status 1: 17.1 WRONG lost: endpoint 0: am 7'; $bad" "$good"
expect "wrong data in the output" 1 "3 passed, 1 failed, 0 skipped" "no second try"
script a5_ends.sh "echo '{\"failed\":0,\"plain_gbps\":1,\"verified\":false}' >\"\$HA_TEST_LOGS/x.log\"; $bad" "$good"
expect "the engine read wrong data" 1 "3 passed, 1 failed, 0 skipped" "no second try"
script a5_ends.sh "echo '{\"failed\":3,\"verified\":false}' >\"\$HA_TEST_LOGS/x.log\"; $bad" "$good"
expect "requests of the engine failed once" 0 "4 passed, 0 failed, 0 skipped" "second try"
exit $failed
