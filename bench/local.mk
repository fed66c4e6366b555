# SPDX-License-Identifier: BSD-3-Clause
# MPI programs and the scripts around them. configure provides HAVE_MPI
# (conditional), MPI_CFLAGS and MPI_LIBS (`mpicc --showme:compile` and
# `mpicc --showme:link`, or pkg-config ompi).

EXTRA_DIST += bench/README.md bench/compare bench/plot_outage.py

check_PROGRAMS += bench/test_pattern
TESTS += bench/test_pattern
bench_test_pattern_SOURCES = bench/test_pattern.c bench/bench_pattern.c bench/bench_pattern.h

if HAVE_MPI
bin_PROGRAMS += bench/ha_bw bench/ha_lat

bench_common_sources = \
	bench/bench_mpi.c bench/bench_mpi.h \
	bench/bench_options.c bench/bench_options.h \
	bench/bench_pattern.c bench/bench_pattern.h \
	bench/bench_series.c bench/bench_series.h

bench_ha_bw_SOURCES = bench/ha_bw.c $(bench_common_sources)
bench_ha_bw_CPPFLAGS = $(MPI_CFLAGS)
bench_ha_bw_LDADD = $(MPI_LIBS)

bench_ha_lat_SOURCES = bench/ha_lat.c $(bench_common_sources)
bench_ha_lat_CPPFLAGS = $(MPI_CFLAGS)
bench_ha_lat_LDADD = $(MPI_LIBS)
endif
