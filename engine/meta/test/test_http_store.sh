#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What hte_http_store refuses before it serves. How it serves is tested by test_stores. Run in the build folder.
set -euo pipefail

program=./engine/hte_http_store
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check STATUS WANTED TEXT ARGS...: what it ended with, and what it said
check() {
    local status=$1 wanted=$2 text=$3
    shift 3
    if [[ $status != "$wanted" ]] || ! grep -qF -- "$text" "$work/log"; then
        echo "hte_http_store $*: status $status instead of $wanted, or no '$text' in: $(head -n 3 "$work/log")"
        failed=1
    fi
}

# refuses TEXT ARGS...: it ends by itself, and says this
refuses() {
    local text=$1 status=0
    shift
    timeout 60 "$program" --listen 127.0.0.1 --port 0 "$@" >"$work/log" 2>&1 || status=$?
    check $status 2 "$text" "$@"
}

# serves TEXT ARGS...: it says this and goes on until it is told to end
serves() {
    local text=$1 status=0 pid i
    shift
    : >"$work/log" # of the one before, should the next be slow to begin
    "$program" --listen 127.0.0.1 --port 0 "$@" >"$work/log" 2>&1 &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        grep -qF -- "$text" "$work/log" && break
        sleep 0.1
    done
    kill "$pid" || status=1 # gone by itself
    wait "$pid" || status=$?
    check $status 0 "$text" "$@"
}

for path in '/a b' '/a?c' '/a#d' '/a%20b' $'/a\tb' $'/a\x7f'; do
    refuses "--path must begin with a slash" --path "$path"
done
refuses "--path must begin with a slash" --path metadata
refuses "$work/no/store.json: cannot be written: No such file" --file "$work/no/store.json"
echo '{"key":' >"$work/bad.json"
refuses "bad.json: line" --file "$work/bad.json"
serves "/a-b_c/~d" --path "/a-b_c/~d"
echo '{"key":"text"}' >"$work/good.json"
refuses "--listen '127.0.0.1:18080' and --port 0 are two ports" --listen 127.0.0.1:18080
refuses "--listen '127.0.0.1:x': 'x' is no port in 1..65535" --listen 127.0.0.1:x
refuses "--listen '[::1'" --listen '[::1'
port=$((20000 + $$ % 10000)) # somebody may have it
timeout 1 "$program" --listen "127.0.0.1:$port" >"$work/log" 2>&1 || true
grep -qE "^http://127.0.0.1:$port/metadata|cannot listen at 127.0.0.1:$port: " "$work/log" ||
    { echo "--listen 127.0.0.1:$port: $(cat "$work/log")"; failed=1; }
serves "http://127.0.0.1:" --file "$work/good.json"
grep -q '"key": *"text"' "$work/good.json" || { echo "the file's contents are gone"; failed=1; }

((failed == 0)) && echo "hte_http_store: all is well"
exit $failed
