# SPDX-License-Identifier: BSD-3-Clause

# Libraries of the engine's metadata. Without jansson there is no engine; without one of
# the others the engine says so when it is asked for what needs it.

# HA_META_LIBRARY(VARIABLE, MODULE, PACKAGE, WHAT): optional, --without-MODULE leaves it out.
AC_DEFUN([HA_META_LIBRARY], [
    AC_ARG_WITH([$2],
        [AS_HELP_STRING([--without-$2], [engine: build without $4])])
    AS_IF([test "x$with_$2" != xno],
          [PKG_CHECK_MODULES([$1], [$2],
              [ha_meta_have="$ha_meta_have $2"
               AC_DEFINE([HAVE_$1], [1], [$2 is there])],
              [AS_IF([test "x$with_$2" = xyes],
                     [AC_MSG_ERROR([$2 was asked for, but pkg-config does not find it (Debian: apt-get install $3)])])
               ha_meta_lack="$ha_meta_lack $2 ($3: $4)"])],
          [ha_meta_lack="$ha_meta_lack $2"])
])

AC_DEFUN([HA_META], [
    ha_meta_have=
    ha_meta_lack=
    PKG_CHECK_MODULES([JANSSON], [jansson], [have_jansson=yes], [have_jansson=no])
    HA_META_LIBRARY([LIBCRYPTO], [libcrypto], [libssl-dev], [shared secrets])
    HA_META_LIBRARY([LIBCURL], [libcurl], [libcurl4-openssl-dev], [HTTP and etcd metadata])
    HA_META_LIBRARY([HIREDIS], [hiredis], [libhiredis-dev], [Redis metadata])
    HA_META_LIBRARY([MICROHTTPD], [libmicrohttpd], [libmicrohttpd-dev], [the program hte_http_store])
    AC_CHECK_PROG([PYTHON3], [python3], [python3])
    AM_CONDITIONAL([HAVE_PYTHON3], [test -n "$PYTHON3"])
    AM_CONDITIONAL([HAVE_JANSSON], [test "x$have_jansson" = xyes])
    AM_CONDITIONAL([HAVE_LIBCURL], [test -n "$LIBCURL_LIBS"])
    AM_CONDITIONAL([HAVE_MICROHTTPD], [test -n "$MICROHTTPD_LIBS"])
    AS_IF([test "$have_jansson" = no && test "$engine_only" = yes],
          [AC_MSG_ERROR([the engine needs jansson, which pkg-config does not find (Debian: apt-get install libjansson-dev)])])
    AS_IF([test "$have_jansson" = no],
          [meta_summary="no: jansson is missing (Debian: apt-get install libjansson-dev)"],
          [meta_summary="jansson$ha_meta_have"
           AS_IF([test -n "$ha_meta_lack"], [meta_summary="$meta_summary; without$ha_meta_lack"])])
])

# What a program links besides libhte where that is the static one: what libhte's own objects use. (Not as Requires.private:
# pkg-config would follow those to all that a static libcurl uses, and ask for them even where libhte is a shared library.)
AC_DEFUN([HA_HTE_PC], [
    HTE_LIBS_PRIVATE="$JANSSON_LIBS $LIBCRYPTO_LIBS $LIBCURL_LIBS $HIREDIS_LIBS $UCX_LIBS -lpthread"
    AC_SUBST([HTE_LIBS_PRIVATE])
])
