#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Does the lab do what it says? selftest.sh [PART...]: parts are errors, two, one, deadlines, side-by-side; all of them without arguments.
# Prints one line per check, then "N passed, N failed, N skipped"; exits 1 when one failed.
# shellcheck disable=SC2016 # $ in single quotes is for the guest
set -uo pipefail # not -e: a failed check must not end the others

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lab=$here/lab
export LAB_NAME=selftest$$
work=$(mktemp -d)
passed=0 failed=0 skipped=0 port=18600
trap 'for name in "$LAB_NAME" "$LAB_NAME-b"; do "$lab" down --name "$name" > /dev/null; rm -rf "${HA_LAB_RUN:-/tmp/ha-lab-$(id -u)}/$name"{,.lock}; done; rm -rf "$work"' EXIT

ok()   { passed=$((passed + 1)); echo "ok - $*"; }
nok()  { failed=$((failed + 1)); echo "not ok - $*"; }
skip() { skipped=$((skipped + 1)); echo "ok - $* # SKIP"; }

check() { # NAME COMMAND...: passes when the command does
    local name=$1
    shift
    if "$@" > "$work/out" 2>&1; then ok "$name"; else nok "$name"; sed 's/^/    /' "$work/out" | tail -20; fi
}

refuses() { # NAME WORDS COMMAND...: fails, and says WORDS
    local name=$1 words=$2
    shift 2
    if "$@" > "$work/out" 2>&1; then nok "$name: was accepted"
    elif grep -qF -- "$words" "$work/out"; then ok "$name"
    else nok "$name: does not say '$words'"; sed 's/^/    /' "$work/out"; fi
}

is() { [ "$1" = "$2" ] || { echo "is '$1', should be '$2'"; return 1; }; }

# pingpong SECONDS RAIL TOOL ARGS...: from h2 to h1; prints µs per iteration (whole), fails when it does not end in time.
pingpong() {
    local limit=$1 rail=$2 server code
    shift 2
    port=$((port + 1))
    local tool="$* -d \$LAB_RAIL_${rail^^} -g $gid -p $port"
    server=$("$lab" exec --bg --timeout $((limit + 3)) h1 "$tool") || return 1
    # the server may not listen yet: only then try again
    "$lab" exec --timeout "$limit" h2 "for i in {1..30}; do $tool $address > /tmp/pp.$port 2>&1; code=\$?
        grep -q 'connect to' /tmp/pp.$port || break; sleep 0.1; done; cat /tmp/pp.$port; exit \$code" > "$work/pp" 2>&1
    code=$?
    "$lab" kill "$server"
    cat "$work/pp" >&2
    [ $code = 0 ] && sed -nE 's/.* ([0-9]+)\.[0-9]+ usec\/iter.*/\1/p' "$work/pp" | grep .
}

works()      { pingpong 10 "$1" ibv_rc_pingpong -n 50 -s 64; }
stalls()     { ! pingpong 2 "$1" ibv_rc_pingpong -n 50 -s 64; }
ud_works()   { pingpong 10 "$1" ibv_ud_pingpong -n 50 -s 64; }
at_least()   { local us; us=$(pingpong 20 "$2" ibv_rc_pingpong -n "$3" -s 64) || return 1; echo "$us us"; [ "$us" -ge "$1" ]; }
port_state() { "$lab" exec "$2" "cat /sys/class/infiniband/\$LAB_RAIL_${1^^}/ports/1/state"; }
state_is() { # RAIL HOST STATE
    for _ in {1..20}; do [[ $(port_state "$1" "$2") == *"$3" ]] && return 0; done
    port_state "$1" "$2"
    return 1
}
quick() { # best of three: the machine may be busy
    local us
    for _ in 1 2 3; do
        us=$(works "$1") && [ "$us" -lt 30000 ] && return 0
    done
    echo "$us us"
    return 1
}
fault() { check "fault $*" "$lab" fault "$@"; }

mended() { # RAIL: after clear everything is as before (all: both)
    fault clear "$1"
    check "  rail $1 works again" works "$1"
}

faults_silent() {
    fault drop a
    check "  drop: rail a is dead" stalls a
    check "  drop: rail b is not" works b
    check "  drop: ports stay ACTIVE" state_is a h1 ACTIVE
    mended a
    fault drop-from a h1
    check "  drop-from: rail a is dead" stalls a
    mended a
    fault drop b h2
    check "  drop HOST: rail b is dead" stalls b
    mended b
    fault acks a h1
    check "  acks: RC stalls" stalls a
    check "  acks: UD, which has none, works" ud_works a
    mended a
    check "  without delay under 30 ms" quick a
    fault delay a 20
    check "  delay: a round trip takes 40 ms" at_least 40000 a 20
    fault clear a
    fault delay a h1 30
    check "  delay HOST: a round trip takes 30 ms" at_least 30000 a 20
    mended a
    fault loss a h2 30 # only what the client sends: were the server's last acknowledgement lost, the client would wait for ever
    check "  loss: slower, yet it ends" at_least 10000 a 50
    mended a
}

faults_loud() {
    local host
    for host in h1 h2; do
        fault down a $host
        check "  down: port of $host DOWN" state_is a $host DOWN
        check "  down: rail a is dead" stalls a
        check "  down: rail b is not" works b
        fault up a $host
        check "  up: port of $host ACTIVE" state_is a $host ACTIVE
        check "  up: rail a works" works a
    done
    fault carrier-off b h2
    check "  carrier-off: port of h2 DOWN" state_is b h2 DOWN
    check "  carrier-off: rail b is dead" stalls b
    fault carrier-on b
    check "  carrier-on: port of h2 ACTIVE" state_is b h2 ACTIVE
    check "  carrier-on: rail b works" works b
    "$lab" fault down a both && "$lab" fault carrier-off b h1 && "$lab" fault drop a
    fault clear
    check "  clear: rail a works" works a
    check "  clear: rail b works" works b
}

under_traffic() { # a cut in the middle of a transfer: it waits, and ends after the repair (rxe repeats for ever with retry 7)
    (pingpong 30 a ibv_rc_pingpong -n 4000 -s 64 > "$work/long" 2>&1) &
    sleep 1.5
    "$lab" fault drop a && sleep 1 && "$lab" fault clear a
    wait $!
}

shape_common() {
    check "pingpong RC rail a" works a
    check "pingpong RC rail b" works b
    check "pingpong UD rail a" ud_works a
    check "pingpong UD rail b" ud_works b
    check "memlock is unlimited" is "$("$lab" exec h2 'ulimit -l')" unlimited
    check "exit status comes back" is "$("$lab" exec h1 'exit 7'; echo $?)" 7
    check "stdout and stderr are apart" is "$("$lab" exec h1 'echo out; echo err >&2' 2> /dev/null)" out
    check "large output is whole" is "$("$lab" exec h2 head -c 3000000 /dev/zero | wc -c)" 3000000
    check "--env" is "$("$lab" exec -e A='x y' h1 printenv A)" "x y"
    local id
    id=$("$lab" exec --bg h2 'echo $LAB_HOST; exit 3')
    check "--bg, wait: output and status" is "$("$lab" wait "$id"; echo $?)" $'h2\n3'
    check "the shared folder, both ways" shared_folder
    check "a changed file of the project is seen at once" fresh_file
    faults_silent
    faults_loud
    check "a cut under traffic, mended, is survived by RC" under_traffic
}

shared_folder() {
    local share
    share=$("$lab" exec h1 'echo hello > $LAB_SHARE/there; echo $LAB_SHARE')
    is "$(cat "$share/there")" hello
    echo back > "$share/here"
    is "$("$lab" exec h1 cat "$share/here")" back
}

fresh_file() { # needs a writable folder which the guests share: the one given by --share
    echo 1 > "$work/shared/file"
    is "$("$lab" exec h1 cat "$work/shared/file")" 1 || return 1
    echo 22 > "$work/shared/new" && mv "$work/shared/new" "$work/shared/file"
    is "$("$lab" exec h1 cat "$work/shared/file")" 22
}

mpi_program() { # an MPI program in the shared folder of the lab, or nothing when there is no mpicc
    local share=$1
    command -v mpicc > /dev/null || return 1
    cat > "$work/sum.c" <<- 'C'
	#include <mpi.h>
	#include <stdio.h>
	int main(int argc, char **argv)
	{
	    int rank, sum;
	    MPI_Init(&argc, &argv);
	    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	    rank++;
	    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	    if (rank == 1) printf("sum %d\n", sum);
	    return MPI_Finalize();
	}
	C
    mpicc "$work/sum.c" -o "$share/sum"
}

mpi_checks() {
    local share ucx=(-e "UCX_TLS=rc_v,self" -e UCX_IB_GID_INDEX=0 --mca pml ucx)
    share=$("$lab" exec h1 'echo $LAB_SHARE')
    check "mpirun: a rank on each host" is "$("$lab" mpirun bash -c 'echo $LAB_HOST' | sort | xargs)" "$1"
    check "mpirun: -e reaches all ranks" is "$("$lab" mpirun -e FOO=bar printenv FOO | xargs)" "bar bar"
    if mpi_program "$share"; then
        check "mpirun: MPI over TCP or shared memory" is "$("$lab" mpirun --mca pml ob1 "$share/sum" 2> "$work/err")" "sum 3"
        check "mpirun: MPI over UCX rc_v" is "$("$lab" mpirun "${ucx[@]}" "$share/sum" 2> "$work/err")" "sum 3"
    else
        skip "mpirun: MPI programs (no mpicc here)"
    fi
    check "mpirun: exit status comes back" is "$("$lab" mpirun bash -c 'exit 9' > /dev/null 2>&1; echo $?)" 9
}

part_two() {
    gid=1 address=10.77.9.1
    mkdir -p "$work/shared"
    check "shape two boots" "$lab" up --shape two --share "$work/shared"
    check "up again: already up" "$lab" up --shape two
    refuses "up in another shape" "choose another --name" "$lab" up --shape one
    check "exec both" is "$("$lab" exec both hostname | sort | xargs)" "h1: h1 h2: h2"
    check "clocks agree within 0.2 s" clocks_agree
    shape_common
    fault after a h1 40
    check "  after: dead after 40 frames" stalls a
    mended a
    mpi_checks "h1 h2"
    check "log: consoles are there" bash -c "'$lab' log | grep -q 'LAB: ready'"
    check "down" "$lab" down
}

clocks_agree() {
    local host here there
    for host in h1 h2; do
        there=$("$lab" exec $host date +%s%3N)
        here=$(date +%s%3N)
        echo "$host: $there, here: $here"
        [ $((here - there)) -lt 400 ] && [ $((here - there)) -gt -200 ] || return 1
    done
}

ucx_perftest_one() { # TEST ARGS...: UCX's own RC transport between the two hosts
    local server env=(-e UCX_TLS=rc_v -e UCX_IB_GID_INDEX=0)
    port=$((port + 1))
    server=$("$lab" exec --bg --timeout 25 "${env[@]}" -e UCX_NET_DEVICES=rxe_a1:1 h1 ucx_perftest -p $port -t "$@")
    "$lab" exec --timeout 20 "${env[@]}" -e UCX_NET_DEVICES=rxe_a2:1 h2 "sleep 1; ucx_perftest -p $port -t $* 127.0.0.1" | grep Final
    local code=$?
    "$lab" kill "$server"
    return $code
}

part_one() {
    gid=0 address=127.0.0.1
    mkdir -p "$work/shared"
    check "shape one boots" "$lab" up --shape one --share "$work/shared"
    check "each host has its own rails" is "$("$lab" exec both 'echo $LAB_RAIL_A $UCX_NET_DEVICES' | sort | tail -1)" "h2: rxe_a2 rxe_a2:1,rxe_b2:1"
    shape_common
    refuses "after needs shape two" "only in shape two" "$lab" fault after a h1 4
    check "ucx_perftest tag_lat over rc_v" ucx_perftest_one tag_lat -s 8 -n 300 -w 20
    check "ucx_perftest tag_bw over rc_v" ucx_perftest_one tag_bw -s 65536 -n 100 -w 10
    mpi_checks "h1 h2"
    check "down" "$lab" down
}

elapsed_under() { # SECONDS COMMAND...
    local limit=$1 start=$SECONDS
    shift
    "$@"
    [ $((SECONDS - start)) -le "$limit" ] || { echo "took $((SECONDS - start)) s"; return 1; }
}

qemu_pid() { # the QEMU of guest $1 of this lab
    pgrep -f "^qemu-system-x86_64 .* lab.host=$1 lab.share=.*/$LAB_NAME/share " | head -1
}

part_deadlines() {
    gid=1 address=10.77.9.1
    check "boot" "$lab" up
    check "a stuck command is killed by its deadline" is "$("$lab" exec --timeout 2 h1 sleep 1000 2> /dev/null; echo $?)" 124
    check "so are its children and daemons" stuck_tree
    check "a stuck mpirun is killed by its deadline" is "$("$lab" mpirun --timeout 8 sleep 1000 > /dev/null 2>&1; echo $?)" 124
    sleep 1
    check "so are its ranks on both hosts" is "$("$lab" exec both 'pgrep -x sleep | wc -l' | sort | xargs)" "h1: 0 h2: 0"
    check "a caller that leaves takes its command along" caller_leaves
    kill -STOP "$(qemu_pid 1)"
    check "a frozen guest does not hang exec" elapsed_under 10 is "$("$lab" exec --timeout 2 h1 true 2> /dev/null; echo $?)" 124
    check "nor the other guest" "$lab" exec --timeout 10 h2 true
    check "nor status" "$lab" status
    kill -CONT "$(qemu_pid 1)"
    check "thawed, it answers again" "$lab" exec --timeout 20 h1 true
    kill -KILL "$(qemu_pid 2)"
    sleep 0.5
    refuses "a dead guest is reported" "guest 2 is gone" "$lab" exec h2 true
    kill -KILL "$("$lab" status | sed -nE 's/.*"warden": ([0-9]+).*/\1/p')"
    sleep 1
    check "no QEMU outlives its warden" is "$(qemu_pid 1)" ""
    refuses "exec without a lab" "is not up" "$lab" exec h1 true
    check "down of what is not up" "$lab" down
    refuses "run: a stuck script is killed" "did not end within" "$lab" run --timeout 1 sleep 100
    check "run: the script's exit status" is "$("$lab" run --shape one bash -c '"$LAB" exec h2 true && exit 6' > /dev/null 2>&1; echo $?)" 6
}

stuck_tree() {
    "$lab" exec --timeout 2 h1 'setsid sleep 4321 & (sleep 4321 &) ; sleep 4321' 2> /dev/null
    is "$("$lab" exec h1 'pgrep -x sleep | wc -l')" 0
}

caller_leaves() {
    timeout 2 "$lab" exec h2 sleep 5432
    sleep 0.5
    is "$("$lab" exec h2 'pgrep -x sleep | wc -l')" 0
}

part_side-by-side() {
    gid=0 address=127.0.0.1
    "$lab" up --name "$LAB_NAME-b" --shape one > "$work/b" 2>&1 &
    check "first of two labs" "$lab" up --shape one
    wait $!
    check "second, booted at the same time" grep -q "up in" "$work/b"
    check "a fault in one" "$lab" fault drop a
    check "  stops its rail" stalls a
    check "  not the other's" env LAB_NAME="$LAB_NAME-b" bash -c "$(declare -f pingpong works); $(declare -p lab work port gid address); works a"
    check "down of one" "$lab" down
    check "  leaves the other" "$lab" exec --name "$LAB_NAME-b" h1 true
    check "down of the other" "$lab" down --name "$LAB_NAME-b"
}

part_errors() {
    check "packages on one line" bash -c "[ \$('$lab' packages | wc -l) = 1 ]"
    check "setup" "$lab" setup
    check "setup again is quick" elapsed_under 2 "$lab" setup
    local command
    for command in packages setup up exec wait kill mpirun fault status log down run; do
        check "--help of $command" "$lab" $command --help
    done
    check "from another folder" env -C / "$lab" packages
    refuses "unknown fault" "no fault kind 'cut'" "$lab" fault cut a
    refuses "unknown rail" "not 'c'" "$lab" fault drop c
    refuses "down without a host" "say which host" "$lab" fault down a
    refuses "loss without a number" "say how many PERCENT" "$lab" fault loss a
    refuses "loss of 300 percent" "out of range" "$lab" fault loss a 300
    refuses "bad name" "not usable" "$lab" up --name a/b
    refuses "no command" "say which command" "$lab" exec h1
    refuses "bad accelerator" "must be kvm or tcg" env HA_LAB_ACCEL=warp "$lab" up
}

for part in "${@:-all}"; do
    case $part in
    all) parts=(errors two one deadlines side-by-side) ;;
    errors | two | one | deadlines | side-by-side) parts=("$part") ;;
    *) echo "selftest.sh: no part '$part'; there are errors, two, one, deadlines, side-by-side" >&2; exit 2 ;;
    esac
    for p in "${parts[@]}"; do
        echo "# $p (at $SECONDS s)"
        "part_$p"
    done
done
echo "# $SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
