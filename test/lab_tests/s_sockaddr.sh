#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Client and server programs, which UCX connects by rdmacm: its own example, unmodified, over UCX_TLS=ha_rc,self
# alone. A rail fails in the middle; every message arrives, and no side says ERROR. Debian's UCX is 1.13.
#
#   s_sockaddr.sh [--messages N]     (shape two; N for the first try of each kind, 20000)
set -Eeuo pipefail

messages=20000

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "messages" "$@"

source=/usr/share/doc/libucx-dev/examples/ucp_client_server.c
program=$HA_BUILD_DIR/test/lab_tests/client_server # where the guests see it, too
if ! gcc -O2 -w -o "$program" "$source" -lucp -lucs 2>"$logs/gcc.log"; then
    skip "client and server" "no $source, or it does not build"
    finish
fi
in_lab two "$@"
trap 'rm -f "$program"' EXIT

# said LOG WORDS TIMES SECONDS: until they are there so often
said() {
    local until=$((SECONDS + $4))
    touch "$logs/$1.log" # the program's shell may not have made it yet
    while (($(grep -c "$2" "$logs/$1.log" || true) < $3)); do
        ((SECONDS < until)) && kill -0 "${pid_of[$1]}" 2>/dev/null || return 1
        sleep 0.1
    done
}

# end_of HOST LOG KIND MESSAGES ARGS...: lines as they come; none but rdmacm may connect them
end_of() {
    local host=$1 log=$2 kind=$3 count=$4
    shift 4
    on_host "$host" "$log" UCX_SOCKADDR_TLS_PRIORITY=rdmacm UCX_HA_RC_REQUIRE=y UCX_CM_USE_ALL_DEVICES="$all" \
        timeout 240 stdbuf -oL "$program" -c "$kind" -i "$count" -p "$port" "$@"
}

# cut_rail RAIL KIND: out of order, until the client has gone over to the other rail
cut_rail() {
    case $2 in
    drop) fault drop "$1" ;;
    down) fault down "$1" h1 ;;
    esac
    said "$name.h1" 'HA-1[0-9]*\]: failover:' 1 60 || { why="no failover"; return 1; }
    case $2 in
    drop) fault clear ;;
    down) fault up "$1" h1 ;;
    esac
}

# try KIND ADDRESS RAIL FAULT: 2 when it was over before the cut
try() {
    why="" status=0
    port=$((port + 1))
    end_of h2 "$name.h2" "$1" "$messages"
    said "$name.h2" "server is listening" 1 60 || { why="the server does not listen"; return 1; }
    end_of h1 "$name.h1" "$1" "$messages" -a "$2"
    said "$name.h1" "iteration #" 3 90 || { why="no traffic"; return 1; }
    cut_rail "$3" "$4" || { kill -0 "${pid_of[$name.h1]}" 2>/dev/null && return 1; return 2; }
    ended "$name.h1" 200 || { why="the client still runs"; return 1; }
    [[ $status == 0 ]] || { why="the client ended with status $status"; return 1; }
    grep -q "iteration #$messages" "$logs/$name.h1.log" || { why="not all messages"; return 1; }
    ! grep -q ' ERROR ' "$logs/$name".h?.log || { why=$(grep -h -m 1 ' ERROR ' "$logs/$name".h?.log | cut -c1-200); return 1; }
}

# part KIND ADDRESS RAIL FAULT y|n: with n an endpoint stays on the rail that rdmacm came by; else the two exchange
# their whole addresses over it, and UCX chooses anew
part() {
    local name=client_server.$1 all=$5 verdict=0 why status
    try "$@" || verdict=$?
    if ((verdict == 2)); then
        messages=$((4 * messages)) verdict=0
        signal_host h2 "$name.h2" KILL || true
        try "$@" || verdict=$?
    fi
    if ((verdict == 0)); then
        ok "client and server, $1 by $2, $4 $3" "$messages messages, $(grep -ho 'silent [0-9]* ms' "$logs/$name.h1.log" | head -n 1)"
    else
        not_ok "client and server, $1 by $2, $4 $3" "${why:-over before the cut}"
    fi
    signal_host h1 "$name.h1" KILL 2>/dev/null || true
    signal_host h2 "$name.h2" KILL 2>/dev/null || true
    fault clear || true
    fault up all || true
}

part tag 10.77.1.2 a drop y
part am 10.77.1.2 a down y
part stream 10.77.2.2 b drop n
finish
