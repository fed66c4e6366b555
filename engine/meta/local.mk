# SPDX-License-Identifier: BSD-3-Clause
# The engine's metadata: stores, handshake, descriptors; a part of libhte.

if HAVE_JANSSON
noinst_LTLIBRARIES += libhte_meta.la

libhte_meta_la_SOURCES = \
	%D%/hte_base64.c \
	%D%/hte_base64.h \
	%D%/hte_client.c \
	%D%/hte_client.h \
	%D%/hte_descriptor.c \
	%D%/hte_descriptor.h \
	%D%/hte_descriptor_read.c \
	%D%/hte_descriptor_write.c \
	%D%/hte_frame.c \
	%D%/hte_frame.h \
	%D%/hte_hmac.c \
	%D%/hte_hmac.h \
	%D%/hte_http.c \
	%D%/hte_http.h \
	%D%/hte_json.c \
	%D%/hte_json.h \
	%D%/hte_message.c \
	%D%/hte_message.h \
	%D%/hte_meta.h \
	%D%/hte_meta_answer.c \
	%D%/hte_meta_answer.h \
	%D%/hte_meta_ask.c \
	%D%/hte_meta_ask.h \
	%D%/hte_meta_call.c \
	%D%/hte_meta_entry.c \
	%D%/hte_meta_entry.h \
	%D%/hte_meta_life.c \
	%D%/hte_meta_segment.c \
	%D%/hte_meta_segment.h \
	%D%/hte_meta_state.h \
	%D%/hte_net.c \
	%D%/hte_net.h \
	%D%/hte_seal.c \
	%D%/hte_seal.h \
	%D%/hte_server.c \
	%D%/hte_server.h \
	%D%/hte_server_options.h \
	%D%/hte_server_peer.c \
	%D%/hte_server_peer.h \
	%D%/hte_session.c \
	%D%/hte_session.h \
	%D%/hte_store.c \
	%D%/hte_store.h \
	%D%/hte_store_driver.h \
	%D%/hte_store_etcd.c \
	%D%/hte_store_http.c \
	%D%/hte_store_options.h \
	%D%/hte_store_redis.c \
	%D%/hte_url.c \
	%D%/hte_url.h \
	engine/base/hte_why.c \
	engine/base/hte_why.h

hte_meta_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/engine -I$(srcdir)/%D%

libhte_meta_la_CPPFLAGS = $(hte_meta_cppflags) \
	$(JANSSON_CFLAGS) $(LIBCRYPTO_CFLAGS) $(LIBCURL_CFLAGS) $(HIREDIS_CFLAGS)
libhte_meta_la_LIBADD   = \
	$(JANSSON_LIBS) $(LIBCRYPTO_LIBS) $(LIBCURL_LIBS) $(HIREDIS_LIBS) -lpthread
endif

if HAVE_JANSSON
if HAVE_MICROHTTPD
bin_PROGRAMS += engine/hte_http_store

engine_hte_http_store_SOURCES = \
	%D%/hte_net.c \
	%D%/hte_net.h \
	engine/base/hte_why.c \
	engine/base/hte_why.h \
	%D%/tool/hte_http_store.c \
	%D%/tool/store_table.c \
	%D%/tool/store_table.h
engine_hte_http_store_CPPFLAGS = $(hte_meta_cppflags) $(JANSSON_CFLAGS) $(MICROHTTPD_CFLAGS)
engine_hte_http_store_LDADD    = $(JANSSON_LIBS) $(MICROHTTPD_LIBS) -lpthread

TESTS      += %D%/test/test_http_store.sh
EXTRA_DIST += %D%/test/test_http_store.sh
endif

EXTRA_DIST += %D%/test/https_store.py %D%/test/test_https.sh
if HAVE_LIBCURL
TESTS += %D%/test/test_https.sh
endif

if HAVE_CMOCKA
meta_tests = \
	%D%/test/test_handshake \
	%D%/test/test_parts \
	%D%/test/test_patience \
	%D%/test/test_stores
check_PROGRAMS += $(meta_tests)
TESTS          += $(meta_tests)

meta_test_cppflags = $(hte_meta_cppflags) $(JANSSON_CFLAGS) $(CMOCKA_CFLAGS) \
	-DHTE_HTTP_STORE='"$(abs_top_builddir)/engine/hte_http_store"'
meta_test_libs     = libhte_meta.la $(CMOCKA_LIBS)

%C%_test_test_handshake_SOURCES  = %D%/test/test_handshake.c %D%/test/sample.c %D%/test/meta_test.h
%C%_test_test_handshake_CPPFLAGS = $(meta_test_cppflags)
%C%_test_test_handshake_LDADD    = $(meta_test_libs)

%C%_test_test_parts_SOURCES  = %D%/test/test_parts.c %D%/test/sample.c %D%/test/meta_test.h
%C%_test_test_parts_CPPFLAGS = $(meta_test_cppflags)
%C%_test_test_parts_LDADD    = $(meta_test_libs)

%C%_test_test_patience_SOURCES  = %D%/test/test_patience.c %D%/test/meta_test.h
%C%_test_test_patience_CPPFLAGS = $(meta_test_cppflags)
%C%_test_test_patience_LDADD    = $(meta_test_libs)

%C%_test_test_stores_SOURCES  = \
	%D%/test/test_stores.c \
	%D%/test/real_server.c \
	%D%/test/real_server.h \
	%D%/test/sample.c \
	%D%/test/meta_test.h
%C%_test_test_stores_CPPFLAGS = $(meta_test_cppflags)
%C%_test_test_stores_LDADD    = $(meta_test_libs)
endif

# the parsers, against strangers; run for longer by test/fuzz/libfuzzer
meta_fuzz_tests = test/fuzz/fuzz_hte_descriptor test/fuzz/fuzz_hte_handshake
check_PROGRAMS += $(meta_fuzz_tests)
TESTS          += $(meta_fuzz_tests)

test_fuzz_fuzz_hte_descriptor_SOURCES  = $(fuzz_driver) test/fuzz/fuzz_hte_descriptor.c
test_fuzz_fuzz_hte_descriptor_CPPFLAGS = $(fuzz_cppflags) $(hte_meta_cppflags)
test_fuzz_fuzz_hte_descriptor_LDADD    = libhte_meta.la

test_fuzz_fuzz_hte_handshake_SOURCES  = $(fuzz_driver) test/fuzz/fuzz_hte_handshake.c
test_fuzz_fuzz_hte_handshake_CPPFLAGS = $(fuzz_cppflags) $(hte_meta_cppflags)
test_fuzz_fuzz_hte_handshake_LDADD    = libhte_meta.la
endif
