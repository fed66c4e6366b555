# SPDX-License-Identifier: BSD-3-Clause
# Examples: built and run by `make check`, and installed as they are, to be read and tried.

EXTRA_DIST += engine/README.md %D%/kv_cache.py %D%/test_put.sh

if HAVE_JANSSON
examplesdir           = $(docdir)/examples
dist_examples_DATA    = %D%/hte_put.c
dist_examples_SCRIPTS = %D%/kv_cache.py

check_PROGRAMS += %D%/hte_put
TESTS          += %D%/test_put.sh

%C%_hte_put_SOURCES  = %D%/hte_put.c
%C%_hte_put_CPPFLAGS = -I$(top_srcdir)/engine/include
%C%_hte_put_LDADD    = libhte.la
endif
