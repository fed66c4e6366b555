# SPDX-License-Identifier: BSD-3-Clause
# What a UCT interface announces, it does: over any transport that is here, and over ha_rc on made-up
# hardware, where rails are cut. docs/contract.md is what the latter prints.

contract_sources = \
	%D%/contract.h \
	%D%/contract_am.c \
	%D%/contract_atomic.c \
	%D%/contract_attributes.c \
	%D%/contract_burst.c \
	%D%/contract_cut.h \
	%D%/contract_errors.c \
	%D%/contract_events.c \
	%D%/contract_flow.c \
	%D%/contract_main.c \
	%D%/contract_md.c \
	%D%/contract_memory.c \
	%D%/contract_pending.c \
	%D%/contract_report.c \
	%D%/contract_rma.c \
	%D%/contract_side.c

check_PROGRAMS += test/uct/uct_contract test/uct/uct_contract_fake
EXTRA_DIST     += test/uct/run_contract test/uct/contract_table
# sanitizers report what UCX leaks
if !HA_SANITIZED
TESTS += test/uct/run_contract
endif

test_uct_uct_contract_SOURCES  = $(contract_sources) %D%/contract_cut_command.c
test_uct_uct_contract_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
test_uct_uct_contract_LDADD    = $(UCX_LIBS) -ldl

# the same for each other UCX, run by test/front/minors in a root of the suite that has it; what UCX is linked
# to there need not be on this host
contract_fakes = \
	test/glue/fake_cq.c \
	test/glue/fake_mr.c \
	test/glue/fake_net.c \
	test/glue/fake_path.c \
	test/glue/fake_personality.c \
	test/glue/fake_priv.h \
	test/glue/fake_fault.c \
	test/glue/fake_rail.c \
	test/glue/fake_rc.c \
	test/glue/fake_srq.c \
	test/glue/fake_responder.c \
	test/glue/fake_ud.c \
	test/glue/fake_verbs.h

test_uct_uct_contract_fake_SOURCES = $(contract_sources) $(glue_sources) $(contract_fakes) \
	%D%/contract_cut_fake.c
test_uct_uct_contract_fake_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/test/glue $(UCX_CFLAGS)
test_uct_uct_contract_fake_LDADD    = libha_core.la libha_discover.la $(UCX_LIBS) -lpthread

elsewhere_ldflags = $(AM_LDFLAGS) -Wl,--allow-shlib-undefined -no-install
include %D%/minors.mk
EXTRA_DIST += %D%/minor.mk.in
