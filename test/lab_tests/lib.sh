# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the lab tests have in common. Sourced by them; they run inside `lab run`
# or start a lab of their own (in_lab).
#
#   HA_BUILD_DIR  the build folder (default: the current folder, else the source tree, else build/gcc)
#   HA_LIB        the library to test (default: libuct_ha.so.0 of that build)
#   LAB_NAME      a running lab to use
#   HA_TEST_ENV   more variables for the programs, e.g. "UCX_HA_RC_PROOF=count"
#   HA_TEST_LOGS  where logs are kept (default: a temporary folder, removed when all passed)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
LAB=$top/test/lab/lab

passed=0 failed=0 skipped=0
trap 'echo "not ok - $0: line $LINENO: $BASH_COMMAND failed"' ERR

ok() { passed=$((passed + 1)); echo "ok - $1${2:+ ($2)}"; }
not_ok() { failed=$((failed + 1)); echo "not ok - $1: $2"; }
skip() { skipped=$((skipped + 1)); echo "skip - $1: $2"; }

finish() {
    if ((failed > 0)) || [[ -n ${HA_TEST_LOGS:-} ]]; then
        echo "logs: $logs"
    else
        rm -rf "$logs"
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed > 0))
}

# options NAMES "$@": --NAME VALUE sets the variable NAME
options() {
    local names=" $1 " name
    shift
    while (($# > 0)); do
        name=${1#--}
        name=${name//-/_}
        if [[ $1 != --* || $names != *" $name "* ]]; then
            echo "${0##*/}: unknown option '$1'; see its first lines" >&2
            exit 2
        elif (($# < 2)); then
            echo "${0##*/}: $1 needs a value" >&2
            exit 2
        fi
        printf -v "$name" %s "$2"
        shift 2
    done
}

find_build() {
    local dir
    for dir in "${HA_BUILD_DIR:-}" "$PWD" "$top" "$top/build/gcc"; do
        if [[ -n $dir && -e $dir/libuct_ha.la ]]; then
            HA_BUILD_DIR=$(cd "$dir" && pwd)
            break
        fi
    done
    if [[ ! -e ${HA_BUILD_DIR:-}/libuct_ha.la ]]; then
        echo "no build of ucx-ha in '${HA_BUILD_DIR:-$PWD}'; build it, and give HA_BUILD_DIR" >&2
        exit 2
    fi
    HA_LIB=${HA_LIB:-$HA_BUILD_DIR/.libs/libuct_ha.so.0}
    torture=$HA_BUILD_DIR/test/lab_tests/ha_torture
    export HA_BUILD_DIR HA_LIB
    if [[ ! -e $HA_LIB ]]; then
        echo "no library '$HA_LIB'; give its path in HA_LIB" >&2
        exit 2
    fi
    if [[ ! -x $torture ]]; then
        echo "no $torture; run make there" >&2
        exit 2
    fi
}

find_build
if [[ -n ${HA_TEST_LOGS:-} ]]; then
    logs=$HA_TEST_LOGS
    mkdir -p "$logs"
else
    logs=$(mktemp -d -t ha-lab-tests-XXXXXX)
fi

# in_lab SHAPE ARGS...: runs this script again inside a lab of that shape, unless
# it is in one already. The lab ends with it.
in_lab() {
    local shape=$1
    shift
    if [[ -n ${LAB_NAME:-} ]]; then
        share=$("$LAB" status | sed -n 's/.*"share": *"\([^"]*\)".*/\1/p' | head -n 1)
        share=${LAB_SHARE:-$share}
        # An ingress queue that stays: with the first and the last one the kernel patches its
        # own running code, which QEMU's emulation does not always survive.
        "$LAB" exec h1 'tc qdisc add dev lo clsact 2>/dev/null || true'
        return
    fi
    HA_TEST_LOGS=${HA_TEST_LOGS:-} exec "$LAB" run --shape "$shape" --share "$HA_BUILD_DIR" \
        --timeout 1500 "$0" "$@"
}

# ---- traffic: one pair of ha_torture at a time, h1 the client, h2 the server --------------

# Each run has files of its own on the share: what the host removes and makes again, a
# guest may not find.
port=$((7000 + RANDOM % 2000))
run=""

# start NAME [-e A=B]... [--server ARGS... --] CLIENT-ARGS...
start() {
    local env=() server=()
    run=${1//[^a-z0-9]/-}
    shift
    while [[ ${1:-} == -e ]]; do
        env+=("$2")
        shift 2
    done
    if [[ ${1:-} == --server ]]; then
        shift
        while [[ $1 != -- ]]; do
            server+=("$1")
            shift
        done
        shift
    fi
    port=$((port + 1))
    on_host h2 "$run.h2" "${env[@]}" "$torture" --port "$port" --progress "$share/$port.$run.h2" \
        --stall-limit 40 "${server[@]}"
    on_host h1 "$run.h1" "${env[@]}" "$torture" --port "$port" --progress "$share/$port.$run.h1" \
        --stall-limit 40 --host h2 "$@"
}

declare -A pid_of=()
read -ra more_env <<<"${HA_TEST_ENV:-}"

# on_host HOST LOG [A=B]... PROGRAM ARGS...: in the background, output to $logs/LOG.
# The guest writes its process number to the share, for signals. Rails fail here more
# often than in years: without an end to its growth the cool-down would be most of the test.
on_host() {
    local host=$1 log=$2
    shift 2
    "$LAB" exec --timeout 900 "$host" bash -c 'echo $$ >"$LAB_SHARE/$0.pid"; exec nice -n 10 env "$@"' "$log" \
        LD_PRELOAD="$HA_LIB" UCX_TLS=ha_rc,self UCX_HA_RC_COOLDOWN_MAX=100ms "${more_env[@]}" "$@" \
        >"$logs/$log.log" 2>&1 &
    pid_of[$log]=$!
}

# signal_host HOST LOG SIGNAL
signal_host() {
    "$LAB" exec --timeout 20 "$1" "kill -$3 \$(cat \$LAB_SHARE/$2.pid)"
}

# ended LOG SECONDS: waits; $status is its exit status, or 'running'
ended() {
    local until=$((SECONDS + $2))
    status=running
    while kill -0 "${pid_of[$1]}" 2>/dev/null; do
        if ((SECONDS >= until)); then
            return 1
        fi
        sleep 0.1
    done
    status=0
    wait "${pid_of[$1]}" || status=$?
}

# field HOST NAME: from the progress file of the present run; 0 before there is one
field() {
    local value=""
    [[ ! -e $share/$port.$run.$1 ]] || value=$(tr ' ' '\n' <"$share/$port.$run.$1" | sed -n "s/^$2=//p") || true
    echo "${value:-0}"
}

# wait_field HOST NAME LEAST SECONDS: until the field is at least LEAST
wait_field() {
    local deadline=$((SECONDS + $4)) value
    while value=$(field "$1" "$2") && ((${value%.*} < $3)); do
        if ((SECONDS >= deadline)); then
            return 1
        fi
        if ! kill -0 "${pid_of[$run.$1]}" 2>/dev/null; then
            return 1
        fi
        sleep 0.1
    done
}

# flows SECONDS: both sides see operations complete
flows() {
    local host value
    for host in h1 h2; do
        value=$(field "$host" operations)
        wait_field "$host" operations $((value + 50)) "$1" || return 1
    done
}

# redundant SECONDS: both sides have a standby again for every pair
redundant() {
    local deadline=$((SECONDS + $1)) host pairs
    for host in h1 h2; do
        while pairs=$(field "$host" pairs) && ((pairs == 0 || $(field "$host" standbys) < pairs)); do
            ((SECONDS < deadline)) || return 1
            sleep 0.1
        done
    done
}

# fault KIND RAIL [HOST]...: $fault_at is the moment at which it was in force
fault() {
    local line
    line=$("$LAB" fault "$@" 2>>"$logs/fault.log") || {
        echo "lab fault $* failed" >>"$logs/fault.log"
        return 1
    }
    echo "$line" >>"$logs/fault.log"
    fault_at=$(sed -n 's/.*in force at \([0-9.]*\).*/\1/p' <<<"$line" | tail -n 1)
}

# the number of operations under way at the last failover seen by HOST after the
# present fault (whichever side's counter moved), or nothing
in_flight_after() { # HOST TIME
    awk -v at="$2" '$2 == "failover" && $1 >= at - 1 { print $4; exit }' "$logs/$run.$1.log"
}

json_line() { # LOG
    grep '^{' "$logs/$1.log" | tail -n 1
}

json() { # LOG NAME
    json_line "$1" | sed -n "s/.*\"$2\":\"\?\([^,\"}]*\).*/\1/p"
}

# The client ends its run on SIGUSR1.
stop_pair() {
    signal_host h1 "$run.h1" USR1 || true
}

# verdict [SECONDS]: both sides ended well; else $why. Not in a subshell: it waits.
verdict() {
    local host
    for host in h1 h2; do
        if ! ended "$run.$host" "${1:-90}"; then
            why="$host still runs after ${1:-90} s"
            return 1
        fi
        if [[ $status != 0 || $(json "$run.$host" ok) != true ]]; then
            why="$host ended with status $status: $(grep -m 2 -hE 'WRONG|ERROR|endpoint error|stuck|progress|ha_torture:' \
                "$logs/$run.$host.log" | paste -sd' ' | head -c 300)"
            return 1
        fi
    done
}

# "; " and what the present pair found wrong so far, or nothing
first_wrong() {
    grep -h -m 1 -E 'WRONG|endpoint error|stuck|Assertion|Segmentation' "$logs/$run".h?.log | head -n 1 |
        sed 's/^/; /' | cut -c1-200 || true
}

# What a guest's kernel complained of, and who waits in it, when there is any: a host or command that stood still was
# perhaps not of our making.
keep_kernel_words() {
    local host words
    for host in h1 h2; do
        words=$("$LAB" exec --timeout 30 "$host" 'echo w >/proc/sysrq-trigger; dmesg' 2>/dev/null) || words=""
        if [[ -z $words ]]; then
            echo "# $host does not answer"
        elif grep -qE 'BUG:|soft lockup|Call Trace:| state:D ' <<<"$words"; then
            cat >"$logs/$host.dmesg" <<<"$words"
            echo "# the kernel of $host complains, see $logs/$host.dmesg"
        fi
    done
}

# Ends a run that went wrong, and gives the next one healthy rails.
abandon() {
    local host
    keep_kernel_words
    for host in h1 h2; do
        signal_host "$host" "$run.$host" KILL >/dev/null 2>&1 || true
    done
    "$LAB" fault clear >/dev/null 2>&1 || true
    "$LAB" fault up all >/dev/null 2>&1 || true
    "$LAB" fault carrier-on all >/dev/null 2>&1 || true
    wait "${pid_of[$run.h1]}" "${pid_of[$run.h2]}" 2>/dev/null || true
}
