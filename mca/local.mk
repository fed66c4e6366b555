# SPDX-License-Identifier: BSD-3-Clause
# Open MPI component hook/ha, where Open MPI's project headers are.

EXTRA_DIST += \
	%D%/README.md \
	%D%/test/test_hook.sh \
	%D%/test/test_mpi4py.sh \
	%D%/test/test_report.sh \
	%D%/test/agree.sh \
	%D%/test/mpi4py_probe.py \
	%D%/test/fake_uct_ha.c \
	%D%/test/hook_probe.c

# Open MPI takes every file named mca_* in a component folder for a component, and
# .libs serves as one before installation: name the objects differently.
# (Outside the condition: automake wants it so.)
%C%_mca_hook_ha_la_SHORTNAME = ha

# Headers that Open MPI's own include and that are not packaged, searched last.
ha_ompi_missing = \
	%D%/missing/opal/mca/threads/pthreads/threads_pthreads_mutex.h \
	%D%/missing/opal/mca/threads/pthreads/threads_pthreads_threads.h \
	%D%/missing/opal/mca/threads/pthreads/threads_pthreads_tsd.h
EXTRA_DIST += $(ha_ompi_missing)

if HAVE_OMPI
ompi_component_LTLIBRARIES = %D%/mca_hook_ha.la

%C%_mca_hook_ha_la_SOURCES = \
	$(ha_ompi_missing) \
	%D%/hook_ha.h \
	%D%/hook_ha_component.c \
	%D%/hook_ha_choice.c \
	%D%/hook_ha_library.c \
	%D%/hook_ha_pvar.c \
	%D%/hook_ha_report.c
# Not AM_CPPFLAGS: config.h and uct_ha/ hold names that Open MPI has too.
%C%_mca_hook_ha_la_CPPFLAGS = -I$(top_srcdir) $(OMPI_CPPFLAGS) -idirafter $(top_srcdir)/mca/missing $(UCX_CFLAGS) \
	-DHA_LIBDIR='"$(libdir)"'
# Not AM_LDFLAGS: its -z defs forbids what we rely on. Linked as Open MPI's own components
# are, to libmpi, which brings the rest of Open MPI: a program that loaded it with
# RTLD_LOCAL, as Python does, shows its symbols only to those who name it. No UCX: it
# comes with libuct_ha.
%C%_mca_hook_ha_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex '^mca_hook_ha_component$$'
%C%_mca_hook_ha_la_LIBADD = $(MPICC_LIBS) -ldl

# A component full of sanitizer calls cannot be loaded into a plain mpirun.
if !HA_SANITIZED
TESTS += %D%/test/test_hook.sh %D%/test/test_mpi4py.sh %D%/test/test_report.sh
endif
endif
