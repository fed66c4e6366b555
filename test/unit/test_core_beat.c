/* SPDX-License-Identifier: BSD-3-Clause */

/* How long a rail may be silent. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_beat.h"

#define MS 1000000ull

/* Rounds of 100 ms from `now` on, all answered after `rtt`. */
static uint64_t rounds(struct ha_beat *beat, unsigned n, uint64_t rtt, uint64_t now)
{
    for (; n > 0; n--, now += 100 * MS) {
        ha_beat_ask(beat, 0, now);
        ha_beat_answer(beat, now + rtt);
    }
    return now;
}

static void test_quick_rails_are_soon_silent(void **state)
{
    struct ha_beat a = {0}, b = {0};
    uint64_t       now = rounds(&a, 10, MS, 1000 * MS);

    (void)state;
    rounds(&b, 10, MS, 1000 * MS);
    assert_false(ha_beat_is_silent(&a, &b, now)); /* nothing was asked */
    ha_beat_ask(&a, 0, now);
    assert_true(ha_beat_is_silent(&a, &b, now + 2 * MS));
}

static void test_late_answers_give_patience_that_fades(void **state)
{
    struct ha_beat a = {0}, b = {0};
    uint64_t       now = 1000 * MS, asked;

    (void)state;
    rounds(&a, 10, MS, now);
    ha_beat_ask(&b, 0, now); /* b has been away for 3 s, as has a, which is back */
    asked = now + 1;
    ha_beat_ask(&a, 0, asked);
    for (unsigned missed = 1; missed < 30; missed++) {
        ha_beat_ask(&a, missed, now += 100 * MS);
        ha_beat_ask(&b, missed, now);
    }
    ha_beat_answer(&b, now);
    assert_false(ha_beat_is_silent(&a, &b, now));
    now = rounds(&b, 3, MS, now);
    assert_false(ha_beat_is_silent(&a, &b, now));
    now = rounds(&b, 10, MS, now);
    assert_true(ha_beat_is_silent(&a, &b, now));
}

static void test_silence_is_counted_from_the_first_question(void **state)
{
    struct ha_beat a = {0};

    (void)state;
    ha_beat_ask(&a, 0, 100 * MS);
    ha_beat_ask(&a, 1, 200 * MS);
    ha_beat_ask(&a, 2, 300 * MS);
    assert_int_equal(a.since, 100 * MS);
    ha_beat_answer(&a, 310 * MS);
    assert_int_equal(a.peak, 210 * MS);
    assert_int_equal(a.since, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_rails_are_soon_silent),
        cmocka_unit_test(test_late_answers_give_patience_that_fades),
        cmocka_unit_test(test_silence_is_counted_from_the_first_question),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
