/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/setup.h"
#include "base/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000ull

struct uct_ha_stats uct_ha_stats_total;

static int start(void **state)
{
    (void)state;
    memset(&uct_ha_stats_total, 0, sizeof(uct_ha_stats_total));
    return 0;
}

static void test_bins(void **state)
{
    (void)state;
    assert_int_equal(uct_ha_setup_bin(0), 0);
    assert_int_equal(uct_ha_setup_bin(MS - 1), 0);
    assert_int_equal(uct_ha_setup_bin(MS), 1);
    assert_int_equal(uct_ha_setup_bin(2 * MS - 1), 1);
    assert_int_equal(uct_ha_setup_bin(2 * MS), 2);
    assert_int_equal(uct_ha_setup_bin(1000 * MS), 10);
    assert_int_equal(uct_ha_setup_bin(UINT64_MAX), UCT_HA_STATS_SETUP_BINS - 1);
}

static void test_success_is_counted_once(void **state)
{
    struct uct_ha_setup setup = {0};

    (void)state;
    uct_ha_setup_begin(&setup, 0, 5 * MS);
    assert_int_equal(uct_ha_stats_total.connecting, 1);
    uct_ha_setup_follow(&setup, 0, 0, 6 * MS);
    assert_int_equal(uct_ha_stats_total.connecting, 1);
    uct_ha_setup_follow(&setup, 1, 0, 8 * MS);
    uct_ha_setup_follow(&setup, 1, 0, 9 * MS);
    uct_ha_setup_follow(&setup, 0, 1, 9 * MS); /* later trouble is no failed set-up */
    uct_ha_setup_end(&setup);
    assert_int_equal(uct_ha_stats_total.connecting, 0);
    assert_int_equal(uct_ha_stats_total.connects, 1);
    assert_int_equal(uct_ha_stats_total.connect_failures, 0);
    assert_int_equal(uct_ha_stats_total.connect_ns_total, 3 * MS);
    assert_int_equal(uct_ha_stats_total.connect_ns_max, 3 * MS);
    assert_int_equal(uct_ha_stats_total.setup_hist[2], 1);
    assert_int_equal(uct_ha_stats_total.accepts, 0);
}

static void test_accept_that_fails(void **state)
{
    struct uct_ha_setup setup = {0};

    (void)state;
    uct_ha_setup_begin(&setup, 1, 0);
    assert_int_equal(uct_ha_stats_total.accepting, 1);
    uct_ha_setup_follow(&setup, 0, 1, 8 * MS);
    assert_int_equal(uct_ha_stats_total.accepting, 0);
    assert_int_equal(uct_ha_stats_total.accept_failures, 1);
    assert_int_equal(uct_ha_stats_total.accepts, 0);
}

static void test_dropped_is_neither(void **state)
{
    struct uct_ha_setup setup = {0};

    (void)state;
    uct_ha_setup_begin(&setup, 0, 1);
    uct_ha_setup_end(&setup);
    uct_ha_setup_end(&setup);
    assert_int_equal(uct_ha_stats_total.connecting, 0);
    assert_int_equal(uct_ha_stats_total.connects + uct_ha_stats_total.connect_failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_bins, start),
        cmocka_unit_test_setup(test_success_is_counted_once, start),
        cmocka_unit_test_setup(test_accept_that_fails, start),
        cmocka_unit_test_setup(test_dropped_is_neither, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
