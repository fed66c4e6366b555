# SPDX-License-Identifier: BSD-3-Clause

# The minor versions of UCX whose internal interface is described in uct_ha/abi.
m4_define([HA_UCX_MINORS], [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23])

# UCX: --with-ucx=PREFIX[:PREFIX...], each of another minor version; "system" is pkg-config's. The first is
# the one that programs and tests are built with. Sets UCX_CFLAGS and UCX_LIBS for it, and for each minor
# UCX_1_<minor>_CFLAGS and _LIBS.
AC_DEFUN([HA_UCX], [
    AC_REQUIRE([HA_ENGINE_ONLY])
    AC_ARG_WITH([ucx],
        [AS_HELP_STRING([--with-ucx=PREFIX@<:@:PREFIX...@:>@],
                        [build the transport for the UCX in each PREFIX, one of each minor version; "system" is
                         the one that pkg-config finds (default: system)])],
        [], [with_ucx=system])
    m4_foreach([ha_minor], [HA_UCX_MINORS], [have_ucx_1_[]ha_minor=no
    ])
    UCX_MINORS=
    ucx_version=
    AS_IF([test "$engine_only" = yes && test "$with_ucx" != "${with_ucx#*:}"],
          [AC_MSG_ERROR([--with-ucx=$with_ucx: the engine alone is built for one UCX, and runs with later ones. Name one])])
    for ha_prefix in `AS_ECHO(["$with_ucx"]) | tr : ' '`; do
        AS_IF([test "$ha_prefix" = system], [HA_UCX_SYSTEM], [HA_UCX_PREFIX])
        AS_IF([test "$engine_only" = yes], [HA_UCX_TAKE_UCP], [HA_UCX_TAKE])
    done
    m4_foreach([ha_minor], [HA_UCX_MINORS], [
        AC_SUBST([UCX_1_]ha_minor[_CFLAGS])
        AC_SUBST([UCX_1_]ha_minor[_LIBS])
        AM_CONDITIONAL([HAVE_UCX_1_]ha_minor, [test "$have_ucx_1_]ha_minor[" = yes])])
    AC_SUBST([UCX_CFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([UCX_MINORS])
    AC_SUBST([UCX_KNOWN], ["m4_join([ ], HA_UCX_MINORS)"])
    AS_IF([test "$engine_only" = yes], [HA_UCX_TRY_UCP], [HA_UCX_TRY])
])

# What pkg-config knows: ha_cflags, ha_libs, ha_libdir, ha_version.
AC_DEFUN([HA_UCX_SYSTEM], [
    PKG_CHECK_EXISTS([ucx], [],
        [AC_MSG_ERROR([UCX was not found by pkg-config. Install its development files (Debian: apt-get install libucx-dev), set PKG_CONFIG_PATH to the folder of ucx.pc, or name its folder by --with-ucx=PREFIX])])
    ha_cflags=`$PKG_CONFIG --cflags ucx`
    ha_libs=`$PKG_CONFIG --libs ucx`
    ha_libdir=`$PKG_CONFIG --variable=libdir ucx`
    ha_version=`$PKG_CONFIG --modversion ucx`
])

# A folder with include/ and a folder of libraries, as make install or an unpacked package leaves it.
AC_DEFUN([HA_UCX_PREFIX], [
    ha_header=$ha_prefix/include/uct/api/version.h
    AS_IF([test ! -r "$ha_header"],
          [AC_MSG_ERROR([--with-ucx=$ha_prefix: there is no $ha_header. Name the folder that holds include/ and lib/ of a complete UCX, or leave the option out])])
    ha_version=`$SED -n 's/^#define UCT_VERNO_STRING *"\(.*\)"/\1/p' "$ha_header"`
    ha_libdir=
    for ha_dir in "$ha_prefix"/lib/*-linux-gnu* "$ha_prefix/lib64" "$ha_prefix/lib"; do
        AS_IF([test -z "$ha_libdir" && test -e "$ha_dir/libuct.so"], [ha_libdir=$ha_dir])
    done
    AS_IF([test -z "$ha_libdir"],
          [AC_MSG_ERROR([--with-ucx=$ha_prefix: no libuct.so in its lib or lib64])])
    ha_cflags="-isystem $ha_prefix/include" # its warnings are not ours
    ha_libs="-L$ha_libdir -lucp -luct -lucs"
])

# The internal interface is described per minor version, so only described ones will do.
AC_DEFUN([HA_UCX_TAKE], [
    AC_MSG_CHECKING([whether UCX $ha_version is supported])
    AS_CASE([$ha_version],
        m4_foreach([ha_minor], [HA_UCX_MINORS], [[1.]ha_minor[|1.]ha_minor[.*],
            [AS_IF([test "$have_ucx_1_]ha_minor[" = yes],
                   [AC_MSG_ERROR([--with-ucx: $ha_prefix is a second UCX 1.]ha_minor[. Name one of each minor version])])
             have_ucx_1_]ha_minor[=yes
             UCX_1_]ha_minor[_CFLAGS=$ha_cflags
             UCX_1_]ha_minor[_LIBS=$ha_libs
             UCX_MINORS="$UCX_MINORS 1_]ha_minor[=$ha_libdir"],
            ])
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([UCX $ha_version is not supported, only 1.13 to 1.23 are. Point --with-ucx at one of them, or see docs/porting.md])])
    AC_MSG_RESULT([yes])
    AS_IF([test -z "$ucx_version"],
          [UCX_CFLAGS=$ha_cflags
           UCX_LIBS=$ha_libs
           ucx_version=$ha_version],
          [ucx_version="$ucx_version, $ha_version"])
])

# The public interface, which the engine uses, is the same in all later ones.
AC_DEFUN([HA_UCX_TAKE_UCP], [
    AC_MSG_CHECKING([whether UCX $ha_version is supported])
    AS_CASE([$ha_version],
            [0.*|1.@<:@0-9@:>@|1.@<:@0-9@:>@.*|1.1@<:@0-2@:>@|1.1@<:@0-2@:>@.*],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([UCX $ha_version is too old for the engine, which needs 1.13. Point --with-ucx at a later one])])
    AC_MSG_RESULT([yes])
    UCX_CFLAGS=$ha_cflags
    UCX_LIBS=$ha_libs
    ucx_version=$ha_version
])

AC_DEFUN([HA_UCX_TRY_UCP], [
    ha_saved_cppflags="$CPPFLAGS"
    CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
    AC_CHECK_HEADERS([ucp/api/ucp.h], [],
        [AC_MSG_ERROR([ucp/api/ucp.h is missing. Install UCX's development files (Debian: apt-get install libucx-dev)])])
    CPPFLAGS="$ha_saved_cppflags"
    ha_saved_libs="$LIBS"
    LIBS="$LIBS $UCX_LIBS"
    AC_CHECK_FUNC([ucp_init_version], [],
        [AC_MSG_ERROR([libucp does not export ucp_init_version. Use UCX as your distribution builds it])])
    LIBS="$ha_saved_libs"
])

# The first one: is it whole?
AC_DEFUN([HA_UCX_TRY], [
    ha_saved_cppflags="$CPPFLAGS"
    CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
    AC_CHECK_HEADERS([uct/api/uct.h ucs/config/parser.h ucs/async/async_fwd.h], [],
        [AC_MSG_ERROR([a header of UCX's UCT or UCS layer is missing. Install the complete development files (Debian: apt-get install libucx-dev)])])
    CPPFLAGS="$ha_saved_cppflags"
    ha_saved_libs="$LIBS"
    ha_saved_ldflags="$LDFLAGS"
    LIBS="$LIBS $UCX_LIBS"
    LDFLAGS="$LDFLAGS -Wl,--allow-shlib-undefined"
    AC_CHECK_FUNC([uct_component_register], [],
        [AC_MSG_ERROR([libuct does not export uct_component_register, so no transport can be added to it. Use UCX as your distribution builds it])])
    AC_CHECK_FUNC([ucs_malloc], [],
        [AC_MSG_ERROR([libucs does not export ucs_malloc. Use UCX as your distribution builds it (with memory tracking)])])
    LIBS="$ha_saved_libs"
    LDFLAGS="$ha_saved_ldflags"
])

# --enable-engine-only: libhte and what belongs to it, without the transport. Sets engine_only.
AC_DEFUN([HA_ENGINE_ONLY], [
    AC_ARG_ENABLE([engine-only],
        [AS_HELP_STRING([--enable-engine-only],
                        [build libhte, its tools and Python modules, and not the transport: needs no libibverbs and
                         no Open MPI, and UCX 1.13 or later])])
    AS_IF([test "x$enable_engine_only" = xyes],
          [engine_only=yes transport_summary="no: --enable-engine-only"],
          [engine_only=no transport_summary=yes])
    AM_CONDITIONAL([HAVE_TRANSPORT], [test "$engine_only" = no])
])

AC_DEFUN([HA_VERBS], [
    verbs_version=no
    AS_IF([test "$engine_only" = no],
          [PKG_CHECK_MODULES([VERBS], [libibverbs],
               [verbs_version=`$PKG_CONFIG --modversion libibverbs`],
               [AC_MSG_ERROR([libibverbs was not found. Install its development files (Debian: apt-get install libibverbs-dev), or build the engine alone: --enable-engine-only])])])
])

AC_DEFUN([HA_HWLOC], [
    PKG_CHECK_MODULES([HWLOC], [hwloc],
        [have_hwloc=`$PKG_CONFIG --modversion hwloc`
         AC_DEFINE([HAVE_HWLOC], [1], [hwloc is there])],
        [have_hwloc=no])
    AM_CONDITIONAL([HAVE_HWLOC], [test "x$have_hwloc" != xno])
])

# callgrind's requests are macros of a header; the program is needed only to count.
AC_DEFUN([HA_CALLGRIND], [
    AC_CHECK_HEADERS([valgrind/callgrind.h], [have_callgrind=yes], [have_callgrind=no])
    AM_CONDITIONAL([HAVE_CALLGRIND], [test "x$have_callgrind" = xyes])
])

AC_DEFUN([HA_CMOCKA], [
    PKG_CHECK_MODULES([CMOCKA], [cmocka],
        [have_cmocka=yes cmocka_summary=yes],
        [have_cmocka=no cmocka_summary="no (Debian: apt-get install libcmocka-dev)"])
    AM_CONDITIONAL([HAVE_CMOCKA], [test "x$have_cmocka" = xyes])
])
