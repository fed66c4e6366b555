/* SPDX-License-Identifier: BSD-3-Clause */

/* The budget of probes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_probe.h"

#define MS   1000000ull
#define RATE 100u

static unsigned take_all(struct ha_probe *probe, enum ha_probe_class kind)
{
    unsigned count = 0;

    while (ha_probe_take(probe, kind, 1)) {
        count++;
    }
    return count;
}

/* After a long calm all that can be saved is there, and no more. */
static struct ha_probe saved(uint64_t now)
{
    struct ha_probe probe = {0};

    ha_probe_earn(&probe, RATE, now - 1);
    ha_probe_earn(&probe, RATE, now);
    return probe;
}

static void test_long_run_is_the_rate(void **state)
{
    struct ha_probe probe = saved(3600000 * MS);
    uint64_t        now   = 3600000 * MS;
    unsigned        count = 0;

    (void)state;
    take_all(&probe, HA_PROBE_URGENT);
    for (unsigned i = 0; i < 600; i++) { /* a minute of rounds */
        ha_probe_earn(&probe, RATE, now += 100 * MS);
        count += take_all(&probe, HA_PROBE_URGENT) + take_all(&probe, HA_PROBE_DOUBT) + take_all(&probe, HA_PROBE_TURN);
    }
    assert_in_range(count, 60 * RATE - 1, 60 * RATE);
}

/* Nobody is in trouble: the turns have all of it, but do not spend what is saved. */
static void test_calm_leaves_the_savings(void **state)
{
    struct ha_probe probe = saved(3600000 * MS);
    uint64_t        now   = 3600000 * MS;
    unsigned        count = 0;

    (void)state;
    assert_int_equal(take_all(&probe, HA_PROBE_TURN), RATE);
    for (unsigned i = 0; i < 600; i++) {
        ha_probe_earn(&probe, RATE, now += 100 * MS);
        count += take_all(&probe, HA_PROBE_TURN);
    }
    assert_in_range(count, 60 * RATE - 1, 60 * RATE);
    assert_in_range(take_all(&probe, HA_PROBE_URGENT), HA_PROBE_SAVE_S * RATE - 1, HA_PROBE_SAVE_S * RATE);
}

/* Trouble without end: the turns keep half. */
static void test_trouble_leaves_the_turns_half(void **state)
{
    struct ha_probe probe = saved(3600000 * MS);
    uint64_t        now   = 3600000 * MS;
    unsigned        turns = 0;

    (void)state;
    take_all(&probe, HA_PROBE_TURN);
    take_all(&probe, HA_PROBE_URGENT);
    for (unsigned i = 0; i < 600; i++) {
        ha_probe_earn(&probe, RATE, now += 100 * MS);
        for (unsigned n = 0; n < 5; n++) {
            assert_true(ha_probe_take(&probe, HA_PROBE_URGENT, 1));
        }
        turns += take_all(&probe, HA_PROBE_TURN);
    }
    assert_in_range(turns, 30 * RATE - 1, 30 * RATE);
}

/* Who has not answered comes before the others, and does not take all of theirs. */
static void test_doubt_leaves_the_others_some(void **state)
{
    struct ha_probe probe = saved(3600000 * MS);

    (void)state;
    assert_int_equal(take_all(&probe, HA_PROBE_DOUBT), RATE / 2);
    assert_false(ha_probe_take(&probe, HA_PROBE_DOUBT, 1));
    assert_int_equal(take_all(&probe, HA_PROBE_TURN), RATE / 2);
}

/* All or none: half a question asks nothing. */
static void test_both_or_none(void **state)
{
    struct ha_probe probe = {.turn = HA_PROBE_ONE};

    (void)state;
    assert_false(ha_probe_take(&probe, HA_PROBE_TURN, 2));
    assert_false(ha_probe_take(&probe, HA_PROBE_URGENT, 2));
    assert_true(ha_probe_take(&probe, HA_PROBE_URGENT, 1));
    assert_int_equal(probe.turn, 0);
}

/* A clock that stood still for days, or goes back, earns what can be saved, or nothing. */
static void test_long_pause(void **state)
{
    struct ha_probe probe = saved(MS);

    (void)state;
    ha_probe_earn(&probe, 1000000, UINT64_MAX);
    assert_int_equal(probe.turn, 1000000 * HA_PROBE_ONE);
    assert_int_equal(probe.urgent, HA_PROBE_SAVE_S * 1000000 * HA_PROBE_ONE);
    take_all(&probe, HA_PROBE_TURN);
    ha_probe_earn(&probe, RATE, 5);
    assert_int_equal(ha_probe_take(&probe, HA_PROBE_TURN, RATE + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_run_is_the_rate),
        cmocka_unit_test(test_calm_leaves_the_savings),
        cmocka_unit_test(test_trouble_leaves_the_turns_half),
        cmocka_unit_test(test_doubt_leaves_the_others_some),
        cmocka_unit_test(test_both_or_none),
        cmocka_unit_test(test_long_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
