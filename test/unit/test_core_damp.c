/* SPDX-License-Identifier: BSD-3-Clause */

/* The cool-down of a rail: grows with its failures, is forgotten in calm. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_damp.h"

#define MS 1000000ull

static struct ha_damp fresh(void)
{
    struct ha_damp damp;

    ha_damp_init(&damp, 100 * MS, 1000 * MS);
    return damp;
}

static void test_nothing_happened(void **state)
{
    struct ha_damp damp = fresh();

    (void)state;
    assert_true(ha_damp_hold(&damp) == 0);
    assert_true(ha_damp_left(&damp, 1) == 0);
    ha_damp_calm(&damp, 1000000 * MS);
    assert_int_equal(damp.flaps, 0);
}

static void test_doubles_up_to_the_maximum(void **state)
{
    static const uint64_t holds[] = {100, 200, 400, 800, 1000, 1000, 1000};
    struct ha_damp        damp    = fresh();
    uint64_t              now     = 1;

    (void)state;
    for (unsigned i = 0; i < sizeof(holds) / sizeof(holds[0]); i++) {
        now += 5000 * MS;
        assert_int_equal(ha_damp_flap(&damp, now - 1, now), 1);
        assert_true(ha_damp_hold(&damp) == holds[i] * MS);
        assert_true(ha_damp_left(&damp, now) == holds[i] * MS);
        assert_true(ha_damp_left(&damp, now + holds[i] * MS - 1) == 1);
        assert_true(ha_damp_left(&damp, now + holds[i] * MS) == 0);
    }
    assert_int_equal(damp.flaps, 5); /* no more to forget than what counts */
}

/* A hundred lanes of one rail do not die in the same moment. */
static void test_one_failure_counts_once(void **state)
{
    struct ha_damp damp = fresh();

    (void)state;
    assert_int_equal(ha_damp_flap(&damp, 10, 500 * MS), 1);
    for (uint64_t born = 1; born <= 100; born++) {
        assert_int_equal(ha_damp_flap(&damp, born, (500 + 10 * born) * MS), 0);
    }
    assert_true(ha_damp_hold(&damp) == 100 * MS);
    assert_true(ha_damp_left(&damp, 600 * MS) == 0);
    assert_int_equal(ha_damp_flap(&damp, 500 * MS, 2000 * MS), 0);
    assert_int_equal(ha_damp_flap(&damp, 500 * MS + 1, 2000 * MS), 1);
}

static void test_calm_forgets_step_by_step(void **state)
{
    struct ha_damp damp = fresh();
    uint64_t       now  = 1;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        (void)ha_damp_flap(&damp, now, now + 1);
        now += 2;
    }
    now += ha_damp_hold(&damp);
    for (unsigned left = 3; left > 0; left--) {
        ha_damp_calm(&damp, now + HA_DAMP_CALM_NS - 10);
        assert_int_equal(damp.flaps, left);
        now += HA_DAMP_CALM_NS;
        ha_damp_calm(&damp, now);
        assert_int_equal(damp.flaps, left - 1);
    }
    assert_true(ha_damp_hold(&damp) == 0);
}

/* It breaks again right after every hold: that is no calm. */
static void test_flapping_is_not_calm(void **state)
{
    struct ha_damp damp;
    uint64_t       now = 1;

    (void)state;
    ha_damp_init(&damp, 100 * MS, 60000 * MS);
    for (unsigned i = 0; i < 30; i++) {
        (void)ha_damp_flap(&damp, now, now + 1);
        for (uint64_t end = now + ha_damp_hold(&damp) + 2; now < end; now += 50 * MS) {
            ha_damp_calm(&damp, now);
        }
    }
    assert_true(ha_damp_hold(&damp) == 60000 * MS);
}

static void test_off(void **state)
{
    struct ha_damp damp;

    (void)state;
    ha_damp_init(&damp, 0, 0);
    for (uint64_t now = 1; now < 100; now += 2) {
        assert_int_equal(ha_damp_flap(&damp, now, now + 1), 1);
        assert_true(ha_damp_hold(&damp) == 0);
    }
    ha_damp_init(&damp, 5, 3); /* the maximum is at least the base */
    (void)ha_damp_flap(&damp, 1, 2);
    assert_true(ha_damp_hold(&damp) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happened),        cmocka_unit_test(test_doubles_up_to_the_maximum),
        cmocka_unit_test(test_one_failure_counts_once), cmocka_unit_test(test_calm_forgets_step_by_step),
        cmocka_unit_test(test_flapping_is_not_calm),    cmocka_unit_test(test_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
