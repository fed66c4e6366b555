# SPDX-License-Identifier: BSD-3-Clause

# UCX: the internal ABI is described per minor version, so only described ones will do.
AC_DEFUN([HA_UCX], [
    PKG_CHECK_MODULES([UCX], [ucx],
        [ucx_version=`$PKG_CONFIG --modversion ucx`],
        [AC_MSG_ERROR([UCX was not found by pkg-config. Install its development files (Debian: apt-get install libucx-dev), or set PKG_CONFIG_PATH to the folder of ucx.pc])])
    AC_MSG_CHECKING([whether UCX $ucx_version is supported])
    AS_CASE([$ucx_version],
            [1.13|1.13.*], [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([UCX $ucx_version is not supported, only 1.13 (Debian 12) is. Point PKG_CONFIG_PATH at the ucx.pc of a UCX 1.13])])
    ha_saved_cppflags="$CPPFLAGS"
    CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
    AC_CHECK_HEADERS([uct/api/uct.h ucs/config/parser.h ucs/async/async_fwd.h], [],
        [AC_MSG_ERROR([a header of UCX's UCT or UCS layer is missing. Install the complete development files (Debian: apt-get install libucx-dev)])])
    CPPFLAGS="$ha_saved_cppflags"
    ha_saved_libs="$LIBS"
    LIBS="$LIBS $UCX_LIBS"
    AC_CHECK_FUNC([uct_component_register], [],
        [AC_MSG_ERROR([libuct does not export uct_component_register, so no transport can be added to it. Use UCX as your distribution builds it])])
    AC_CHECK_FUNC([ucs_malloc], [],
        [AC_MSG_ERROR([libucs does not export ucs_malloc. Use UCX as your distribution builds it (with memory tracking)])])
    LIBS="$ha_saved_libs"
])

AC_DEFUN([HA_VERBS], [
    PKG_CHECK_MODULES([VERBS], [libibverbs],
        [verbs_version=`$PKG_CONFIG --modversion libibverbs`],
        [AC_MSG_ERROR([libibverbs was not found. Install its development files (Debian: apt-get install libibverbs-dev)])])
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
