dnl SPDX-License-Identifier: BSD-3-Clause
dnl HA_MOONCAKE: --without-mooncake leaves out libtransfer_engine.so, its header and the Python module mooncake:
dnl for machines that have Mooncake's own. Needs HA_META.
AC_DEFUN([HA_MOONCAKE], [
    AC_ARG_WITH([mooncake],
        [AS_HELP_STRING([--without-mooncake], [no libtransfer_engine.so and no Python module mooncake over libhte])])
    AM_CONDITIONAL([HAVE_MOONCAKE], [test "x$with_mooncake" != xno && test "x$have_jansson" = xyes])
])

dnl HA_PYTHON_DIR: where `make install` puts the Python modules, pythondir: --with-python-dir, or the first folder below the
dnl prefix that python3 looks for modules in, or else the one that it would have there. Needs PYTHON3.
AC_DEFUN([HA_PYTHON_DIR], [
    AC_ARG_WITH([python-dir],
        [AS_HELP_STRING([--with-python-dir=DIR], [install Python modules in DIR [as python3 has it below the prefix]])],
        [pythondir=$withval],
        [pythondir=
         ha_prefix=$prefix
         AS_IF([test "x$ha_prefix" = xNONE], [ha_prefix=$ac_default_prefix])
         AS_IF([test -n "$PYTHON3"],
               [pythondir=`$PYTHON3 -c '
import sys
root = sys.argv[[1]]
found = [[p for p in sys.path if p.startswith(root + "/lib") and p.endswith("-packages")]]
print(found[[0]] if found else "%s/lib/python%d.%d/site-packages" % ((root,) + sys.version_info[[:2]]))' "$ha_prefix"`])
         pythondir=`AS_ECHO(["$pythondir"]) | sed "s|^$ha_prefix/|\\${prefix}/|"`])
    AC_SUBST([pythondir])
    AM_CONDITIONAL([HAVE_PYTHON_DIR], [test -n "$pythondir" && test "x$pythondir" != xno && test "x$have_jansson" = xyes])
])
