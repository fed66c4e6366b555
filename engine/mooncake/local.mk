# SPDX-License-Identifier: BSD-3-Clause
# libtransfer_engine.so: Mooncake's C interface (transfer_engine_c.h) over libhte, of which it sees hte.h only.
# It has the name without a number that programs built for Mooncake's library look for.

EXTRA_DIST += \
	%D%/include/transfer_engine_c.h \
	%D%/test/nixl_agents.py \
	%D%/test/test_exports.sh

if HAVE_MOONCAKE
lib_LTLIBRARIES += libtransfer_engine.la
include_HEADERS += %D%/include/transfer_engine_c.h

libtransfer_engine_la_SOURCES = \
	%D%/shim_batch.c \
	%D%/shim_engine.c \
	%D%/shim_error.c \
	%D%/shim_error.h \
	%D%/shim_look.c \
	%D%/shim_segment.c
libtransfer_engine_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine/include -I$(top_srcdir)/%D%/include
libtransfer_engine_la_LIBADD   = libhte.la
libtransfer_engine_la_LDFLAGS  = $(AM_LDFLAGS) -avoid-version -no-undefined

TESTS += %D%/test/test_exports.sh

if HAVE_CMOCKA
check_PROGRAMS += %D%/test/test_shim
TESTS          += %D%/test/test_shim

# knows the one header, as a program of Mooncake's users does
%C%_test_test_shim_SOURCES  = %D%/test/calls.c %D%/test/calls.h %D%/test/peer.c %D%/test/peer.h \
	%D%/test/test_shim.c
%C%_test_test_shim_CPPFLAGS = -I$(top_srcdir)/%D%/include $(CMOCKA_CFLAGS)
%C%_test_test_shim_LDADD    = libtransfer_engine.la $(CMOCKA_LIBS)
endif
endif
