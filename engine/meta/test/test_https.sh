#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A store behind TLS: bytes are moved when its certificate is one of those that the system trusts, and nothing is told to
# it otherwise. Run in the build folder.
set -euo pipefail

bench=engine/bench/hte_bench
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trusted=/etc/ssl/certs/ca-certificates.crt # where Debian's libcurl looks
for tool in python3 openssl; do
    command -v "$tool" >/dev/null || { echo "skipped: there is no $tool"; exit 77; }
done
work=$(mktemp -d)
store=""
clean_up() {
    [[ -z $store ]] || kill "$store" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/certificate" -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 2>"$work/log"
python3 "$folder/https_store.py" "$work/certificate" "$work/key" >"$work/port" 2>"$work/log" &
store=$!
for ((i = 0; i < 600; i++)); do
    [[ ! -s $work/port ]] || break
    sleep 0.1
done
arguments=(--quiet --duration=0.1 --buffer_size=1M --batch_size=4 --json
    "--metadata_server=https://127.0.0.1:$(cat "$work/port")/metadata")

if "$bench" "${arguments[@]}" >"$work/out" 2>&1 || ! grep -q 'metadata store error .*certificate' "$work/out"; then
    cat "$work/out"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
# in a name space of its own the system can be made to trust it
if [[ ! -e $trusted ]] || ! unshare -m true 2>/dev/null; then
    echo "1 passed, 0 failed, 1 skipped"
    exit 0
fi
unshare -m bash -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' bash "$work/certificate" "$trusted" \
    "$bench" "${arguments[@]}" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
grep -q '"verified":true}$' "$work/out"
echo "2 passed, 0 failed, 0 skipped"
