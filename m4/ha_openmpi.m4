# SPDX-License-Identifier: BSD-3-Clause

# Open MPI is optional: with it the hook component and the MPI benchmarks are built.
#   ompi_componentdir   where the component is installed
#   OMPI_CPPFLAGS       its component headers, as system headers: they are not warning-free
#   MPICC_CFLAGS/LIBS   for MPI programs
#   OMPI_VERSION        e.g. 4.1.4
AC_DEFUN([HA_OPENMPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi@<:@=PREFIX@:>@],
                        [build the Open MPI hook component (default: when found)])],
        [], [with_ompi=auto])
    AS_IF([test "$engine_only" = yes],
          [AS_CASE([$with_ompi], [auto|no], [with_ompi=no],
                   [AC_MSG_ERROR([--with-ompi and --enable-engine-only: the component is for the transport. Leave one out])])])
    AC_ARG_WITH([ompi-componentdir],
        [AS_HELP_STRING([--with-ompi-componentdir=DIR],
                        [install the hook there; "system" = Open MPI's own component
                         folder, where it is found without further settings
                         (default: LIBDIR/ucx-ha/openmpi)])],
        [], [with_ompi_componentdir='${libdir}/ucx-ha/openmpi'])

    have_ompi=no
    AS_CASE([$with_ompi],
            [no], [],
            [yes|auto], [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc])],
            [AC_PATH_PROGS([MPICC], [mpicc.openmpi mpicc], [], [$with_ompi/bin])])
    AS_IF([test -n "$MPICC"], [HA_OPENMPI_PROBE])
    AS_IF([test "$have_ompi" = no && test "$with_ompi" != no && test "$with_ompi" != auto],
          [AC_MSG_ERROR([Open MPI's component headers (ompi/mca/hook/hook.h) were not found. Install them (Debian: apt-get install libopenmpi-dev) or use --without-ompi])])

    AS_IF([test "$have_ompi" = yes],
          [ompi_summary="Open MPI $OMPI_VERSION -> $with_ompi_componentdir"],
          [ompi_summary=no])
    AS_IF([test "x$with_ompi_componentdir" = xsystem],
          [with_ompi_componentdir=$ompi_systemdir
           ompi_summary="Open MPI $OMPI_VERSION -> $ompi_systemdir"])
    ompi_componentdir=$with_ompi_componentdir
    AC_SUBST([ompi_componentdir])
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_VERSION])
    AC_SUBST([MPICC_CFLAGS])
    AC_SUBST([MPICC_LIBS])
    AM_CONDITIONAL([HAVE_OMPI], [test "$have_ompi" = yes])
])

# Open MPI's headers are told by its compiler wrapper.
AC_DEFUN([HA_OPENMPI_PROBE], [
    OMPI_VERSION=`$MPICC --showme:version 2>/dev/null | $SED -n 's/.*Open MPI \(@<:@0-9.@:>@*\).*/\1/p'`
    MPICC_CFLAGS=`$MPICC --showme:compile 2>/dev/null`
    MPICC_LIBS=`$MPICC --showme:link 2>/dev/null`
    ompi_incdirs=`$MPICC --showme:incdirs 2>/dev/null`
    AC_MSG_CHECKING([for Open MPI's component headers])
    for ha_dir in $ompi_incdirs; do
        AS_IF([test -r "$ha_dir/openmpi/ompi/mca/hook/hook.h"],
              [have_ompi=yes
               OMPI_CPPFLAGS="-isystem $ha_dir -isystem $ha_dir/openmpi"
               break])
    done
    AC_MSG_RESULT([$have_ompi (Open MPI ${OMPI_VERSION:-unknown})])

    # openmpi3 is the component folder of 4.x, openmpi40 of 5.x (Debian's names)
    ompi_systemdir='${libdir}/openmpi'
    for ha_dir in `$MPICC --showme:libdirs 2>/dev/null`; do
        for ha_sub in openmpi3 openmpi40 openmpi; do
            AS_IF([test -d "$ha_dir/$ha_sub"], [ompi_systemdir=$ha_dir/$ha_sub; break 2])
        done
    done
])
