/* SPDX-License-Identifier: BSD-3-Clause */
/* The pure part of the engine: cutting, slices, pieces, rails, choice, handles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/core/hte_cut.h"
#include "engine/core/hte_pick.h"
#include "engine/core/hte_piece.h"
#include "engine/core/hte_rail_state.h"
#include "engine/core/hte_slice.h"
#include "engine/base/hte_table.h"
#include "engine/include/hte.h"

#define K   1024ull
#define FAR UINT64_MAX
#define MS  1000000ull

/* ---- cutting ---- */

static void test_cut_sizes(void **state)
{
    (void)state;
    assert_int_equal(hte_cut(1, 64 * K, 16 * K, FAR, FAR), 1);
    assert_int_equal(hte_cut(64 * K, 64 * K, 16 * K, FAR, FAR), 64 * K);
    assert_int_equal(hte_cut(80 * K, 64 * K, 16 * K, FAR, FAR), 80 * K);
    assert_int_equal(hte_cut(80 * K + 1, 64 * K, 16 * K, FAR, FAR), 64 * K);
    assert_int_equal(hte_cut(128 * K, 64 * K, 0, FAR, FAR), 64 * K);
    assert_int_equal(hte_cut(FAR, 64 * K, FAR, FAR, FAR), FAR);
}

static void test_cut_borders(void **state)
{
    (void)state;
    assert_int_equal(hte_cut(80 * K, 64 * K, 16 * K, 100, FAR), 100);
    assert_int_equal(hte_cut(80 * K, 64 * K, 16 * K, FAR, 7), 7);
    assert_int_equal(hte_cut(80 * K, 64 * K, 16 * K, 9, 7), 7);
    assert_int_equal(hte_cut(10, 64 * K, 16 * K, 10, 10), 10);
}

/* Slices cover the request once, in order, whatever the sizes are. */
static void test_cut_covers(void **state)
{
    uint64_t left, length, last;
    unsigned i;

    (void)state;
    srand(1);
    for (i = 0; i < 10000; ++i) {
        left = 1 + (uint64_t)rand() % 1000000;
        for (last = 0; left > 0; left -= length) {
            length = hte_cut(left, 4096, 1024, FAR, FAR);
            assert_true(length >= 1 && length <= left && length <= 4096 + 1024);
            assert_true(last == 0 || last == 4096); /* only the last one differs */
            last = length;
        }
        assert_true(last > 1024 || last == length);
    }
}

/* Runs have the borders that slices have, count as many, and never take more than there is room for. */
static void test_cut_runs(void **state)
{
    uint64_t whole, left, length, run, room, units, slices, fragment;
    unsigned i;

    (void)state;
    srand(2);
    for (i = 0; i < 10000; ++i) {
        whole    = 1 + (uint64_t)rand() % 200000;
        fragment = (uint64_t)rand() % 4096;
        for (slices = 0, left = whole; left > 0; ++slices) {
            left -= hte_cut(left, 4096, fragment, FAR, FAR);
        }
        for (left = whole; left > 0; left -= length, slices -= units) {
            room   = 1 + (uint64_t)rand() % 20;
            run    = hte_cut_run(4096, (uint64_t)rand() % 70000, room);
            length = hte_cut(left, run, fragment, FAR, FAR);
            units  = hte_cut_units(length, run, 4096, fragment);
            assert_true(units >= 1 && units <= room && units <= slices);
            assert_true(length == left || length % 4096 == 0);
        }
        assert_int_equal(slices, 0);
    }
    assert_int_equal(hte_cut_run(64 * K, 0, 128), 64 * K);
    assert_int_equal(hte_cut_run(64 * K, 1024 * K + 1, 128), 1024 * K);
    assert_int_equal(hte_cut_run(64 * K, 1024 * K, 3), 192 * K);
    assert_int_equal(hte_cut_units(5000, 4096, 4096, FAR), 1); /* a rest larger than a slice joined */
    assert_int_equal(hte_cut_units(10, 65536, 4096, 0), 1);
}

/* ---- slices: every event in every step ---- */

static struct hte_slice_state slice_in(enum hte_slice_step step, bool is_write)
{
    struct hte_slice_state slice;

    hte_slice_init(&slice, is_write, 2);
    slice.step = (uint8_t)step;
    return slice;
}

struct edge {
    enum hte_slice_step   from;
    enum hte_slice_event  event;
    enum hte_slice_step   to;
    enum hte_slice_action action;
};

static void check_edges(bool is_write, const struct edge *edges, size_t count)
{
    struct hte_slice_state slice;
    const struct edge     *edge;
    int                    step, event;
    size_t                 i;

    for (step = HTE_SLICE_READY; step <= HTE_SLICE_OVER; ++step) {
        for (event = HTE_SLICE_POST; event <= HTE_SLICE_DROP; ++event) {
            for (i = 0, edge = NULL; i < count; ++i) {
                if ((int)edges[i].from == step && (int)edges[i].event == event) {
                    edge = &edges[i];
                }
            }
            slice = slice_in((enum hte_slice_step)step, is_write);
            assert_int_equal(hte_slice_on(&slice, (enum hte_slice_event)event, 3),
                             edge == NULL ? HTE_SLICE_ILLEGAL : edge->action);
            assert_int_equal(slice.step, edge == NULL ? (unsigned)step : edge->to);
            assert_int_equal(hte_slice_is_with_ucx(&slice),
                             slice.step == HTE_SLICE_POSTED || slice.step == HTE_SLICE_SEEN);
        }
    }
}

static void test_slice_write_edges(void **state)
{
    static const struct edge edges[] = {
        {HTE_SLICE_READY, HTE_SLICE_POST, HTE_SLICE_POSTED, HTE_SLICE_NOTHING},
        {HTE_SLICE_READY, HTE_SLICE_DROP, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        {HTE_SLICE_POSTED, HTE_SLICE_LOCAL, HTE_SLICE_SENT, HTE_SLICE_NOTHING},
        {HTE_SLICE_POSTED, HTE_SLICE_FLUSHED, HTE_SLICE_SEEN, HTE_SLICE_NOTHING},
        {HTE_SLICE_POSTED, HTE_SLICE_MOVED, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_POSTED, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_POSTED, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        {HTE_SLICE_SENT, HTE_SLICE_FLUSHED, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_SENT, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_SENT, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        {HTE_SLICE_SEEN, HTE_SLICE_LOCAL, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_SEEN, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_SEEN, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
    };

    (void)state;
    check_edges(true, edges, sizeof(edges) / sizeof(edges[0]));
}

static void test_slice_read_edges(void **state)
{
    static const struct edge edges[] = {
        {HTE_SLICE_READY, HTE_SLICE_POST, HTE_SLICE_POSTED, HTE_SLICE_NOTHING},
        {HTE_SLICE_READY, HTE_SLICE_DROP, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        {HTE_SLICE_POSTED, HTE_SLICE_LOCAL, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_POSTED, HTE_SLICE_MOVED, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_POSTED, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_POSTED, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        /* a READ is never in these; what happens if it were is fixed all the same */
        {HTE_SLICE_SENT, HTE_SLICE_FLUSHED, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_SENT, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_SENT, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
        {HTE_SLICE_SEEN, HTE_SLICE_LOCAL, HTE_SLICE_OVER, HTE_SLICE_COMPLETE},
        {HTE_SLICE_SEEN, HTE_SLICE_FAIL, HTE_SLICE_READY, HTE_SLICE_RETRY},
        {HTE_SLICE_SEEN, HTE_SLICE_EXPIRE, HTE_SLICE_OVER, HTE_SLICE_GIVE_UP},
    };

    (void)state;
    check_edges(false, edges, sizeof(edges) / sizeof(edges[0]));
}

static void test_slice_tries(void **state)
{
    struct hte_slice_state slice;
    unsigned               i;

    (void)state;
    hte_slice_init(&slice, true, 9);
    for (i = 0; i < 9; ++i) {
        hte_slice_on(&slice, HTE_SLICE_POST, 0);
        assert_int_equal(hte_slice_on(&slice, HTE_SLICE_FAIL, (int)i), HTE_SLICE_RETRY);
        assert_int_equal(slice.bad_rail, i);
    }
    hte_slice_on(&slice, HTE_SLICE_POST, 0);
    assert_int_equal(hte_slice_on(&slice, HTE_SLICE_FAIL, 0), HTE_SLICE_GIVE_UP);

    hte_slice_init(&slice, true, 0);
    hte_slice_on(&slice, HTE_SLICE_POST, 0);
    assert_int_equal(hte_slice_on(&slice, HTE_SLICE_FAIL, 0), HTE_SLICE_GIVE_UP);
}

/* ---- pieces ---- */

static void test_piece_completes(void **state)
{
    struct hte_piece_state piece;

    (void)state;
    hte_piece_init(&piece, 100);
    assert_true(hte_piece_can_cut(&piece));
    hte_piece_cut(&piece, 60);
    assert_false(hte_piece_slice_done(&piece, 60)); /* none out, but not all cut */
    hte_piece_cut(&piece, 40);
    assert_false(hte_piece_can_cut(&piece));
    assert_true(hte_piece_slice_done(&piece, 40));
    assert_int_equal(piece.step, HTE_PIECE_FINAL);
    assert_int_equal(piece.code, HTE_COMPLETED);
    assert_int_equal(piece.error, HTE_OK);
    assert_int_equal(piece.transferred, 100);
}

static void test_piece_fails_once(void **state)
{
    struct hte_piece_state piece;

    (void)state;
    hte_piece_init(&piece, 100);
    hte_piece_cut(&piece, 30);
    hte_piece_cut(&piece, 30);
    hte_piece_cut(&piece, 30);
    assert_false(hte_piece_slice_lost(&piece, HTE_TIMEOUT, HTE_ERR_TIMEOUT));
    assert_false(hte_piece_can_cut(&piece));
    assert_false(hte_piece_slice_lost(&piece, HTE_FAILED, HTE_ERR_ENDPOINT)); /* the first reason stays */
    assert_true(hte_piece_slice_done(&piece, 30));
    assert_int_equal(piece.code, HTE_TIMEOUT);
    assert_int_equal(piece.error, HTE_ERR_TIMEOUT);
    assert_int_equal(piece.transferred, 30);
}

static void test_piece_stop(void **state)
{
    struct hte_piece_state piece;

    (void)state;
    hte_piece_init(&piece, 100); /* nothing cut: final at once */
    assert_true(hte_piece_stop(&piece, HTE_CANCELED, HTE_ERR_CANCELED));
    assert_int_equal(piece.code, HTE_CANCELED);
    assert_false(hte_piece_stop(&piece, HTE_FAILED, HTE_ERR_ENDPOINT)); /* final stays final */
    assert_int_equal(piece.code, HTE_CANCELED);

    hte_piece_init(&piece, 100); /* something out: final with it */
    hte_piece_cut(&piece, 50);
    assert_false(hte_piece_stop(&piece, HTE_CANCELED, HTE_ERR_CANCELED));
    assert_true(hte_piece_slice_done(&piece, 50));
    assert_int_equal(piece.code, HTE_CANCELED);

    hte_piece_init(&piece, 100); /* all cut: too late */
    hte_piece_cut(&piece, 100);
    assert_false(hte_piece_stop(&piece, HTE_CANCELED, HTE_ERR_CANCELED));
    assert_true(hte_piece_slice_done(&piece, 100));
    assert_int_equal(piece.code, HTE_COMPLETED);
}

static void test_worse_code(void **state)
{
    static const int order[] = {HTE_COMPLETED, HTE_CANCELED, HTE_INVALID, HTE_TIMEOUT, HTE_FAILED};
    int              i, k;

    (void)state;
    for (i = 0; i < 5; ++i) {
        for (k = 0; k < 5; ++k) {
            assert_int_equal(hte_worse_code(order[i], order[k]), order[i > k ? i : k]);
        }
    }
}

/* ---- rails ---- */

static const struct hte_rail_rule rule = {
    .errors = 5, .window = 5000 * MS, .pause = 30000 * MS, .pause_max = 300000 * MS};

static bool errors_in_a_row(struct hte_rail_health *health, uint64_t now, unsigned count)
{
    bool is_paused = false;

    while (count-- > 0) {
        is_paused = hte_rail_error(health, &rule, now, true);
    }
    return is_paused;
}

static void test_rail_pauses(void **state)
{
    struct hte_rail_health health = {.count = 0};
    uint64_t               now    = 1000000 * MS;

    (void)state;
    assert_false(errors_in_a_row(&health, now, 4));
    assert_false(hte_rail_error(&health, &rule, now + 5001 * MS, true)); /* the four are too old */
    assert_false(errors_in_a_row(&health, now + 5001 * MS, 3));
    assert_true(hte_rail_error(&health, &rule, now + 5001 * MS, true));
    assert_true(hte_rail_is_paused(&health, now + 5001 * MS + rule.pause - 1));
    assert_false(hte_rail_is_paused(&health, now + 5001 * MS + rule.pause));
}

static void test_rail_without_alternative(void **state)
{
    struct hte_rail_health health = {.count = 0};
    unsigned               i;

    (void)state;
    for (i = 0; i < 100; ++i) {
        assert_false(hte_rail_error(&health, &rule, 1000 * MS, false));
    }
    assert_false(hte_rail_is_paused(&health, 1000 * MS));
    assert_true(hte_rail_error(&health, &rule, 1001 * MS, true));
}

static void test_rail_pause_doubles(void **state)
{
    struct hte_rail_health health = {.count = 0};
    uint64_t               now = 1, expected = rule.pause;
    unsigned               i;

    (void)state;
    for (i = 0; i < 6; ++i) {
        assert_true(errors_in_a_row(&health, now, 5));
        assert_int_equal(health.paused_until - now, expected);
        assert_false(errors_in_a_row(&health, now + 1, 32)); /* one pause at a time */
        now      = health.paused_until;
        expected = 2 * expected > rule.pause_max ? rule.pause_max : 2 * expected;
        hte_rail_success(&health, now + 1); /* calm is too short to forget */
        health.count = health.next = 0;
    }
    hte_rail_success(&health, now + rule.pause_max);
    assert_true(errors_in_a_row(&health, now + rule.pause_max, 5));
    assert_int_equal(health.last_pause, rule.pause);
}

/* Successes in between do not excuse errors. */
static void test_rail_half_broken(void **state)
{
    static const struct hte_rail_rule rule   = {.errors = 5, .window = 1000, .pause = 100, .pause_max = 400};
    struct hte_rail_health            health = {.count = 0};
    uint64_t                          now;

    (void)state;
    for (now = 10; now < 50; now += 10) {
        assert_false(hte_rail_error(&health, &rule, now, true));
        hte_rail_success(&health, now + 5);
    }
    assert_true(hte_rail_error(&health, &rule, now, true));
}

static void test_rate(void **state)
{
    struct hte_rate rate = {.begin = 0};
    unsigned        i;

    (void)state;
    hte_rate_begin(&rate, 1000 * MS);
    hte_rate_add(&rate, 500, 1000 * MS); /* window too short: no sample */
    assert_int_equal(rate.per_second, 0);
    hte_rate_add(&rate, 500, 1001 * MS);
    assert_int_equal(rate.per_second, 1000000);
    for (i = 2; i < 200; ++i) {
        hte_rate_add(&rate, 2000, (1000 + i) * MS);
    }
    assert_in_range(rate.per_second, 1990000, 2000000);
    assert_in_range(hte_rate_predict(&rate, 1000000, 1000000), 1000 * MS, 1006 * MS);
    rate.per_second = 0;
    assert_int_equal(hte_rate_predict(&rate, 0, 1000), 1000);
}

/* ---- choice ---- */

static int pick(struct hte_pick pick, enum hte_policy policy, uint32_t random)
{
    pick.random = random;
    pick.turn   = random;
    return hte_pick_rail(policy, &pick);
}

static uint32_t picked(struct hte_pick choice, enum hte_policy policy)
{
    uint32_t i, mask = 0;

    for (i = 0; i < 1000; ++i) {
        mask |= 1u << pick(choice, policy, i);
    }
    return mask;
}

static void test_pick_tiers(void **state)
{
    (void)state;
    assert_int_equal(picked((struct hte_pick){.preferred = 3, .available = 12, .bad_rail = -1}, HTE_POLICY_RANDOM), 3);
    assert_int_equal(picked((struct hte_pick){.preferred = 3, .available = 12, .bad_rail = 0}, HTE_POLICY_RANDOM), 2);
    assert_int_equal(
        picked((struct hte_pick){.preferred = 3, .available = 12, .paused = 2, .bad_rail = 0}, HTE_POLICY_ROUND_ROBIN),
        12);
    assert_int_equal(picked((struct hte_pick){.preferred = 1, .paused = 1, .bad_rail = -1}, HTE_POLICY_RANDOM), 1);
    assert_int_equal(
        picked((struct hte_pick){.preferred = 1, .available = 2, .paused = 2, .bad_rail = 0}, HTE_POLICY_RANDOM),
        2); /* rather a paused one than the one that just failed */
    assert_int_equal(picked((struct hte_pick){.preferred = 4, .bad_rail = 2}, HTE_POLICY_RANDOM), 4);
    assert_int_equal(pick((struct hte_pick){.bad_rail = -1}, HTE_POLICY_RANDOM, 0), -1);
}

static void test_pick_round_robin(void **state)
{
    struct hte_pick choice = {.preferred = 0x15, .bad_rail = -1};

    (void)state;
    assert_int_equal(pick(choice, HTE_POLICY_ROUND_ROBIN, 0), 0);
    assert_int_equal(pick(choice, HTE_POLICY_ROUND_ROBIN, 1), 2);
    assert_int_equal(pick(choice, HTE_POLICY_ROUND_ROBIN, 2), 4);
    assert_int_equal(pick(choice, HTE_POLICY_ROUND_ROBIN, 3), 0);
}

static void test_pick_load(void **state)
{
    static const uint64_t predicted[] = {100, 90, 21, 19};
    struct hte_pick       choice      = {.preferred = 3, .available = 4, .bad_rail = -1, .predicted = predicted};

    (void)state;
    assert_int_equal(pick(choice, HTE_POLICY_LOAD, 1), 1); /* 21 * 5 > 90 */
    choice.available = 12;
    assert_int_equal(pick(choice, HTE_POLICY_LOAD, 1), 1); /* 19 * 5 > 90 */
    choice.preferred = 1;
    choice.available = 14;
    assert_int_equal(pick(choice, HTE_POLICY_LOAD, 1), 3); /* 19 * 5 < 100 */
    choice.paused = 8;
    assert_int_equal(pick(choice, HTE_POLICY_LOAD, 1), 0);
    assert_int_equal(picked(choice, HTE_POLICY_LOAD), 7); /* probes */
}

/* ---- handles ---- */

static void test_table_generations(void **state)
{
    struct hte_slot  slots[3];
    struct hte_table table;
    int              object;
    uint32_t         index, old, i;

    (void)state;
    hte_table_init(&table, slots, 3, 7);
    index = hte_table_add(&table, &object);
    old   = slots[index].generation;
    assert_ptr_equal(hte_table_find(&table, index, old), &object);
    assert_null(hte_table_find(&table, index, old + 1));
    assert_null(hte_table_find(&table, 3, 1));
    hte_table_remove(&table, index);
    assert_null(hte_table_find(&table, index, old));
    for (i = 0; i < 3; ++i) {
        assert_true(hte_table_add(&table, &object) < 3);
    }
    assert_int_equal(hte_table_add(&table, &object), HTE_TABLE_NONE);
    assert_null(hte_table_find(&table, index, old)); /* same slot, other generation */
    for (i = 0; i < 20; ++i) {                       /* generations never become 0 */
        hte_table_remove(&table, 1);
        assert_int_equal(hte_table_add(&table, &object), 1);
        assert_in_range(slots[1].generation, 1, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_sizes),
        cmocka_unit_test(test_cut_borders),
        cmocka_unit_test(test_cut_covers),
        cmocka_unit_test(test_cut_runs),
        cmocka_unit_test(test_slice_write_edges),
        cmocka_unit_test(test_slice_read_edges),
        cmocka_unit_test(test_slice_tries),
        cmocka_unit_test(test_piece_completes),
        cmocka_unit_test(test_piece_fails_once),
        cmocka_unit_test(test_piece_stop),
        cmocka_unit_test(test_worse_code),
        cmocka_unit_test(test_rail_pauses),
        cmocka_unit_test(test_rail_without_alternative),
        cmocka_unit_test(test_rail_pause_doubles),
        cmocka_unit_test(test_rail_half_broken),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_pick_tiers),
        cmocka_unit_test(test_pick_round_robin),
        cmocka_unit_test(test_pick_load),
        cmocka_unit_test(test_table_generations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
