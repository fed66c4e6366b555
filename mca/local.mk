# SPDX-License-Identifier: BSD-3-Clause
# Open MPI component hook/ha. configure provides, when Open MPI's project
# headers are there: HAVE_OMPI (conditional), OMPI_CPPFLAGS (-isystem DIR
# -isystem DIR/openmpi, as a system directory: those headers are not warning-free)
# and ompi_componentdir (`ompi_info --path pkglibdir --parsable`).

EXTRA_DIST += mca/README.md mca/test/test_hook.sh mca/test/fake_uct_ha.c mca/test/hook_probe.c

if HAVE_OMPI
ompi_component_LTLIBRARIES = mca/mca_hook_ha.la

mca_mca_hook_ha_la_SOURCES = \
	mca/hook_ha.h \
	mca/hook_ha_component.c \
	mca/hook_ha_choice.c \
	mca/hook_ha_library.c \
	mca/hook_ha_pvar.c
mca_mca_hook_ha_la_CPPFLAGS = -I$(top_srcdir) $(OMPI_CPPFLAGS) -DHA_LIBDIR='"$(libdir)"'
# Nothing to link: Open MPI's symbols are in the process that loads us, UCX's
# come with libuct_ha.
mca_mca_hook_ha_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex '^mca_hook_ha_component$$'
mca_mca_hook_ha_la_LIBADD = -ldl
endif
