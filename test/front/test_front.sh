#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libuct_ha.so.0 in any process: without UCX it is not there; with its UCX, whenever and however that comes,
# the transport is registered; with another UCX, here made up, one line and the program goes on.
# (With real other UCX versions: ./check --only minors.)
#
#   HA_LIB     library; default: of the build tree that we are in
#   HA_PROBE   the program front_probe; the same
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=${HA_LIB:-$PWD/.libs/libuct_ha.so.0}
probe=${HA_PROBE:-$PWD/test/front/front_probe}
version=$(ucx_info -v 2>/dev/null | sed -nE 's/^# (V|Library v)ersion:? ([0-9]+\.[0-9]+).*/\2/p')
minor=${version#*.}
glue=libuct_ha_1_$minor.so
line='no ha_rc for this program'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
unset UCX_TLS UCX_LOG_LEVEL OMPI_COMM_WORLD_LOCAL_RANK SLURM_LOCALID MPI_LOCALRANKID

# run COMMAND...: what it prints and "exit N" is $output.
run() {
    local status=0
    output=$(timeout 60 "$@" 2>&1) || status=$?
    output+=$'\n'"exit $status"
}

expect() { # NAME TEXT COUNT ...: each text comes so many times
    local name=$1 count
    shift
    while (($# > 0)); do
        count=$(grep -oF -e "$1" <<<"$output" | wc -l || true)
        if [[ $count != "$2" ]]; then
            failed=$((failed + 1))
            echo "FAIL $name: '$1' $count times, not $2; output was:"
            sed 's/^/     | /' <<<"$output"
            return
        fi
        shift 2
    done
    passed=$((passed + 1))
    echo "ok   $name"
}

# A made-up UCX in $work/NAME: VERSION, and all symbols of the list but those that PATTERN fits.
fake_ucx() {
    local name=$1 version=$2 without=$3 folder=$work/$1 part
    mkdir "$folder"
    "$here/../../scripts/ucx_symbols" "$minor" | grep -vE "^ucp_get_version|$without" | sed 's/.*/void &(void) {}/' >"$folder/uct.c"
    cat >>"$folder/uct.c" <<'UCT'
signed char uct_query_components(void **components, unsigned *count) { *components = 0; *count = 0; return 0; }
UCT
    cat >"$folder/ucp.c" <<UCP
signed char uct_query_components(void **components, unsigned *count);
void ucp_get_version(unsigned *a, unsigned *b, unsigned *c) { *a = ${version%%.*}; *b = ${version#*.}; *c = 0; }
const char *ucp_get_version_string(void) { return "$version.0"; }
signed char ucp_init_version(void) { void *all; unsigned n; return uct_query_components(&all, &n); }
void ucp_cleanup(void) {}
UCP
    for part in uct ucp; do
        "${CC:-cc}" -shared -fPIC -Wl,-soname,lib$part.so.0 -o "$folder/lib$part.so.0" "$folder/$part.c" \
            "-L$folder" $([[ $part == uct ]] || echo -l:libuct.so.0)
    done
}

preload=(env LD_PRELOAD="$library")

# ---- no UCX in the process ---------------------------------------------------------------------------------

for command in 'ls /' 'sh -c exit\ 3' 'cat /dev/null' 'python3 -c print(5)'; do
    read -r program option argument <<<"$command"
    argument=${argument//\\/}
    command -v "$program" >/dev/null || continue
    run "$program" "$option" ${argument:+"$argument"}
    plain=$output
    run "${preload[@]}" "$program" "$option" ${argument:+"$argument"}
    [[ $output == "$plain" ]] && output=same
    expect "$program: as without the library" same 1
done
run "${preload[@]}" cat /proc/self/maps
expect 'nothing of UCX is loaded with it' libucp 0 libuct.so 0 libibverbs 0 "$glue" 0 'exit 0' 1
run "${preload[@]}" "$probe" stats
expect 'counters without UCX: all zero' 'stats 0 0' 1 "$line" 0 'exit 0' 1

# ---- its UCX, however it comes ------------------------------------------------------------------------------

run "${preload[@]}" ucx_info -cf
expect 'a program that links UCX' 'UCX_HA_RC_RTO=' 1 "$line" 0 'exit 0' 1
run "${preload[@]}" "$probe" open:libucp.so.0 init components stats
expect 'a program that opens UCX later' 'init 0' 1 ' ha ' 1 'stats 0 0' 1 "$line" 0 'exit 0' 1
run "${preload[@]}" UCX_HA_RC_RTO=2s UCX_WARN_UNUSED_ENV_VARS=y "$probe" open:libucp.so.0 init
expect 'its knobs are known to a UCX that comes later' 'unused' 0 'init 0' 1 'exit 0' 1
run "${preload[@]}" "$probe" open:libucp.so.0 threads components
expect 'eight threads at once' 'init 0' 8 ' ha ' 1 "$line" 0 'exit 0' 1
run "${preload[@]}" "$probe" open:libucp.so.0 fork init components
expect 'the child of a fork' 'init 0' 1 ' ha ' 1 'exit 0' 1
run "${preload[@]}" "$probe" open:libucp.so.0 init fork init components
expect 'a fork afterwards' 'init 0' 2 ' ha ' 1 'exit 0' 1
run "$probe" open:libucp.so.0 "open:$library" components init stats
expect 'opened after UCX' ' ha ' 1 'init 0' 1 'stats 0 0' 1 "$line" 0 'exit 0' 1
run "$probe" open:libuct.so.0 "open:$library" components
expect 'opened after UCT alone' ' ha ' 1 "$line" 0 'exit 0' 1
run "$probe" "global:$library" open:libucp.so.0 init components
expect 'opened before UCX, for all to see' 'init 0' 1 ' ha ' 1 "$line" 0 'exit 0' 1
run "$probe" "open:$library" open:libucp.so.0 init components stats
expect 'opened before UCX, hidden: as if it were not there' 'init 0' 1 ' ha ' 0 'stats 0 0' 1 "$line" 0 'exit 0' 1

run env -C "$(dirname "$library")" LD_PRELOAD="./${library##*/}" "$probe" chdir:/ open:libucp.so.0 init components
expect 'a relative path, and a program that goes elsewhere' ' ha ' 1 'exit 0' 1
ln -s "$library" "$work/libuct_ha.so.0"
run env LD_PRELOAD="$work/libuct_ha.so.0" "$probe" open:libucp.so.0 init components
expect 'a link to it from another folder' ' ha ' 1 'exit 0' 1
mkdir "$work/second"
cp -L "$library" "$(dirname "$library")/$glue" "$work/second"
run env LD_PRELOAD="$library:$work/second/libuct_ha.so.0" "$probe" open:libucp.so.0 init components stats
expect 'two copies, UCX comes later: one transport' 'init 0' 1 ' ha ' 1 "$line" 0 'exit 0' 1
run env LD_PRELOAD="$library:$work/second/libuct_ha.so.0" ucx_info -cf
expect 'two copies, UCX is there: one transport' 'UCX_HA_RC_RTO=' 1 "$line" 0 'exit 0' 1

# ---- what is refused: one line, with the reason, and on ---------------------------------------------------------

fake_ucx whole "$version" NOTHING
fake_ucx lacking "$version" uct_md_config_table
fake_ucx other 1.99 uct_md_config_table
for name in lacking other; do
    with=(env LD_LIBRARY_PATH="$work/$name" LD_PRELOAD="$library")
    for command in ls sh python3; do
        run "${with[@]}" "$command" </dev/null
        expect "$name UCX: $command runs" 'exit 0' 1 "$line" 0 'symbol lookup' 0
    done
    case $name in
    lacking) reason='lacks uct_md_config_table' ;;
    other) reason='uses UCX 1.99.0' ;;
    esac
    run "${with[@]}" "$probe" open:libucp.so.0
    expect "$name UCX: no line while nobody uses it" "$line" 0 'exit 0' 1
    run "${with[@]}" "$probe" open:libucp.so.0 init init stats
    expect "$name UCX: one line" 'init 0' 2 "$line" 1 "$reason" 1 'stats 0 0' 1 'exit 0' 1
    run "${with[@]}" "$probe" open:libucp.so.0 threads
    expect "$name UCX: one line of eight threads" 'init 0' 8 "$line" 1 'exit 0' 1
    run env LD_LIBRARY_PATH="$work/$name" "$probe" open:libucp.so.0 "open:$library" init
    expect "$name UCX: one line when opened after it" 'init 0' 1 "$line" 1 "$reason" 1 'exit 0' 1
    run "${with[@]}" UCX_LOG_LEVEL=error "$probe" open:libucp.so.0 init
    expect "$name UCX: silenced as UCX's warnings are" 'init 0' 1 "$line" 0 'exit 0' 1
    run "${with[@]}" OMPI_COMM_WORLD_LOCAL_RANK=1 "$probe" open:libucp.so.0 init
    expect "$name UCX: the first process of a host tells" 'init 0' 1 "$line" 0 'exit 0' 1
done
run env LD_LIBRARY_PATH="$work/whole" LD_PRELOAD="$library" "$probe" open:libucp.so.0 init
expect 'a UCX with all symbols: none is missed' 'lacks' 0 "$line" 0

rm "$work/other/libucp.so.0"
run env LD_LIBRARY_PATH="$work/other" "$probe" open:libuct.so.0 "open:$library"
expect 'a UCX without libucp' "$line" 1 'no libucp.so.0' 1 'exit 0' 1

mkdir "$work/alone"
cp -L "$library" "$work/alone"
run env LD_PRELOAD="$work/alone/${library##*/}" "$probe" open:libucp.so.0 init components
expect 'the transport is not beside it' 'init 0' 1 ' ha ' 0 "$line" 1 "$work/alone/$glue: cannot open" 1 'exit 0' 1

mkdir "$work/copy"
cp -L "$(ldd "$(dirname "$library")/$glue" | awk '/libuct\.so/ { print $3 }')" "$work/copy"
run "${preload[@]}" "$probe" open:libucp.so.0 "open:$work/copy/libuct.so.0" init components
expect 'two copies of UCX' 'init 0' 1 ' ha ' 0 "$line" 1 'two copies of UCX' 1 'exit 0' 1

# ---- what the transport itself refuses, of a UCX that looks right ----------------------------------------------

# shim NAME C: a library in $work, to be preloaded, too
shim() {
    "${CC:-cc}" -shared -fPIC -x c -o "$work/$1.so" - <<<"$2"
}
shim statistics 'char ucs_stats_node_alloc[8];'
run env LD_PRELOAD="$work/statistics.so:$library" ucx_info -cf
expect 'UCX with statistics: one line with the way out' 'built with statistics' 1 'without --enable-stats' 1 UCX_HA_RC 0 \
    'exit 0' 1
shim assertions 'int ucs_async_context_create(int mode, void **p) { static char zero[4096]; *p = zero; return 0; }
void ucs_async_context_destroy(void *p) { (void)p; }'
run env LD_PRELOAD="$work/assertions.so:$library" ucx_info -cf
expect 'UCX without assertions: one line with the way out' 'built without assertions' 1 'with --enable-assertions' 1 \
    UCX_HA_RC 0 'exit 0' 1

echo "$passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
