# SPDX-License-Identifier: BSD-3-Clause
# Programs for whoever looks after the hosts.

bin_PROGRAMS += %D%/ha_info

info_judge_sources = %D%/ha_info_facts.h %D%/ha_info_check.h %D%/ha_info_check.c %D%/ha_info_verdict.c %D%/ha_info_verdict.h

%C%_ha_info_SOURCES = \
	$(info_judge_sources) \
	%D%/ha_info.c %D%/ha_info_import.h \
	%D%/ha_info_gather.c %D%/ha_info_gather.h \
	%D%/ha_info_json.c %D%/ha_info_json.h \
	%D%/ha_info_text.c %D%/ha_info_text.h \
	uct_ha/abi/adapt_ucs.c \
	uct_ha/base/config.c uct_ha/base/units.c \
	uct_ha/mem/rails.c \
	uct_ha/lane/selftest.c uct_ha/lane/selftest.h
if HAVE_JANSSON
%C%_ha_info_SOURCES += %D%/ha_info_import.c
else
%C%_ha_info_SOURCES += %D%/ha_info_noimport.c
endif
%C%_ha_info_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) $(JANSSON_CFLAGS)
%C%_ha_info_LDADD    = libha_discover.la libha_verbs.la $(UCX_LIBS) $(JANSSON_LIBS) -lpthread

# what it says of itself is its manual page
if HAVE_PYTHON3
bin_SCRIPTS += %D%/ha_stat %D%/ha_certify
man_MANS    += %D%/ha_info.1 %D%/ha_stat.1 %D%/ha_certify.1 %D%/ha_run.1
CLEANFILES  += %D%/ha_info.1 %D%/ha_stat.1 %D%/ha_certify.1 %D%/ha_run.1
TESTS       += %D%/test_ha_stat.sh

%D%/ha_info.1: %D%/ha_info$(EXEEXT) scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_info %D%/ha_info$(EXEEXT) >$@.new && mv $@.new $@
%D%/ha_stat.1: %D%/ha_stat scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_stat $(srcdir)/%D%/ha_stat >$@.new && mv $@.new $@
%D%/ha_run.1: %D%/ha_run scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_run $(srcdir)/%D%/ha_run >$@.new && mv $@.new $@
%D%/ha_certify.1: %D%/ha_certify scripts/make_pages
	$(AM_V_GEN)$(srcdir)/scripts/make_pages --man ha_certify $(srcdir)/%D%/ha_certify >$@.new && mv $@.new $@
endif

bin_SCRIPTS += %D%/ha_run
# (a library with sanitizers cannot be preloaded)
if !HA_SANITIZED
TESTS += %D%/test_ha_run.sh
endif

TESTS      += %D%/test_ha_info.sh
EXTRA_DIST += %D%/test_ha_info.sh %D%/test_ha_run.sh %D%/test_ha_stat.sh %D%/ha_run %D%/ha_stat %D%/ha_certify
