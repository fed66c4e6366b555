# SPDX-License-Identifier: BSD-3-Clause
# `make check`: unit tests (cmocka) and the simulator. Tests that need a lab
# are run by test/run_lab_tests. Add a test: its name to unit_tests, and its
# sources below.

if HAVE_CMOCKA
unit_tests = \
	test/unit/test_abi \
	test/unit/test_config \
	test/unit/test_md \
	test/unit/test_pairing
check_PROGRAMS += $(unit_tests)
TESTS          += $(unit_tests)

unit_cppflags = $(AM_CPPFLAGS) $(UCX_CFLAGS) $(CMOCKA_CFLAGS)
unit_libs     = $(CMOCKA_LIBS)

test_unit_test_abi_SOURCES  = test/unit/test_abi.c uct_ha/abi/uct_ha_guard.c
test_unit_test_abi_CPPFLAGS = $(unit_cppflags)
test_unit_test_abi_LDADD    = $(unit_libs) $(UCX_LIBS) -lpthread

test_unit_test_config_SOURCES  = test/unit/test_config.c uct_ha/uct_ha_config.c
test_unit_test_config_CPPFLAGS = $(unit_cppflags)
test_unit_test_config_LDADD    = $(unit_libs) $(UCX_LIBS)

test_unit_test_md_SOURCES = test/unit/test_md.c uct_ha/uct_ha_config.c \
	uct_ha/uct_ha_md.c uct_ha/uct_ha_mem.c uct_ha/uct_ha_pairing.c
test_unit_test_md_CPPFLAGS = $(unit_cppflags)
test_unit_test_md_LDADD    = $(unit_libs) $(UCX_LIBS)

test_unit_test_pairing_SOURCES  = test/unit/test_pairing.c uct_ha/uct_ha_pairing.c
test_unit_test_pairing_CPPFLAGS = $(unit_cppflags)
test_unit_test_pairing_LDADD    = $(unit_libs)
endif
