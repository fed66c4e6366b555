/* SPDX-License-Identifier: BSD-3-Clause */

/* Rails that break while operations are under way. */

#include "glue_tests.h"

static void test_one_cut(void **state)
{
    (void)state;
    world_open(2, "");
    memory_open(1 << 20);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 50);
    wait_standbys(2);
    am_post(0, 0, 20);
    am_post(1, 0, 20);
    fake_port(A0, 0);
    am_exchange(0, 200);
    flush_all();
    assert_int_equal(stats().failovers, 2);
    assert_int_equal(stats().ep_errors, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_one_cut, glue_setup, glue_teardown),
};

int glue_failover(void)
{
    return cmocka_run_group_tests_name("failover", tests, NULL, NULL);
}
