#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What hte_http_store refuses before it serves. How it serves is tested by test_stores. Run in the build folder.
set -euo pipefail

program=./engine/hte_http_store
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect STATUS TEXT ARGS...: it ends with this status (124: it serves) and says this
expect() {
    local wanted=$1 text=$2 status=0
    shift 2
    timeout 1 "$program" --listen 127.0.0.1 --port 0 "$@" >"$work/log" 2>&1 || status=$?
    if [[ $status != "$wanted" ]] || ! grep -qF -- "$text" "$work/log"; then
        echo "hte_http_store $*: status $status instead of $wanted, or no '$text' in: $(head -n 3 "$work/log")"
        failed=1
    fi
}

for path in '/a b' '/a?c' '/a#d' '/a%20b' $'/a\tb' $'/a\x7f'; do
    expect 2 "--path must begin with a slash" --path "$path"
done
expect 2 "--path must begin with a slash" --path metadata
expect 2 "$work/no/store.json: cannot be written: No such file" --file "$work/no/store.json"
echo '{"key":' >"$work/bad.json"
expect 2 "bad.json: line" --file "$work/bad.json"
expect 124 "/a-b_c/~d" --path "/a-b_c/~d"
echo '{"key":"text"}' >"$work/good.json"
expect 124 "http://127.0.0.1:" --file "$work/good.json"
grep -q '"key": *"text"' "$work/good.json" || { echo "the file's contents are gone"; failed=1; }

((failed == 0)) && echo "hte_http_store: all is well"
exit $failed
