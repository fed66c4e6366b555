/* SPDX-License-Identifier: BSD-3-Clause */

/* So many at once, and then so many per time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_pace.h"

#define MS 1000000ull

static unsigned take_all(struct ha_pace *pace, uint64_t now)
{
    unsigned taken = 0;

    while (taken < 1000 && ha_pace_take(pace, 4, 5 * MS, now)) {
        taken++;
    }
    return taken;
}

static void test_burst_then_rate(void **state)
{
    struct ha_pace pace = {0};

    (void)state;
    assert_int_equal(take_all(&pace, 1000 * MS), 4);
    assert_int_equal(take_all(&pace, 1000 * MS), 0);
    assert_int_equal(take_all(&pace, 1005 * MS - 1), 0);
    assert_int_equal(take_all(&pace, 1005 * MS), 1);
    assert_int_equal(take_all(&pace, 1015 * MS), 2);
    assert_int_equal(take_all(&pace, 9000 * MS), 4); /* no more is saved up */
}

static void test_rate_in_the_long_run(void **state)
{
    struct ha_pace pace  = {0};
    unsigned       taken = 0;

    (void)state;
    for (uint64_t now = MS; now <= 10000 * MS; now += MS) {
        taken += take_all(&pace, now);
    }
    assert_in_range(taken, 1999, 2004);
}

static void test_one_at_a_time(void **state)
{
    struct ha_pace pace = {0};

    (void)state;
    assert_int_equal(ha_pace_take(&pace, 1, MS, 7), 1);
    assert_int_equal(ha_pace_take(&pace, 1, MS, 7), 0);
    assert_int_equal(ha_pace_take(&pace, 1, MS, MS + 6), 0);
    assert_int_equal(ha_pace_take(&pace, 1, MS, MS + 7), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_then_rate),
        cmocka_unit_test(test_rate_in_the_long_run),
        cmocka_unit_test(test_one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
