# SPDX-License-Identifier: BSD-3-Clause
# libsoftcard.so: an RDMA card made of software, in front of libibverbs (LD_PRELOAD).

noinst_LTLIBRARIES += libsoftcard.la

softcard_sources = \
	%D%/sc_card.h \
	%D%/sc_cq.c \
	%D%/sc_device.c \
	%D%/sc_device.h \
	%D%/sc_event.c \
	%D%/sc_fabric.c \
	%D%/sc_fabric.h \
	%D%/sc_fault.c \
	%D%/sc_lock.h \
	%D%/sc_memory.c \
	%D%/sc_net.c \
	%D%/sc_nic.c \
	%D%/sc_personality.c \
	%D%/sc_personality.h \
	%D%/sc_post.c \
	%D%/sc_qp.c \
	%D%/sc_requester.c \
	%D%/sc_responder.c \
	%D%/sc_rq.c \
	%D%/sc_sysfs.c \
	%D%/sc_ud.c \
	%D%/sc_wire.h \
	%D%/sc_wr.c
libsoftcard_la_SOURCES  = $(softcard_sources)
libsoftcard_la_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(VERBS_CFLAGS)
# -rpath: libtool makes a shared library, though it is not installed
libsoftcard_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)
libsoftcard_la_LIBADD  = -lpthread -ldl

# looks at a fabric, and breaks it
noinst_PROGRAMS += %D%/softcard
%C%_softcard_SOURCES  = %D%/softcard.c %D%/sc_fabric.c %D%/sc_fabric.h %D%/sc_lock.h %D%/sc_wire.h
%C%_softcard_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS)

# what a device answers, to compare two of them by
noinst_PROGRAMS += %D%/answers
%C%_answers_SOURCES  = %D%/answers.c %D%/answers_pair.c %D%/answers.h
%C%_answers_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_answers_LDADD    = $(VERBS_LIBS)

EXTRA_DIST += %D%/native_lab %D%/run_trust %D%/run_certify %D%/run_jobs %D%/run_bad %D%/run_rails %D%/two_hosts.py %D%/run_mpi4py %D%/ports.sh %D%/fake_hosts

# the card in the program itself: sanitizers see all of it
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_softcard
TESTS          += %D%/test_softcard
%C%_test_softcard_SOURCES  = $(softcard_sources) %D%/sc_test.c %D%/sc_test.h \
	%D%/test_softcard.c %D%/test_softcard_late.c %D%/test_softcard_many.c %D%/test_softcard_two.c
%C%_test_softcard_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) $(VERBS_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_softcard_LDADD    = $(CMOCKA_LIBS) $(VERBS_LIBS) -lpthread -ldl
endif

# What ./demo --native needs, and nothing else: a third less to build.
install-demo: $(BUILT_SOURCES)
	libs=; for lib in $(lib_LTLIBRARIES); do case $$lib in libuct_ha*) libs="$$libs $$lib" ;; esac; done; \
	$(MAKE) $(AM_MAKEFLAGS) lib_LTLIBRARIES="$$libs" bin_PROGRAMS='bench/ha_bw$(EXEEXT)' install-libLTLIBRARIES \
	    install-binPROGRAMS install-ompi_componentLTLIBRARIES libsoftcard.la 'test/softcard/softcard$(EXEEXT)'
