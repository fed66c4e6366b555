/* SPDX-License-Identifier: BSD-3-Clause */

/* A rail that answers, but much slower than it used to. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_slow.h"

#define US 1000ull

static void probes(struct ha_slow *slow, unsigned n, uint64_t rtt)
{
    while (n-- > 0) {
        ha_slow_probe(slow, 10, 0, rtt);
    }
}

static struct ha_slow warm(uint64_t rtt)
{
    struct ha_slow slow = {0};

    probes(&slow, HA_SLOW_WARM_UP, rtt);
    assert_in_range(slow.norm, rtt - rtt / 10, rtt);
    return slow;
}

static void test_slow_after_some_in_a_row(void **state)
{
    struct ha_slow slow = warm(100 * US);

    (void)state;
    probes(&slow, HA_SLOW_PROBES - 1, 2000 * US);
    assert_false(slow.is_slow);
    probes(&slow, 1, 100 * US);
    probes(&slow, HA_SLOW_PROBES - 1, 2000 * US);
    assert_false(slow.is_slow);
    probes(&slow, 1, 2000 * US);
    assert_true(slow.is_slow);
}

static void test_not_before_it_is_known(void **state)
{
    struct ha_slow slow = {0};

    (void)state;
    probes(&slow, 1, 100 * US);
    probes(&slow, HA_SLOW_WARM_UP - 1, 5000 * US);
    assert_false(slow.is_slow);
}

static void test_little_is_not_slow(void **state)
{
    struct ha_slow slow = warm(10 * US);

    (void)state;
    probes(&slow, 100, HA_SLOW_FLOOR_NS - 1);
    assert_false(slow.is_slow);
}

static void test_below_the_factor_is_the_norm(void **state)
{
    struct ha_slow slow = warm(1000 * US);

    (void)state;
    probes(&slow, 100, 8000 * US);
    assert_false(slow.is_slow);
    assert_in_range(slow.norm, 7000 * US, 8000 * US);
}

static void test_normal_again(void **state)
{
    struct ha_slow slow = warm(100 * US);

    (void)state;
    probes(&slow, 20, 5000 * US);
    assert_true(slow.is_slow);
    probes(&slow, HA_SLOW_PROBES - 1, 100 * US);
    assert_true(slow.is_slow);
    probes(&slow, 1, 100 * US);
    assert_false(slow.is_slow);
}

/* Slow for minutes at ten probes per second: that is how it is now. */
static void test_slow_for_long_is_the_norm(void **state)
{
    struct ha_slow slow = warm(100 * US);

    (void)state;
    probes(&slow, 600, 2000 * US);
    assert_true(slow.is_slow);
    probes(&slow, 3000, 2000 * US);
    assert_false(slow.is_slow);
    assert_in_range(slow.norm, 1900 * US, 2000 * US);
}

static void test_only_if_the_other_is_well(void **state)
{
    struct ha_slow a = warm(100 * US), b = warm(100 * US), fresh = {0};

    (void)state;
    probes(&a, 10, 5000 * US);
    assert_true(ha_slow_is_worse(&a, &b));
    assert_false(ha_slow_is_worse(&b, &a));
    assert_false(ha_slow_is_worse(&a, &fresh));
    probes(&b, 1, 5000 * US); /* both: the host is busy */
    assert_false(ha_slow_is_worse(&a, &b));
    probes(&b, 10, 5000 * US);
    assert_false(ha_slow_is_worse(&a, &b));
    assert_false(ha_slow_is_worse(&b, &a));
}

static void test_what_was_slow_is_forgotten(void **state)
{
    struct ha_slow slow = warm(100 * US);

    (void)state;
    probes(&slow, HA_SLOW_PROBES, 5000 * US);
    assert_true(slow.is_slow);
    ha_slow_forget(&slow);
    assert_false(slow.is_slow || slow.last);
    probes(&slow, HA_SLOW_PROBES - 1, 5000 * US);
    assert_false(slow.is_slow);
    probes(&slow, 1, 5000 * US);
    assert_true(slow.is_slow); /* by the norm of before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_slow_is_forgotten),   cmocka_unit_test(test_slow_after_some_in_a_row),
        cmocka_unit_test(test_not_before_it_is_known),       cmocka_unit_test(test_little_is_not_slow),
        cmocka_unit_test(test_below_the_factor_is_the_norm), cmocka_unit_test(test_normal_again),
        cmocka_unit_test(test_slow_for_long_is_the_norm),    cmocka_unit_test(test_only_if_the_other_is_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
