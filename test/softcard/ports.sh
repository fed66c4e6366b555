# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Ports of TCP for programs that find each other by one; `source`d. $port is the one in use.

port=$((10000 + RANDOM % 15000)) # below those that the kernel gives out to anybody

# One that nobody has: neither listens at it nor is connected from it.
next_port() {
    port=$((port + 1))
    while cat /proc/net/tcp /proc/net/tcp6 | grep -qE "$(printf '^ *[0-9]+: [0-9A-F]+:%04X ' "$port")"; do
        port=$((port + 1))
    done
}

# Until the program that was begun last listens there: half a minute, on a busy machine.
listening() {
    for _ in {1..600}; do
        ! cat /proc/net/tcp /proc/net/tcp6 | grep -q "$(printf ':%04X .*:0000 0A' "$port")" || return 0
        kill -0 "$!" 2>/dev/null || break
        sleep 0.05
    done
    echo "nobody listens at $port"
}
