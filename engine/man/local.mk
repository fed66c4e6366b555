# SPDX-License-Identifier: BSD-3-Clause
# Manual pages. Section 3 is made from hte.h and hte.7 from hte.7.in and the library, so neither can tell old tales.

EXTRA_DIST += \
	%D%/hte.7.in \
	%D%/hte_bench.1.in \
	%D%/hte_http_store.1 \
	%D%/make_man3.py

if HAVE_JANSSON
man_MANS        += %D%/hte.7 %D%/hte_bench.1
noinst_PROGRAMS += %D%/hte_options
CLEANFILES     += %D%/hte.7 %D%/hte_bench.1

%C%_hte_options_SOURCES  = %D%/hte_options.c
%C%_hte_options_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/engine/include
%C%_hte_options_LDADD    = libhte.la

%D%/hte.7: %D%/hte.7.in %D%/hte_options$(EXEEXT)
	$(AM_V_GEN)%D%/hte_options$(EXEEXT) >$@.options && \
	sed -e '/^@OPTIONS@$$/{' -e 'r $@.options' -e 'd' -e '}' $(srcdir)/%D%/hte.7.in >$@.new && \
	rm $@.options && mv $@.new $@

# the help text means nothing to roff once its backslashes, hyphens and leading dots are marked
%D%/hte_bench.1: %D%/hte_bench.1.in engine/bench/hte_bench$(EXEEXT)
	$(AM_V_GEN)engine/bench/hte_bench$(EXEEXT) --help | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e 's/^[.]/\\\&./' > $@.help && test -s $@.help && \
	sed -e '/^@HELP@$$/{' -e 'r $@.help' -e 'd' -e '}' $(srcdir)/%D%/hte_bench.1.in >$@.new && \
	rm $@.help && mv $@.new $@

if HAVE_MICROHTTPD
man_MANS += %D%/hte_http_store.1
endif

# one page per group of the header, and a link per function: their names are in the file `pages`
if HAVE_PYTHON3
man3dir    = $(mandir)/man3
man3_stamp = %D%/man3/pages
all-local: $(man3_stamp)
TESTS += %D%/test_man.sh

$(man3_stamp): engine/include/hte.h %D%/make_man3.py
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/%D%/make_man3.py $(srcdir)/engine/include/hte.h %D%/man3

install-data-hook: $(man3_stamp)
	$(MKDIR_P) "$(DESTDIR)$(man3dir)"
	while read -r page; do \
	    $(INSTALL_DATA) "%D%/man3/$$page" "$(DESTDIR)$(man3dir)/$$page" || exit 1; \
	done <$(man3_stamp)

uninstall-hook:
	test ! -e $(man3_stamp) || while read -r page; do rm -f "$(DESTDIR)$(man3dir)/$$page"; done <$(man3_stamp)

clean-local:
	rm -rf %D%/man3
endif
endif

EXTRA_DIST += %D%/test_man.sh
