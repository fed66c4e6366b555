# SPDX-License-Identifier: BSD-3-Clause
# Programs for whoever looks after the hosts.

bin_PROGRAMS += %D%/ha_info

info_judge_sources = %D%/ha_info_facts.h %D%/ha_info_check.h %D%/ha_info_check.c

%C%_ha_info_SOURCES = \
	$(info_judge_sources) \
	%D%/ha_info.c %D%/ha_info_import.h \
	%D%/ha_info_gather.c %D%/ha_info_gather.h \
	%D%/ha_info_json.c %D%/ha_info_json.h \
	%D%/ha_info_text.c %D%/ha_info_text.h \
	uct_ha/base/config.c \
	uct_ha/mem/rails.c \
	uct_ha/lane/selftest.c uct_ha/lane/selftest.h
if HAVE_JANSSON
%C%_ha_info_SOURCES += %D%/ha_info_import.c
else
%C%_ha_info_SOURCES += %D%/ha_info_noimport.c
endif
%C%_ha_info_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS) $(JANSSON_CFLAGS)
%C%_ha_info_LDADD    = libha_discover.la libha_verbs.la $(UCX_LIBS) $(JANSSON_LIBS) -lpthread

TESTS      += %D%/test_ha_info.sh
EXTRA_DIST += %D%/test_ha_info.sh
