# SPDX-License-Identifier: BSD-3-Clause

# HA_CHECK_CFLAG(flag, variable): append the flag when the compiler takes it.
AC_DEFUN([HA_CHECK_CFLAG], [
    AC_MSG_CHECKING([whether $CC accepts $1])
    ha_saved_cflags="$CFLAGS"
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
                      [AC_MSG_RESULT([yes])
                       $2="$[]$2 $1"],
                      [AC_MSG_RESULT([no])])
    CFLAGS="$ha_saved_cflags"
])

AC_DEFUN([HA_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST],
                        [build with address,undefined or with thread])],
        [], [enable_sanitizers=no])
    AS_CASE([$enable_sanitizers],
            [no], [ha_sanitizers=],
            [yes], [ha_sanitizers=address,undefined],
            [address|undefined|thread|address,undefined|undefined,address],
            [ha_sanitizers=$enable_sanitizers],
            [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers is not known. Use address,undefined or thread])])
    AS_IF([test -n "$ha_sanitizers"],
          [HA_CFLAGS="$HA_CFLAGS -fsanitize=$ha_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all -g"
           HA_LDFLAGS="-fsanitize=$ha_sanitizers"
           AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [])],
          [HA_LDFLAGS="-Wl,-z,defs"])
    AC_SUBST([HA_LDFLAGS])
    AM_CONDITIONAL([HA_SANITIZED], [test -n "$ha_sanitizers"])
])
