#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What is under a rail changes while it is down: its GID gets another index, its port another hardware
# address. It becomes a standby again that carries everything when the other rail is cut. And a card
# that is taken out under traffic: the work goes on over the other one.
#
#   g_changes.sh     (shape two: own kernels, own cards)
set -Eeuo pipefail

seed=${HA_SEED:-$((RANDOM + 1))}

# shellcheck source=test/lab_tests/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
options "" "$@"
in_lab two "$@"

gid_a1=0000:0000:0000:0000:0000:ffff:0a4d:0101 # 10.77.1.1
new_mac=02:00:00:77:0a:02

# on HOST SCRIPT: its output; 1 and $why when it fails
on() {
    "$LAB" exec --timeout 60 "$1" "$2" 2>>"$logs/guest.log" || { why="on $1 '$2' failed, see guest.log"; return 1; }
}

# moved KIND RAIL [HOST]: that fault, and both sides go on over the other rail
moved() {
    local before1 before2
    before1=$(field h1 failovers) before2=$(field h2 failovers)
    fault "$@" || { why="the lab could not do '$*'"; return 1; }
    wait_field h1 failovers $((before1 + 1)) 20 || { why="$*: no failover at h1 within 20 s"; return 1; }
    wait_field h2 failovers $((before2 + 1)) 20 || { why="$*: no failover at h2 within 20 s"; return 1; }
    flows 30 || { why="$*: no traffic after the failover"; return 1; }
}

begin() {
    start "$1" --seed "$seed" --seconds 900 --window 1024
    flows 60 || { why="no traffic"; return 1; }
    redundant 30 || { why="no standby at the start"; return 1; }
}

end() {
    stop_pair
    verdict 120
}

# while_down HOST CHANGE PROOF: rail a is down at HOST, CHANGE is made there, the rail comes back; and has
# to carry when rail b falls silent. PROOF shows that the change took place: $what, or $why.
while_down() {
    local host=$1 change=$2 proof=$3
    moved down a "$host" || return 1
    "$change" || return 1
    fault up a "$host" || { why="the lab could not bring rail a up"; return 1; }
    redundant 90 || { why="rail a did not become a standby again"; return 1; }
    "$proof" || return 1
    moved drop b || return 1
    fault clear b || { why="the lab could not mend rail b"; return 1; }
    redundant 60 || { why="rail b did not become a standby again"; return 1; }
    end
}

gid_index() {
    on h1 "grep -l $gid_a1 /sys/class/infiniband/rxe_a/ports/1/gids/* 2>/dev/null | head -n 1 | sed 's,.*/,,'"
}

# The place of the address is taken by another one before it is back. In the end it is alone again.
move_gid() {
    index_before=$(gid_index) || { why="cannot read the GIDs of h1"; return 1; }
    on h1 'sysctl -qw net.ipv4.conf.eth0.promote_secondaries=1
        ip -batch - <<END
addr add 10.77.1.201/24 dev eth0
addr del 10.77.1.1/24 dev eth0
addr add 10.77.1.202/24 dev eth0
addr add 10.77.1.1/24 dev eth0
addr del 10.77.1.201/24 dev eth0
addr del 10.77.1.202/24 dev eth0
END' >>"$logs/guest.log"
}

gid_moved() {
    local index
    index=$(gid_index) || { why="cannot read the GIDs of h1"; return 1; }
    what="GID index $index_before, then $index"
    [[ -n $index && -n $index_before && $index != "$index_before" ]] || { why="nothing has changed: $what"; return 1; }
}

change_mac() {
    on h2 "ip link set eth0 address $new_mac" >>"$logs/guest.log"
}

mac_changed() {
    local known
    known=$(on h1 'ip neigh show 10.77.1.2 dev eth0') || { why="cannot read the neighbours of h1"; return 1; }
    what="h1 knows 10.77.1.2 as $new_mac"
    [[ $known == *"$new_mac"* ]] || { why="h1 has not found the new hardware address: '$known'"; return 1; }
}

# A running program does not get the card back, the next one does.
card_removed() {
    local after
    moved unplug a h2 || return 1
    sleep 5
    flows 30 || { why="no traffic 5 s after the card was removed"; return 1; }
    after=$(field h2 rails_up)
    end || return 1
    ((after == 1)) || { why="h2 counts $after rails up without the card"; return 1; }
    fault plug a h2 || { why="the lab could not put the card back, see fault.log"; return 1; }
    begin "plugged" || { why="with the card back: $why"; return 1; }
    end || return 1
    what="went on over rail b; the next program has both"
}

# check NAME COMMAND...: with traffic of its own
check() {
    local name=$1
    shift
    why="" what=""
    if begin "${name// /-}" && "$@"; then
        ok "$name" "$what"
    else
        not_ok "$name" "$why$(first_wrong)"
        abandon
    fi
}

echo "# seed $seed"
check "gid index moves while the rail is down" while_down h1 move_gid gid_moved
check "hardware address changes while the rail is down" while_down h2 change_mac mac_changed
check "card taken out under traffic" card_removed
finish
