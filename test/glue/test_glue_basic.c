/* SPDX-License-Identifier: BSD-3-Clause */

/* Traffic without misfortune. */

#include "glue_tests.h"

static void test_messages_both_ways(void **state)
{
    (void)state;
    world_open(1, "");
    memory_open(1 << 20);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 500);
    flush_all();
    assert_int_equal(stats().pairs, 2);
    assert_int_equal(stats().failovers, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_messages_both_ways, glue_setup, glue_teardown),
};

int glue_basic(void)
{
    return cmocka_run_group_tests_name("basic", tests, NULL, NULL);
}
