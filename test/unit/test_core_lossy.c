/* SPDX-License-Identifier: BSD-3-Clause */

/* A rail that is bad, though not dead. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "uct_ha/core/ha_lossy.h"

/* `n` probes, of which every `every`th is lost (0: none), and as many rounds with work, of which every
 * `still`th stands still. */
static void rounds(struct ha_lossy *lossy, unsigned n, unsigned every, unsigned still)
{
    for (unsigned i = 0; i < n; i++) {
        ha_lossy_ask(lossy);
        if (every == 0 || i % every != 0) {
            ha_lossy_answer(lossy, 1);
        }
        ha_lossy_work(lossy, still == 0 || i % still != 0 ? 100 : 0, 0);
    }
}

static void test_loss_with_stalls_is_left(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 20, 0, 0);
    rounds(&b, 20, 0, 0);
    assert_false(ha_lossy_is_worse(&a, &b));
    rounds(&a, 16, 2, 2); /* half are lost: both ways of 30 % */
    assert_true(ha_lossy_is_worse(&a, &b));
    assert_false(ha_lossy_is_worse(&b, &a));
}

/* As soon as five are lost, not when the window is full of them. */
static void test_soon(void **state)
{
    struct ha_lossy a = {0}, b = {0};
    unsigned        n = 0;

    (void)state;
    rounds(&a, 40, 0, 0);
    rounds(&b, 40, 0, 0);
    for (; !ha_lossy_is_worse(&a, &b); n++) {
        rounds(&a, 2, 2, 2);
    }
    assert_in_range(n, 4, 6); /* pairs of rounds: 1.2 s at most */
}

static void test_busy_rail_is_not_left(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 2, 0); /* work moves */
    rounds(&b, 40, 0, 0);
    assert_false(ha_lossy_is_worse(&a, &b));
    rounds(&a, 40, 0, 1); /* work rests, probes are answered */
    assert_false(ha_lossy_is_worse(&a, &b));
}

/* Each burst ends within a round: never nothing, but less than half. */
static void test_half_of_the_norm(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 100, 0, 0);
    rounds(&b, 100, 0, 0);
    for (unsigned i = 0; i < 16; i++) {
        ha_lossy_ask(&a);
        if (i % 2) {
            ha_lossy_answer(&a, 1);
        }
        ha_lossy_work(&a, 60, 0);
    }
    assert_false(ha_lossy_is_worse(&a, &b));
    for (unsigned i = 0; i < 16; i++) {
        ha_lossy_ask(&a);
        if (i % 2) {
            ha_lossy_answer(&a, 1);
        }
        ha_lossy_work(&a, 40, 0);
    }
    assert_true(ha_lossy_is_worse(&a, &b));
}

static void test_both_bad(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 2, 2);
    rounds(&b, 40, 8, 0); /* two of sixteen */
    assert_false(ha_lossy_is_worse(&a, &b));
    rounds(&b, 40, 2, 2);
    assert_false(ha_lossy_is_worse(&a, &b));
    assert_false(ha_lossy_is_worse(&b, &a));
}

static void test_late_answers_are_answers(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&b, 40, 0, 0);
    rounds(&a, 20, 0, 0);
    for (unsigned i = 0; i < 40; i++) {
        ha_lossy_ask(&a);
        ha_lossy_work(&a, 0, 0);
        if (i > 0) {
            ha_lossy_answer(&a, 0); /* the one before */
        }
        assert_false(ha_lossy_is_worse(&a, &b));
    }
    assert_int_equal(ha_lossy_lost(&a), 0);
}

/* A host that stands still for a while answers everything afterwards, by one rail sooner than by the other. */
static void test_all_answers_at_once(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 0, 0);
    rounds(&b, 40, 0, 0);
    for (unsigned stop = 1; stop < 40; stop++) {
        for (unsigned i = 0; i < stop; i++) {
            ha_lossy_ask(&a);
            ha_lossy_ask(&b);
            ha_lossy_work(&a, 0, 0);
            assert_false(ha_lossy_is_worse(&a, &b));
        }
        for (unsigned i = 0; i < stop; i++) {
            ha_lossy_answer(&b, i + 1 == stop);
            assert_false(ha_lossy_is_worse(&a, &b));
            assert_false(ha_lossy_is_worse(&b, &a));
        }
        for (unsigned i = 0; i < stop; i++) {
            ha_lossy_answer(&a, i + 1 == stop);
            assert_false(ha_lossy_is_worse(&a, &b));
        }
        assert_in_range(ha_lossy_lost(&a), 0, stop > 31 ? stop - 31 : 0);
        rounds(&a, 20, 0, 0);
        rounds(&b, 20, 0, 0);
    }
}

/* The first of three is lost, the others are late: one is lost in the end. */
static void test_late_ones_behind_a_lost_one(void **state)
{
    struct ha_lossy a = {0};

    (void)state;
    rounds(&a, 40, 0, 0);
    ha_lossy_ask(&a);
    ha_lossy_ask(&a);
    ha_lossy_ask(&a);
    assert_int_equal(ha_lossy_lost(&a), 0);
    ha_lossy_answer(&a, 0);
    ha_lossy_answer(&a, 1);
    assert_int_equal(ha_lossy_lost(&a), 1);
}

/* The other rail lost nothing, but does not answer either. */
static void test_other_is_not_there(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 0, 0);
    rounds(&b, 40, 0, 0);
    ha_lossy_ask(&b);
    ha_lossy_ask(&b);
    rounds(&a, 16, 2, 2);
    assert_true(ha_lossy_is_worse(&a, &b));
    ha_lossy_ask(&b);
    assert_false(ha_lossy_is_worse(&a, &b));
}

/* Of the other one the latest 32 count: what it lost before the latest 16 speaks against it, too. */
static void test_other_was_bad_just_now(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 0, 0);
    rounds(&b, 40, 0, 0);
    rounds(&b, 2, 2, 0); /* one is lost */
    rounds(&b, 20, 0, 0);
    assert_int_equal(ha_lossy_lost(&b), 0);
    rounds(&a, 16, 2, 2);
    assert_false(ha_lossy_is_worse(&a, &b));
    rounds(&b, 16, 0, 0);
    assert_true(ha_lossy_is_worse(&a, &b));
}

/* Some were lost, and then nobody asked for long. */
static void test_old_losses_are_forgotten(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 40, 2, 2);
    rounds(&b, 40, 0, 0);
    assert_true(ha_lossy_is_worse(&a, &b));
    ha_lossy_forget(&a);
    assert_false(ha_lossy_is_worse(&a, &b));
    assert_false(ha_lossy_is_bad(&a));
    rounds(&a, 18, 2, 2);
    assert_true(ha_lossy_is_worse(&a, &b));
}

/* While it is slow nothing is learnt: half of the norm stays half of what it was. */
static void test_slow_is_no_norm(void **state)
{
    struct ha_lossy a = {0};

    (void)state;
    rounds(&a, 100, 0, 0);
    for (unsigned i = 0; i < 1000; i++) {
        ha_lossy_work(&a, 40, 1);
    }
    assert_true(ha_lossy_stalls(&a));
    for (unsigned i = 0; i < 100; i++) {
        ha_lossy_work(&a, 40, 0);
    }
    assert_false(ha_lossy_stalls(&a));
}

static void test_nothing_is_concluded_at_first(void **state)
{
    struct ha_lossy a = {0}, b = {0};

    (void)state;
    rounds(&a, 16, 2, 2);
    rounds(&b, 40, 0, 0);
    assert_false(ha_lossy_is_worse(&a, &b));
    rounds(&a, 16, 2, 2);
    assert_true(ha_lossy_is_worse(&a, &b));
    b = (struct ha_lossy){0};
    rounds(&b, 16, 0, 0);
    assert_false(ha_lossy_is_worse(&a, &b));
}

static void test_it_stays_left_until_it_is_well(void **state)
{
    struct ha_lossy a = {0};

    (void)state;
    rounds(&a, 40, 2, 2);
    rounds(&a, 10, 0, 0);
    assert_true(ha_lossy_is_bad(&a));
    rounds(&a, 7, 0, 0);
    assert_false(ha_lossy_is_bad(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_with_stalls_is_left),
        cmocka_unit_test(test_soon),
        cmocka_unit_test(test_busy_rail_is_not_left),
        cmocka_unit_test(test_half_of_the_norm),
        cmocka_unit_test(test_both_bad),
        cmocka_unit_test(test_late_answers_are_answers),
        cmocka_unit_test(test_all_answers_at_once),
        cmocka_unit_test(test_late_ones_behind_a_lost_one),
        cmocka_unit_test(test_other_is_not_there),
        cmocka_unit_test(test_slow_is_no_norm),
        cmocka_unit_test(test_other_was_bad_just_now),
        cmocka_unit_test(test_old_losses_are_forgotten),
        cmocka_unit_test(test_nothing_is_concluded_at_first),
        cmocka_unit_test(test_it_stays_left_until_it_is_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
