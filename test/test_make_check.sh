#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/make_check gives a second chance to a test that only waited in vain (in a slow build: whose values were
# wrong), and to nothing else. `make check` is replaced by a small Makefile that writes the results of a first and of
# a later try.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d -t ha-make-check-XXXXXX)
trap 'rm -rf "$dir"' EXIT
failed=0
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS # those of the `make check` that runs this

printf 'TESTS = a t b\nlist-tests:\n\t@echo $(TESTS)\ncheck:\n\t@./run $(TESTS)\n' >"$dir/Makefile"

# tries FIRST SECOND: what the test program writes, and whether that is a failure (it is when it says FAILED)
tries() {
    rm -rf "$dir"/t.* "$dir"/tries
    printf '%s' "$1" >"$dir/says.1"
    printf '%s' "$2" >"$dir/says.2"
    cat >"$dir/run" <<'RUN'
#!/usr/bin/env bash
echo >>tries
says=says.$(($(wc -l <tries) > 1 ? 2 : 1))
cp "$says" t.log
word=PASS
! grep -q FAILED t.log || word=FAIL
echo ":test-result: $word" >t.trs
[[ $word == PASS ]]
RUN
    chmod +x "$dir/run"
}

# expect NAME STATUS TRIES TEXT [OPTION]
expect() {
    local status=0
    "$here/../scripts/make_check" ${5:+"$5"} "$dir" 1 >"$dir/out" 2>&1 || status=$?
    if [[ $status == "$2" && $(wc -l <"$dir/tries") == "$3" ]] && grep -q -- "$4" "$dir/out"; then
        echo "ok - $1"
    else
        failed=1
        echo "not ok - $1: status $status after $(wc -l <"$dir/tries") tries"
        cat "$dir/out"
    fi
}

place=$'[  ERROR   ] --- [   LINE   ] --- test.c:1: error: Failure!\n[  FAILED  ] test_a\n'
waited=$'ERROR: still not: it is here\n'$place
wrong=$'[  ERROR   ] --- 0x1 != 0x2\n'$place

tries 'well' 'never'
expect "well at once" 0 1 ''
tries "$waited" 'well'
expect "waited in vain once" 0 2 'passed at the second try: t'
grep -q 'still not: it is here' "$dir/t.log.first" || { failed=1; echo "not ok - the first log is kept"; }
tries "$waited" "$waited"
expect "waited in vain twice" 1 2 'first try: ERROR: still not: it is here'
tries "$wrong" 'well'
expect "a wrong value" 1 1 'no second try for t.trs'
tries "$waited$wrong" 'well'
expect "a wrong value beside it" 1 1 'no second try'
tries "${waited}==1==ERROR: AddressSanitizer: heap-use-after-free"$'\n' 'well'
expect "a sanitizer's word beside it" 1 1 'no second try'
tries "$wrong" 'well'
expect "a wrong value in a slow build" 0 2 'first try: .*0x1 != 0x2' --slow
tries "$wrong" "$wrong"
expect "a wrong value twice in a slow build" 1 2 'first try: .*0x1 != 0x2' --slow
tries "${wrong}WARNING: ThreadSanitizer: data race"$'\n' 'well'
expect "a sanitizer's word in a slow build" 1 1 'ThreadSanitizer: data race' --slow
leaked=$'==1==ERROR: LeakSanitizer: detected memory leaks\n    #0 0x7 in __interceptor_calloc ../libsanitizer/asan/x.cpp:77\nSUMMARY: AddressSanitizer: 56 byte(s) leaked in 1 allocation(s).\n'
tries "$wrong$leaked" 'well'
expect "what a failed test left behind, in a slow build" 0 2 'passed at the second try: t' --slow
tries "$wrong$leaked" 'well'
expect "what a failed test left behind" 1 1 'no second try'
tries "FAILED $leaked" 'well'
expect "a leak of its own" 1 1 'LeakSanitizer: detected' --slow
tries "$wrong$leaked==1==ERROR: AddressSanitizer: heap-use-after-free"$'\n' 'well'
expect "more than a leak" 1 1 'heap-use-after-free' --slow

# One before the others; when it has failed, it has its second try.
ordered() { # STATUS-OF-THE-FIRST WHICH [VARIABLE=VALUE]
    local status=0
    rm -f "$dir"/t.* "$dir"/says.* "$dir"/tries "$dir"/ran
    printf '#!/bin/sh\necho $* >>ran\n[ "$*" != t ] || [ "$(grep -cx t ran)" -gt 1 ] || { printf %%s "$SAYS" >t.log; echo ":test-result: FAIL" >t.trs; exit %s; }\n' \
        "$1" >"$dir/run"
    SAYS=$waited "$here/../scripts/make_check" --first t "$dir" 1 "${@:3}" >"$dir/out" 2>&1 || status=$?
    if ((status == 0)) && [[ $(grep . "$dir/ran" | sort | paste -sd,) == "$2" ]]; then
        echo "ok - first: $2"
    else
        failed=1
        echo "not ok - first: $2: status $status, $(paste -sd, "$dir/ran")"
        cat "$dir/out"
    fi
}
ordered 0 "a b,t"
ordered 1 "a b,t,t"
ordered 0 "c,t" TESTS="c t"
ordered 0 "t" TESTS="t"

# A program of hundreds of tests: only those that failed, and the result is that of all.
by_name() { # STATUS-OF-THE-SECOND
    rm -f "$dir"/test_glue*
    printf '#!/bin/sh\necho "[ RUN      ] $1"; echo "$1" >>names; [ %s = 0 ] && echo "[       OK ] $1"; exit %s\n' \
        "$1" "$1" >"$dir/test_glue"
    cat >"$dir/run" <<'RUN'
#!/usr/bin/env bash
echo >>tries
printf '%s\n' 'ERROR: still not: it is here' '[  ERROR   ] --- x' '[  FAILED  ] test_a' \
    '[  PASSED  ] 7 test(s).' '[  FAILED  ] tests: 1 test(s), listed below:' '[  FAILED  ] test_a' \
    '[  PASSED  ] 4 test(s).' >test_glue.log
printf '%s\n' ':test-result: FAIL' ':global-test-result: FAIL' >test_glue.trs
exit 1
RUN
    chmod +x "$dir/test_glue"
    rm -f "$dir"/t.* "$dir"/tries "$dir"/names
}
by_name 0
expect "by name" 0 1 'passed at the second try: test_glue'
[[ $(cat "$dir/names") == test_a && $(tail -n 1 "$dir/test_glue.log") == '12 passed, 0 failed, 0 skipped' ]] &&
    grep -qx ':global-test-result: PASS' "$dir/test_glue.trs" ||
    { failed=1; echo "not ok - by name: result"; cat "$dir"/names "$dir"/test_glue.*; }
by_name 1
expect "by name, twice in vain" 1 1 'first try: .*still not'
rm -f "$dir"/test_glue*

tries $'[vm:7995 :1:8061]      tcp_ep.c:478  Assertion `!(ep->flags & UCT_TCP_EP_FLAG_CTX_TYPE_TX)\' failed FAILED\n' 'well'
expect "an assertion of UCX's TCP" 0 2 'first try: .*tcp_ep.c:478' --slow
tries $'[vm:7995 :1:8061]      tcp_ep.c:700  Assertion `another\' failed FAILED\n' 'well'
expect "another assertion" 1 1 'no second try'
tries $'FAILED without a word\n' 'well'
expect "no result" 1 1 'no second try'
exit "$failed"
