/* SPDX-License-Identifier: BSD-3-Clause */

/* How long a rail may be silent. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_beat.h"

#define MS    1000000ull
#define ROUND (100 * MS)

static const struct ha_beat quick; /* the other one, which has answered all */

/* Rounds of 100 ms from `now` on, all answered after `rtt`. */
static uint64_t rounds(struct ha_beat *beat, unsigned n, uint64_t rtt, uint64_t now)
{
    for (; n > 0; n--, now += ROUND) {
        ha_beat_ask(beat, 0, now);
        ha_beat_answer(beat, &quick, ROUND, now + rtt);
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
    uint64_t       now = 1000 * MS;

    (void)state;
    rounds(&a, 10, MS, now);
    ha_beat_ask(&b, 0, now); /* b has been away for 3 s, and then a as well */
    for (unsigned missed = 1; missed < 30; missed++) {
        ha_beat_ask(&b, missed, now += ROUND);
    }
    ha_beat_ask(&a, 0, now);
    ha_beat_answer(&b, &a, ROUND, now);
    assert_int_equal(b.late, 0);
    now = rounds(&b, 3, MS, now);
    assert_false(ha_beat_is_silent(&a, &b, now));
    now = rounds(&b, 20, MS, now);
    assert_true(ha_beat_is_silent(&a, &b, now));
}

/* Both are silent for so many rounds; then b answers. */
static uint64_t both_away(struct ha_beat *a, struct ha_beat *b, unsigned count, uint64_t now)
{
    for (unsigned missed = 0; missed < count; missed++, now += ROUND) {
        ha_beat_ask(a, missed, now);
        ha_beat_ask(b, missed, now);
    }
    ha_beat_answer(b, a, ROUND, now);
    return now;
}

/* A host without a processor: both rails silent for three seconds, then one rail has its turn, whichever. */
static void test_busy_hosts_answer_by_turns(void **state)
{
    struct ha_beat a = {0}, b = {0};
    uint64_t       now = 1000 * MS;

    (void)state;
    now = both_away(&a, &b, 30, now);
    assert_int_equal(b.late, 3000 * MS);
    assert_false(ha_beat_is_silent(&a, &b, now + 45000 * MS - 1)); /* a has been silent since 3 s before */
    assert_true(ha_beat_is_silent(&a, &b, now + 45000 * MS));
    ha_beat_answer(&a, &b, ROUND, now);
    ha_beat_ask(&a, 0, now);
    ha_beat_ask(&b, 0, now);
    assert_int_equal(b.late, 3000 * MS - 3000 * MS / HA_BEAT_FADE);
    assert_false(ha_beat_is_silent(&b, &a, now + HA_BEAT_LATE * b.late - 1)); /* and so may be the one that answered */
    assert_true(ha_beat_is_silent(&b, &a, now + HA_BEAT_LATE * b.late));
}

/* It is forgotten by halves in 44 rounds; a shorter one does not shorten it, a longer one counts. */
static void test_busy_hosts_are_busy_for_a_while(void **state)
{
    struct ha_beat a = {0}, b = {0};
    uint64_t       now, late;

    (void)state;
    now  = both_away(&a, &b, 10, 1000 * MS);
    now  = rounds(&b, 44, MS, now);
    late = b.late;
    assert_in_range(late, 490 * MS, 510 * MS);
    ha_beat_answer(&a, &b, ROUND, now);
    now = both_away(&a, &b, 2, now);
    assert_in_range(b.late, late * 62 / 64, late * 63 / 64);
    ha_beat_answer(&a, &b, ROUND, now);
    both_away(&a, &b, 7, now);
    assert_int_equal(b.late, 700 * MS);
}

/* Less than a round is what any host takes now and then. */
static void test_a_moment_is_not_busy(void **state)
{
    struct ha_beat a = {0}, b = {0};

    (void)state;
    ha_beat_ask(&a, 0, ROUND);
    ha_beat_ask(&b, 0, ROUND);
    ha_beat_answer(&b, &a, ROUND, 2 * ROUND - 1);
    assert_int_equal(b.late, 0);
    assert_true(ha_beat_is_silent(&a, &b, 3 * ROUND));
}

static void test_silence_is_counted_from_the_first_question(void **state)
{
    struct ha_beat a = {0};

    (void)state;
    ha_beat_ask(&a, 0, 100 * MS);
    ha_beat_ask(&a, 1, 200 * MS);
    ha_beat_ask(&a, 2, 300 * MS);
    assert_int_equal(a.since, 100 * MS);
    ha_beat_answer(&a, &quick, ROUND, 310 * MS);
    assert_int_equal(a.peak, 210 * MS);
    assert_int_equal(a.since, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick_rails_are_soon_silent),
        cmocka_unit_test(test_late_answers_give_patience_that_fades),
        cmocka_unit_test(test_busy_hosts_answer_by_turns),
        cmocka_unit_test(test_busy_hosts_are_busy_for_a_while),
        cmocka_unit_test(test_a_moment_is_not_busy),
        cmocka_unit_test(test_silence_is_counted_from_the_first_question),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
