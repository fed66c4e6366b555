#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/in_suite (./check --suite): the root has the source as it is now, a UCX that is newer than all that are known
# is a SKIP, what is missing to make a root is installed or named. A small project stands in for this one, programs
# that only say what they were called with for mmdebstrap, chroot and APT.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v git >/dev/null || { echo "SKIP: no git here"; exit 77; }
if ((EUID != 0)); then
    unshare --map-root-user true 2>/dev/null || { echo "SKIP: needs root, or user namespaces"; exit 77; }
    exec unshare --map-root-user "${BASH_SOURCE[0]}" "$@"
fi
work=$(mktemp -d -t ha-in-suite-XXXXXX)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
project=$work/project stubs=$work/stubs
mkdir -p "$project"/{scripts,m4,docs} "$stubs"
cp "$here"/../scripts/{in_suite,packages.sh,make_minors} "$project/scripts/"
echo 'm4_define([HA_UCX_MINORS], [13, 18, 23])' >"$project/m4/ha_libraries.m4"
touch "$project/docs/old.md" "$project/docs/kept.md"
git -C "$project" init -q
git -C "$project" add -A

stub() { # NAME: its text from stdin
    { echo '#!/usr/bin/env bash'; cat; } >"$stubs/$1"
    chmod +x "$stubs/$1"
}
stub chroot <<'STUB'
case "$*" in
*dpkg-query*) echo "$INSTALLED" ;;
*apt-cache*) printf 'Package: libucx-dev\nVersion: %s\n' "$CANDIDATE" ;;
esac
STUB
stub unshare <<'STUB'
echo "$9 is run: ${*:11}"
STUB
made_root='for argument; do [[ $argument != */roots/* ]] || mkdir -p "$argument/etc"; done'
stub dpkg-query </dev/null
# what APT was asked to install is there from then on
stub apt-get <<STUB
echo "apt-get: \$*"
[[ \$* != *mmdebstrap* ]] || printf '#!/usr/bin/env bash\n%s\n' '$made_root' >"$stubs/mmdebstrap"
chmod -f +x "$stubs/mmdebstrap" || true
STUB
for program in bash chmod env git sed sort tr tail comm xargs rm mkdir touch tar mv cp cut grep dirname cat; do
    ln -s "$(command -v "$program")" "$stubs/$program"
done

# in_suite SUITE [ARGUMENT...]: what it says, in $output, and its exit status; no other program is to be found
in_suite() {
    status=0
    output=$(env -i PATH="$stubs" HOME="$work" HA_BUILD_DIR="$work/build" INSTALLED="${installed:-}" \
        CANDIDATE="${candidate:-1.18.1+ds-3}" ${no_install:+HA_NO_INSTALL=1} "$project/scripts/in_suite" "$@" 2>&1) ||
        status=$?
}

expect() { # WHAT STATUS TEXT...: the exit status, and each text is in the output; "!text" is not
    local what=$1 wanted=$2 text good=1
    shift 2
    for text in "$@"; do
        case $text in
        !*) [[ $output != *"${text:1}"* ]] || good=0 ;;
        *) [[ $output == *"$text"* ]] || good=0 ;;
        esac
    done
    if ((good)) && [[ $status == "$wanted" ]]; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what: exit status $status, and not $wanted, or not all of: $*"
        sed 's/^/     | /' <<<"$output"
    fi
}

in_suite 7
expect 'no name of a suite' 2 'which suite' '!apt-get:'
no_install=1
in_suite trixie
expect 'no mmdebstrap, and nothing may be installed' 2 \
    'As root: apt-get install' mmdebstrap '!apt-get: ' '!check is run'
no_install=
in_suite trixie --no-install
expect '--no-install goes for the root, too' 2 'As root: apt-get install' '!apt-get: ' '!check is run'
in_suite trixie
expect 'no mmdebstrap: installed, and nothing else' 0 \
    'apt-get: install -y --no-install-recommends mmdebstrap' 'check is run'
src=$work/build/roots/trixie/src
output=$(ls "$src/docs") status=0
expect 'the source is there' 0 kept.md old.md

mkdir -p "$src/build" && touch "$src/build/made"
git -C "$project" rm -q --cached docs/old.md
rm "$project/docs/old.md" "$project/docs/kept.md" # the second one without telling git
echo 'new' >"$project/docs/new.md"
git -C "$project" add docs/new.md
in_suite trixie --only unit
expect 'once more, with an argument: the root is kept' 0 'check is run: --only unit' '!making '
output=$(find "$src" -type f)
expect 'what is gone is gone, what was built stays' 0 docs/new.md build/made '!old.md' '!kept.md'
rm "$work/build/roots/trixie/src.list"
touch "$src/docs/stray.md"
in_suite trixie
output=$(find "$src" -type f)
expect 'a copy of which nobody knows the files is made anew' 0 docs/new.md '!stray.md'

in_suite trixie --demo --seconds 20
expect './demo in it' 0 'demo is run: --seconds 20'

candidate=1.24.1+ds-1
in_suite sid
expect 'sid has a newer UCX' 0 'SKIP sid has moved: this ucx-ha knows no UCX 1.24.1, 1.23 is the newest' \
    '0 passed, 0 failed, 1 skipped' '!check is run'
installed=1.23.0~rc1-1
in_suite sid
expect 'sid: it is the installed one that counts' 0 'check is run' '!SKIP'
installed=1.24.0-1
in_suite sid
expect 'sid: installed, and newer' 0 'SKIP sid has moved' '!check is run'
installed=two
in_suite sid
expect 'a version that is none' 2 "sid has UCX 'two'"

echo "$passed passed, $failed failed, 0 skipped"
((failed == 0))
