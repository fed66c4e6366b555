#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Under traffic a network card is taken out and put back, and then its driver is taken off it and loaded anew.
# Each time: the work goes on over the other rail, with everything right; the RDMA device is gone while the
# program runs, which its kernel allows only when the program has let go of it; and the device is used again,
# by the program that starts next, while the ones before go on.
#
#   d_device.sh     (shape two: own kernels, own cards)
set -Eeuo pipefail

seed=${HA_SEED:-$((RANDOM + 1))}

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "" "$@"
in_lab two "$@"

least_in_flight=20 # of a window of 64
least_packets=50
host=h2

# on SCRIPT: its output, at the host whose card it is; 1 and $why when it fails
on() {
    "$LAB" exec --timeout 60 "$host" "$1" 2>>"$logs/guest.log" || { why="on $host '$1' failed, see guest.log"; return 1; }
}

# ---- several programs: lib.sh speaks of one at a time ----

declare -A port_of=()

begin() { # NAME
    start "$1" --seed "$seed" --seconds 1200 --window 64
    port_of[$1]=$port
    flows 90 || { why="$1: no traffic"; return 1; }
    redundant 60 || { why="$1: no standby at the start"; return 1; }
}

speak_of() { # NAME
    run=$1
    port=${port_of[$1]}
}

end() { # NAME
    speak_of "$1"
    stop_pair
    verdict 120 || { why="$1: $why"; return 1; }
}

# ---- the card ----

packets() { # its device has sent so many since it is there
    on "cat /sys/class/infiniband/rxe_a/ports/1/hw_counters/sent_pkts"
}

# The device is another one each time: its number in sysfs rises for ever.
device_id() {
    on 'stat -c %i /sys/class/infiniband/rxe_a'
}

wait_gone() { # NAME: of the program that lets go of it
    local i
    for ((i = 0; i < 30; i++)); do
        if [[ $(on '[[ -e /sys/class/infiniband/rxe_a ]] || echo gone') == gone ]]; then
            return 0
        fi
        sleep 1
    done
    why="$1: the device is still there 30 s after it was removed: $host holds it"
    return 1
}

# away NAME KIND: the card goes away under the program that uses it.
away() {
    local before1 before2 flight asked
    speak_of "$1"
    asked=$(date +%s.%N)
    before1=$(field h1 failovers) before2=$(field h2 failovers)
    fault "$2" a "$host" || { why="the lab could not do '$2'"; return 1; }
    wait_field h1 failovers $((before1 + 1)) 30 || { why="$1, $2: no failover at h1 within 30 s"; return 1; }
    wait_field h2 failovers $((before2 + 1)) 30 || { why="$1, $2: no failover at h2 within 30 s"; return 1; }
    flight=$(in_flight_after "$host" "$asked")
    ((${flight:-0} >= least_in_flight)) || { why="$1, $2: only ${flight:-no} operations in flight"; return 1; }
    wait_gone "$1" || return 1
    flows 30 || { why="$1, $2: no traffic without the card"; return 1; }
    (($(field "$host" rails_up) == 1)) || { why="$1, $2: $host counts $(field "$host" rails_up) rails up"; return 1; }
    what+="${what:+; }$2: $flight in flight"
}

# back KIND: the card comes back, as another device, while those that had the old one run.
back() {
    local id_before=$id
    fault "$1" a "$host" || { why="the lab could not do '$1', see fault.log"; return 1; }
    id=$(device_id) || return 1
    [[ $id != "$id_before" ]] || { why="$1: it is the same device as before"; return 1; }
}

# uses NAME OLDER: the program NAME begins and uses the card that is back; OLDER goes on without it.
uses() {
    local sent
    begin "$1" || return 1
    sent=$(packets) || return 1
    flows 60 || { why="$1: no traffic"; return 1; }
    speak_of "$2"
    flows 60 || { why="$2 does not go on beside $1"; return 1; }
    sent=$(($(packets) - sent)) || return 1
    what+=", $1: $sent packets"
    ((sent >= least_packets)) || { why="$1 does not use the device that is back: $sent packets"; return 1; }
}

# The one that began last has to go on over the card that is back alone.
alone() {
    local before sent
    speak_of "$1"
    before=$(field h1 failovers)
    redundant 60 || { why="$1: no standby"; return 1; }
    fault drop b || { why="the lab could not do 'drop b'"; return 1; }
    sent=$(packets) || return 1
    flows 60 || { why="$1: no traffic over the card that is back alone"; return 1; }
    sleep 2
    flows 60 || { why="$1: no traffic over the card that is back alone"; return 1; }
    sent=$(($(packets) - sent)) || return 1
    ((sent >= least_packets)) || { why="$1: the card that is back has sent $sent packets"; return 1; }
    fault clear b || { why="the lab could not mend rail b"; return 1; }
    what+="; alone: $sent packets, $(($(field h1 failovers) - before)) failovers"
}

twice() {
    id=$(device_id) || return 1
    begin first || return 1
    away first unplug || return 1
    back plug || return 1
    uses second first || return 1
    away second unbind || return 1
    back bind || return 1
    end second || return 1
    uses third first || return 1
    end first || return 1
    alone third || return 1
    end third
}

abandon_all() {
    local name
    for name in "${!port_of[@]}"; do
        speak_of "$name"
        abandon
    done
}

id="" why="" what=""
echo "# seed $seed"
if twice; then
    ok "card removed and its driver loaded anew under traffic, used again each time" "$what"
else
    not_ok "card removed and its driver loaded anew under traffic, used again each time" "$why$(first_wrong)"
    abandon_all
fi
finish
