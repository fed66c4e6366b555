# SPDX-License-Identifier: BSD-3-Clause
# `make check`: unit tests (cmocka) and the simulator. Tests that need a lab
# are run by test/run_lab_tests.

if HAVE_CMOCKA
check_PROGRAMS += test/unit/test_pairing
TESTS          += test/unit/test_pairing

test_unit_test_pairing_SOURCES  = test/unit/test_pairing.c uct_ha/uct_ha_pairing.c
test_unit_test_pairing_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_pairing_LDADD    = $(CMOCKA_LIBS)
endif
