# SPDX-License-Identifier: BSD-3-Clause
# The batch transfer engine: libhte.so over public UCP, in rooms (scripts/walls/engine says which may see which).
# hte.h is all that is installed of its headers.

# NIXL's backend has a Makefile of its own: it is C++, and needs NIXL's headers.
EXTRA_DIST += \
	%D%/nixl/Makefile.nixl \
	%D%/nixl/hte_backend.cpp \
	%D%/nixl/hte_backend.hpp \
	%D%/nixl/hte_plugin.cpp \
	%D%/nixl/hte_status.hpp \
	%D%/nixl/hte_text.hpp \
	%D%/nixl/hte_transfer.cpp \
	%D%/nixl/test/test_plugin.cpp

EXTRA_DIST += %D%/include/hte.h \
	%D%/api/README.md \
	%D%/base/README.md \
	%D%/core/README.md \
	%D%/job/README.md \
	%D%/local/README.md \
	%D%/meta/README.md \
	%D%/remote/README.md \
	%D%/run/README.md \
	%D%/wire/README.md

if HAVE_JANSSON
noinst_LTLIBRARIES += libhte_core.la
lib_LTLIBRARIES    += libhte.la
include_HEADERS    += %D%/include/hte.h
pkgconfig_DATA     += %D%/hte.pc

# pure: libc only
libhte_core_la_SOURCES = \
	%D%/core/hte_cut.h \
	%D%/core/hte_pick.c \
	%D%/core/hte_pick.h \
	%D%/core/hte_piece.c \
	%D%/core/hte_piece.h \
	%D%/core/hte_rail_state.c \
	%D%/core/hte_rail_state.h \
	%D%/core/hte_slice.c \
	%D%/core/hte_share.h \
	%D%/core/hte_slice.h

libhte_la_SOURCES = \
	%D%/api/hte_batch_api.c \
	%D%/api/hte_engine.c \
	%D%/api/hte_engine.h \
	%D%/api/hte_life.c \
	%D%/api/hte_memory.c \
	%D%/api/hte_metrics.c \
	%D%/api/hte_metrics.h \
	%D%/api/hte_metrics_text.c \
	%D%/api/hte_metrics_text.h \
	%D%/api/hte_notify_api.c \
	%D%/api/hte_peers.c \
	%D%/api/hte_peers.h \
	%D%/api/hte_prepare.c \
	%D%/api/hte_prepare.h \
	%D%/api/hte_publish.c \
	%D%/api/hte_publish.h \
	%D%/api/hte_segment_api.c \
	%D%/api/hte_stats.c \
	%D%/api/hte_stats.h \
	%D%/api/hte_submit.c \
	%D%/api/hte_take.c \
	%D%/api/hte_take.h \
	%D%/base/hte_error.c \
	%D%/base/hte_error.h \
	%D%/base/hte_fork.c \
	%D%/base/hte_fork.h \
	%D%/base/hte_list.h \
	%D%/base/hte_location.h \
	%D%/base/hte_now.c \
	%D%/base/hte_now.h \
	%D%/base/hte_table.h \
	%D%/job/hte_batch.c \
	%D%/job/hte_batch.h \
	%D%/job/hte_divide.c \
	%D%/job/hte_divide.h \
	%D%/local/hte_access.c \
	%D%/local/hte_access.h \
	%D%/local/hte_board.c \
	%D%/local/hte_board.h \
	%D%/local/hte_device.c \
	%D%/local/hte_device.h \
	%D%/local/hte_host.c \
	%D%/local/hte_host.h \
	%D%/local/hte_maps.c \
	%D%/local/hte_maps.h \
	%D%/local/hte_metrics_file.c \
	%D%/local/hte_metrics_file.h \
	%D%/local/hte_origin.c \
	%D%/local/hte_origin.h \
	%D%/local/hte_pretouch.c \
	%D%/local/hte_pretouch.h \
	%D%/local/hte_region.c \
	%D%/local/hte_region.h \
	%D%/local/hte_settings.c \
	%D%/local/hte_settings.h \
	%D%/local/hte_shared.c \
	%D%/local/hte_shared.h \
	%D%/local/hte_topology.c \
	%D%/local/hte_topology.h \
	%D%/remote/hte_notify.c \
	%D%/remote/hte_notify.h \
	%D%/remote/hte_refresh.c \
	%D%/remote/hte_refresh.h \
	%D%/remote/hte_segment.c \
	%D%/remote/hte_segment.h \
	%D%/remote/hte_view.c \
	%D%/remote/hte_view.h \
	%D%/run/hte_feed.c \
	%D%/run/hte_feed.h \
	%D%/run/hte_flow.c \
	%D%/run/hte_flow.h \
	%D%/run/hte_packs.c \
	%D%/run/hte_packs.h \
	%D%/run/hte_pieces.c \
	%D%/run/hte_pieces.h \
	%D%/run/hte_post.c \
	%D%/run/hte_post.h \
	%D%/run/hte_poster.h \
	%D%/run/hte_queue.c \
	%D%/run/hte_queue.h \
	%D%/run/hte_route.c \
	%D%/run/hte_route.h \
	%D%/run/hte_run.h \
	%D%/run/hte_stand_in.c \
	%D%/run/hte_stand_in.h \
	%D%/run/hte_target.c \
	%D%/run/hte_target.h \
	%D%/run/hte_worker.c \
	%D%/run/hte_worker.h \
	%D%/wire/hte_conn.c \
	%D%/wire/hte_conn.h \
	%D%/wire/hte_conns.c \
	%D%/wire/hte_conns.h \
	%D%/wire/hte_dispatch.c \
	%D%/wire/hte_dispatch.h \
	%D%/wire/hte_flush.c \
	%D%/wire/hte_flush.h \
	%D%/wire/hte_guest.c \
	%D%/wire/hte_guest.h \
	%D%/wire/hte_inbox.c \
	%D%/wire/hte_inbox.h \
	%D%/wire/hte_keys.c \
	%D%/wire/hte_keys.h \
	%D%/wire/hte_lane.c \
	%D%/wire/hte_lane.h \
	%D%/wire/hte_letter.c \
	%D%/wire/hte_letter.h \
	%D%/wire/hte_mapping.c \
	%D%/wire/hte_mapping.h \
	%D%/wire/hte_move.c \
	%D%/wire/hte_move.h \
	%D%/wire/hte_near.c \
	%D%/wire/hte_near.h \
	%D%/wire/hte_near_map.c \
	%D%/wire/hte_near_map.h \
	%D%/wire/hte_near_ops.c \
	%D%/wire/hte_near_ops.h \
	%D%/wire/hte_op.c \
	%D%/wire/hte_op.h \
	%D%/wire/hte_orphan.c \
	%D%/wire/hte_orphan.h \
	%D%/wire/hte_rail.c \
	%D%/wire/hte_rail.h \
	%D%/wire/hte_status.c \
	%D%/wire/hte_status.h \
	%D%/wire/hte_tokens.c \
	%D%/wire/hte_tokens.h \
	%D%/wire/hte_way.c \
	%D%/wire/hte_way.h
libhte_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(UCX_CFLAGS) $(JANSSON_CFLAGS)
libhte_la_LIBADD   = libhte_core.la libhte_meta.la $(UCX_LIBS) $(JANSSON_LIBS) -lpthread
# hte.h gives its functions default visibility; everything else is hidden.
libhte_la_LDFLAGS  = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined

bin_PROGRAMS += %D%/bench/hte_bench
%C%_bench_hte_bench_SOURCES = \
	%D%/bench/bench_base.c \
	%D%/bench/bench_base.h \
	%D%/bench/bench_engine.c \
	%D%/bench/bench_engine.h \
	%D%/bench/bench_options.c \
	%D%/bench/bench_options.h \
	%D%/bench/bench_pattern.c \
	%D%/bench/bench_pattern.h \
	%D%/bench/bench_plain.c \
	%D%/bench/bench_plain.h \
	%D%/bench/bench_progress.c \
	%D%/bench/bench_progress.h \
	%D%/bench/bench_report.c \
	%D%/bench/bench_report.h \
	%D%/bench/bench_run.c \
	%D%/bench/bench_run.h \
	%D%/bench/bench_types.h \
	%D%/bench/hte_bench.c
%C%_bench_hte_bench_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
%C%_bench_hte_bench_LDADD    = libhte.la $(UCX_LIBS) -lpthread

TESTS      += %D%/test/test_bench.sh
EXTRA_DIST += %D%/test/test_bench.sh

# preloaded by test_bench.sh; -rpath makes libtool build a shared one
check_LTLIBRARIES += %D%/test/liar.la
%C%_test_liar_la_SOURCES = %D%/test/liar.c
%C%_test_liar_la_LDFLAGS = -module -avoid-version -shared -rpath $(abs_top_builddir)
%C%_test_liar_la_LIBADD  = -ldl

# processes that die, by the hundred: by hand; a short form in `make check`
EXTRA_DIST      += %D%/test/deaths_matrix %D%/test/test_matrix.sh
TESTS           += %D%/test/test_matrix.sh
noinst_PROGRAMS += %D%/test/deaths_peer
%C%_test_deaths_peer_SOURCES = %D%/test/deaths_peer.c
%C%_test_deaths_peer_LDADD   = libhte.la

if HAVE_CMOCKA
hte_tests = %D%/test/test_core %D%/test/test_devices %D%/test/test_engine %D%/test/test_faults \
	%D%/test/test_life %D%/test/test_orphans %D%/test/test_shares %D%/test/test_doors \
	%D%/test/test_deaths %D%/test/test_board %D%/test/test_near %D%/test/test_packs %D%/test/test_lists \
	%D%/test/test_at_once %D%/test/test_spoiled %D%/test/test_anew %D%/test/test_metrics \
	%D%/test/test_fork %D%/test/test_config %D%/test/test_gpu %D%/test/test_letters %D%/test/test_order \
	%D%/test/test_taken
check_PROGRAMS += $(hte_tests)
TESTS          += $(hte_tests)

%C%_test_test_core_SOURCES  = %D%/test/test_core.c
%C%_test_test_core_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_core_LDADD    = libhte_core.la $(CMOCKA_LIBS)

hte_fixture = %D%/test/fixture.c %D%/test/fixture.h %D%/test/target.c %D%/test/target.h

%C%_test_test_devices_SOURCES  = %D%/test/test_devices.c $(hte_fixture)
%C%_test_test_devices_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_devices_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_engine_SOURCES  = %D%/test/test_engine.c $(hte_fixture)
%C%_test_test_engine_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_engine_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_faults_SOURCES  = %D%/test/test_faults.c $(hte_fixture)
%C%_test_test_faults_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_faults_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_life_SOURCES  = %D%/test/test_life.c $(hte_fixture)
%C%_test_test_life_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_life_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_fork_SOURCES  = %D%/test/test_fork.c $(hte_fixture)
%C%_test_test_fork_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_fork_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_config_SOURCES  = %D%/test/test_config.c $(hte_fixture)
%C%_test_test_config_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_config_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_orphans_SOURCES  = %D%/test/test_orphans.c $(hte_fixture)
%C%_test_test_orphans_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_orphans_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

EXTRA_DIST     += %D%/test/test_arrival.sh
TESTS          += %D%/test/test_arrival.sh
check_PROGRAMS += %D%/test/test_arrival
%C%_test_test_arrival_SOURCES  = %D%/test/test_arrival.c $(hte_fixture)
%C%_test_test_arrival_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_arrival_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_deaths_SOURCES  = %D%/test/test_deaths.c $(hte_fixture)
%C%_test_test_deaths_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_deaths_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_near_SOURCES  = %D%/test/test_near.c $(hte_fixture)
%C%_test_test_near_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_near_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

# what the library does not show is compiled in
%C%_test_test_board_SOURCES = %D%/test/test_board.c \
	%D%/base/hte_error.c \
	%D%/base/hte_now.c \
	%D%/local/hte_access.c \
	%D%/local/hte_board.c \
	%D%/local/hte_host.c \
	%D%/local/hte_region.c \
	%D%/wire/hte_near.c \
	%D%/wire/hte_near_map.c
%C%_test_test_board_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS)
%C%_test_test_board_LDADD    = $(CMOCKA_LIBS) -lpthread

%C%_test_test_shares_SOURCES  = %D%/test/test_shares.c $(hte_fixture)
%C%_test_test_shares_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_shares_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

# replaces functions of UCP by its own: see there
%C%_test_test_doors_SOURCES  = %D%/test/test_doors.c %D%/test/doors.c %D%/test/doors.h $(hte_fixture)
%C%_test_test_doors_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_doors_LDADD    = libhte.la libhte_meta.la $(JANSSON_LIBS) $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

%C%_test_test_letters_SOURCES  = %D%/test/test_letters.c %D%/test/doors.c %D%/test/doors.h $(hte_fixture)
%C%_test_test_letters_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_letters_LDADD    = libhte.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

%C%_test_test_order_SOURCES  = %D%/test/test_order.c %D%/test/doors.c %D%/test/doors.h $(hte_fixture)
%C%_test_test_order_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_order_LDADD    = libhte.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

%C%_test_test_taken_SOURCES  = %D%/test/test_taken.c $(hte_fixture)
%C%_test_test_taken_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_taken_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_gpu_SOURCES  = %D%/test/test_gpu.c %D%/test/gpu.c %D%/test/gpu.h $(hte_fixture)
%C%_test_test_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_gpu_LDADD    = libhte.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

%C%_test_test_packs_SOURCES  = %D%/test/test_packs.c %D%/test/doors.c %D%/test/doors.h $(hte_fixture)
%C%_test_test_packs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_packs_LDADD    = libhte.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

%C%_test_test_lists_SOURCES  = %D%/test/test_lists.c $(hte_fixture)
%C%_test_test_lists_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_lists_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_at_once_SOURCES  = %D%/test/test_at_once.c $(hte_fixture)
%C%_test_test_at_once_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_at_once_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_metrics_SOURCES  = %D%/test/test_metrics.c $(hte_fixture)
%C%_test_test_metrics_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_test_metrics_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_anew_SOURCES  = %D%/test/test_anew.c $(hte_fixture)
%C%_test_test_anew_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_anew_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

%C%_test_test_spoiled_SOURCES  = %D%/test/test_spoiled.c %D%/test/doors.c %D%/test/doors.h $(hte_fixture)
%C%_test_test_spoiled_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine $(CMOCKA_CFLAGS) $(UCX_CFLAGS)
%C%_test_test_spoiled_LDADD    = libhte.la $(CMOCKA_LIBS) $(UCX_LIBS) -lpthread

# run by hand, for minutes: see engine/test/million.c; `make check` has a short form in test_engine
noinst_PROGRAMS += %D%/test/million
%C%_test_million_SOURCES  = %D%/test/million.c $(hte_fixture)
%C%_test_million_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_test_million_LDADD    = libhte.la $(CMOCKA_LIBS) -lpthread

# for test/mutants/run_engine_mutants, run by a step of ./check of its own
engine-recipe:
	@echo 'compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(libhte_la_CPPFLAGS) $(libhte_meta_la_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC'
	@echo 'link $(CC) -shared -Wl,-soname,libhte.so.0 $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS)'
	@echo 'objects $(libhte_la_OBJECTS) $(libhte_core_la_OBJECTS) $(libhte_meta_la_OBJECTS)'
	@echo 'libs $(UCX_LIBS) $(JANSSON_LIBS) $(LIBCRYPTO_LIBS) $(LIBCURL_LIBS) $(HIREDIS_LIBS) -lpthread $(LIBS)'

test_core-recipe:
	@echo 'compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(libhte_la_CPPFLAGS) $(CMOCKA_CFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'
	@echo 'link $(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS)'
	@echo 'objects $(engine_test_test_core_OBJECTS) $(libhte_core_la_OBJECTS)'
	@echo 'libs $(CMOCKA_LIBS) $(LIBS)'

test_board-recipe:
	@echo 'compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(engine_test_test_board_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'
	@echo 'link $(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS)'
	@echo 'objects $(engine_test_test_board_OBJECTS)'
	@echo 'libs $(CMOCKA_LIBS) -lpthread $(LIBS)'

test_shares-recipe:
	@echo 'compile $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(engine_test_test_shares_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS)'
	@echo 'link $(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS)'
	@echo 'objects $(engine_test_test_shares_OBJECTS)'
	@echo 'libs .libs/libhte.so $(CMOCKA_LIBS) -lpthread $(LIBS)'
endif
endif
