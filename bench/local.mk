# SPDX-License-Identifier: BSD-3-Clause
# MPI programs, where there is an mpicc, and the scripts around them.

EXTRA_DIST += \
	%D%/README.md \
	%D%/budget \
	%D%/compare \
	%D%/failover \
	%D%/handshake \
	%D%/plot_outage.py \
	%D%/rto_sweep \
	%D%/test_bench.sh \
	%D%/test_budget.py \
	%D%/test_many.sh \
	%D%/test_verdicts.py

check_PROGRAMS += %D%/test_pattern
TESTS          += %D%/test_pattern
%C%_test_pattern_SOURCES = %D%/test_pattern.c %D%/bench_pattern.c %D%/bench_pattern.h

TESTS += %D%/test_budget.py %D%/test_many.sh %D%/test_verdicts.py

# for bench/handshake and bench/budget
noinst_PROGRAMS += %D%/ha_budget_of %D%/ha_connect
%C%_ha_budget_of_SOURCES = %D%/ha_budget_of.c
%C%_ha_budget_of_LDADD   = libha_topo.la

%C%_ha_connect_SOURCES  = %D%/ha_connect.c
%C%_ha_connect_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
%C%_ha_connect_LDADD    = $(UCX_LIBS)

# for bench/many
noinst_PROGRAMS += %D%/fabric_driver %D%/many_driver
%C%_fabric_driver_SOURCES  = %D%/fabric_driver.c %D%/many_end.c %D%/many_end.h
%C%_fabric_driver_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(UCX_CFLAGS)
%C%_fabric_driver_LDADD    = $(UCX_LIBS) -ldl
%C%_many_driver_SOURCES  = %D%/many_driver.c %D%/many_end.c %D%/many_end.h
%C%_many_driver_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(UCX_CFLAGS)
%C%_many_driver_LDADD    = $(UCX_LIBS) -ldl

# for bench/cost
EXTRA_DIST += %D%/cost %D%/cost.expected %D%/cost_engine.py %D%/cost_show.py %D%/many %D%/native %D%/same_host %D%/scale_sim
if HAVE_CALLGRIND
noinst_PROGRAMS += %D%/cost_driver
%C%_cost_driver_SOURCES  = \
	%D%/cost_bare.c \
	%D%/cost_bare.h \
	%D%/cost_driver.c \
	%D%/cost_side.c \
	%D%/cost_side.h \
	%D%/cost_work.c \
	%D%/cost_work.h
%C%_cost_driver_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(UCX_CFLAGS) $(VERBS_CFLAGS)
%C%_cost_driver_LDADD    = $(UCX_LIBS) $(VERBS_LIBS) -ldl

if HAVE_JANSSON
noinst_PROGRAMS += %D%/cost_engine
%C%_cost_engine_SOURCES  = %D%/cost_engine.c
%C%_cost_engine_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)
%C%_cost_engine_LDADD    = libhte.la
# without libtool's script around it, which valgrind would not see through
%C%_cost_engine_LDFLAGS  = $(AM_LDFLAGS) -no-install
endif
endif

if HAVE_OMPI
bin_PROGRAMS += %D%/ha_bw %D%/ha_lat
if HAVE_PYTHON3
man_MANS   += %D%/ha_bw.1 %D%/ha_lat.1
CLEANFILES += %D%/ha_bw.1 %D%/ha_lat.1

%D%/ha_bw.1: %D%/ha_bw$(EXEEXT) scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_bw %D%/ha_bw$(EXEEXT) >$@.new && mv $@.new $@
%D%/ha_lat.1: %D%/ha_lat$(EXEEXT) scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_lat %D%/ha_lat$(EXEEXT) >$@.new && mv $@.new $@
endif

bench_common_sources = \
	%D%/bench_mpi.c %D%/bench_mpi.h \
	%D%/bench_options.c %D%/bench_options.h \
	%D%/bench_pattern.c %D%/bench_pattern.h \
	%D%/bench_series.c %D%/bench_series.h

%C%_ha_bw_SOURCES  = %D%/ha_bw.c $(bench_common_sources)
%C%_ha_bw_CPPFLAGS = $(AM_CPPFLAGS) $(MPICC_CFLAGS)
%C%_ha_bw_LDADD    = $(MPICC_LIBS)

%C%_ha_lat_SOURCES  = %D%/ha_lat.c $(bench_common_sources)
%C%_ha_lat_CPPFLAGS = $(AM_CPPFLAGS) $(MPICC_CFLAGS)
%C%_ha_lat_LDADD    = $(MPICC_LIBS)

# Sanitizers report what Open MPI leaks.
if !HA_SANITIZED
TESTS += %D%/test_bench.sh
endif
endif
