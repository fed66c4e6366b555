/* SPDX-License-Identifier: BSD-3-Clause */

/* The patience of the progress check: widened by false alarms, narrowed by calm. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_rto.h"

#define MS 1000000ull

static struct ha_rto fresh(void)
{
    struct ha_rto rto;

    ha_rto_init(&rto, 1000 * MS, 5000 * MS, 0);
    return rto;
}

static void false_alarms(struct ha_rto *rto, unsigned n, uint64_t now)
{
    while (n-- > 0) {
        assert_int_equal(ha_rto_alarm(rto, 99 * MS, now), 1);
    }
}

static void test_three_in_a_row_widen(void **state)
{
    struct ha_rto rto = fresh();

    (void)state;
    false_alarms(&rto, 2, 1);
    assert_true(rto.value == 1000 * MS);
    false_alarms(&rto, 1, 2);
    assert_true(rto.value == 1500 * MS);
    false_alarms(&rto, 3, 3);
    assert_true(rto.value == 2250 * MS);
}

static void test_a_real_loss_breaks_the_row(void **state)
{
    struct ha_rto rto = fresh();

    (void)state;
    false_alarms(&rto, 2, 1);
    assert_int_equal(ha_rto_alarm(&rto, 100 * MS, 2), 0);
    false_alarms(&rto, 2, 3);
    assert_true(rto.value == 1000 * MS);
}

static void test_never_beyond_the_maximum(void **state)
{
    struct ha_rto rto = fresh();

    (void)state;
    false_alarms(&rto, 300, 1);
    assert_true(rto.value == 5000 * MS);
}

static void test_maximum_below_base_is_the_base(void **state)
{
    struct ha_rto rto;

    (void)state;
    ha_rto_init(&rto, 2000 * MS, 1000 * MS, 0);
    false_alarms(&rto, 3, 1);
    assert_true(rto.value == 2000 * MS);
}

static void test_calm_narrows_down_to_the_base(void **state)
{
    struct ha_rto rto = fresh();
    uint64_t      now = 1, last;

    (void)state;
    false_alarms(&rto, 300, now);
    for (int i = 0; i < 20; i++) {
        last = rto.value;
        ha_rto_calm(&rto, now + HA_RTO_CALM_NS - 1);
        assert_true(rto.value == last); /* not yet */
        now += HA_RTO_CALM_NS;
        ha_rto_calm(&rto, now);
        assert_true(rto.value < last || last == 1000 * MS);
    }
    assert_true(rto.value == 1000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_in_a_row_widen),          cmocka_unit_test(test_a_real_loss_breaks_the_row),
        cmocka_unit_test(test_never_beyond_the_maximum),      cmocka_unit_test(test_maximum_below_base_is_the_base),
        cmocka_unit_test(test_calm_narrows_down_to_the_base),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
