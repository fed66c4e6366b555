/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The operation log on the short way: silent operations, entering and going out at once, retiring many at once.
 * Packet numbers of 4 bits, as in test_core_log.c.
 */
#define HA_PSN_BITS 4
#include "core/ha_log.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CAPACITY 8
#define MTU      256
#define GEN      7

static struct ha_op  ops[CAPACITY];
static struct ha_log the_log;

static struct ha_log *fresh_log(uint32_t psn)
{
    ha_log_init(&the_log, ops, CAPACITY);
    ha_log_lane_start(&the_log, 0, GEN, psn);
    ha_log_lane_start(&the_log, 1, GEN, psn);
    return &the_log;
}

static void post(struct ha_log *log, enum ha_op_kind kind, uint32_t packets, int slot)
{
    uint32_t index = ha_log_append(log, kind, 0, packets * (uint64_t)MTU);

    assert_int_equal(ha_log_next_wait(log), index);
    ha_log_post(log, slot, ha_log_npsn(ha_log_op(log, index), MTU), 0);
}

/* One in `every` tells, what is posted again tells, and a success stands for the silent before it. */
static void test_silent(void **state)
{
    const struct ha_evidence peer = {.kind = HA_PROOF_PSN, .word = 3};
    struct ha_resolution     res;
    struct ha_log           *log = fresh_log(0);

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        int silent;

        ha_log_append(log, HA_OP_SEND, HA_OP_FLAG_QUIET, 1);
        silent = ha_log_may_be_silent(log, 0, 1, 3);
        assert_int_equal(silent, i != 2);
        ha_log_post(log, 0, 1, silent);
        assert_int_equal(log->told, i < 2 ? 0 : 3);
        assert_int_equal(ha_log_is_silent(log), silent);
        assert_int_equal(ha_log_success(log, 2, 0, GEN, 1), i == 2 ? 3 : 0);
    }
    assert_int_equal(ha_log_silent(log), 1);
    assert_int_equal(ha_log_resolve(log, 0, GEN, &peer, &res), 0); /* the fourth never ran */
    assert_int_equal(res.replayed, 1);
    assert_int_equal(ha_log_silent(log), 0);
    assert_false(ha_log_may_be_silent(log, 1, 1, 3));
    ha_log_post(log, 1, 1, 0);
    assert_int_equal(log->told, 4);
}

/* Entering the log and going out at once leaves what the two steps leave; so does retiring all at once. */
static void test_short_way(void **state)
{
    static struct ha_op other_ops[CAPACITY];
    struct ha_log       other, *log = fresh_log(HA_PSN_MASK - 20);
    enum ha_op_result   result;
    uint32_t            index, ended;

    (void)state;
    ha_log_init(&other, other_ops, CAPACITY);
    ha_log_lane_start(&other, 0, GEN, HA_PSN_MASK - 20);
    ha_log_lane_start(&other, 1, GEN, HA_PSN_MASK - 20);
    for (uint32_t i = 0; i < 50; i++) {
        enum ha_op_kind kind = i % 3 == 0 ? HA_OP_SEND : i % 3 == 1 ? HA_OP_WRITE : HA_OP_READ;

        ha_log_append(log, kind, HA_OP_FLAG_QUIET, 100 + i);
        ha_log_post(log, 0, 1 + i % 4, i % 5 != 0);
        ha_log_append_posted(&other, &other.lane[0], 0, kind, HA_OP_FLAG_QUIET, 100 + i, 1 + i % 4, i % 5 != 0);
        assert_memory_equal(ha_log_op(log, i), ha_log_op(&other, i), sizeof(struct ha_op));
        if (i % 5 != 0) {
            continue;
        }
        ended = ha_log_success(&other, i, 0, GEN, (int)(i & 1));
        assert_true(ha_log_all_ended(&other, i, ended));
        ha_log_retire_to(&other, i + 1);
        assert_int_equal(ha_log_success(log, i, 0, GEN, 1), ended);
        while (ha_log_retire(log, &index, &result)) {
            assert_int_equal(result, HA_RESULT_OK);
        }
        assert_true(ha_log_is_clean(&other));
        other.run = log->run;
        other.ops = log->ops;
        assert_memory_equal(log, &other, sizeof(*log));
        other.ops = other_ops;
    }
}

/* What ended before, otherwise, or is still under way elsewhere, is not retired with the rest. */
static void test_not_all_ended(void **state)
{
    struct ha_log *log = fresh_log(0);
    uint32_t       ended;

    (void)state;
    post(log, HA_OP_WRITE, 1, 1);
    post(log, HA_OP_WRITE, 1, 0);
    post(log, HA_OP_WRITE, 1, 0);
    ended = ha_log_success(log, 2, 0, GEN, 1);
    assert_int_equal(ended, 2);
    assert_false(ha_log_all_ended(log, 2, ended)); /* the first one is on the other lane */
    ended = ha_log_success(log, 0, 1, GEN, 1);
    assert_true(ha_log_all_ended(log, 0, ended));
    ha_log_retire_to(log, 1);
    assert_false(ha_log_all_ended(log, 2, ha_log_success(log, 2, 0, GEN, 1))); /* told before */
}

/* ---- the clean run ---- */

static uint32_t enter(struct ha_log *log, enum ha_op_kind kind, int slot)
{
    ha_log_append_posted(log, &log->lane[slot], slot, kind, 0, 1, 1, 0);
    return log->tail - 1;
}

static void test_clean_run(void **state)
{
    struct ha_log *log = fresh_log(0);

    (void)state;
    for (int i = 0; i < 3; i++) {
        enter(log, i == 1 ? HA_OP_WRITE : HA_OP_SEND, 0);
    }
    assert_true(ha_log_is_clean(log));
    assert_int_equal(ha_log_success(log, 1, 0, GEN, 0), 2);
    assert_int_equal(ha_log_op(log, 0)->state, HA_OP_POSTED); /* not looked at */
    ha_log_retire_to(log, 2);
    assert_int_equal(ha_log_taken(log, 0), 1);
    assert_int_equal(ha_log_success(log, 2, 0, GEN, 1), 1);
    assert_int_equal(ha_log_op(log, 2)->state, HA_OP_DONE);
    ha_log_retire_to(log, 3);
    assert_int_equal(ha_log_taken(log, 0), 2);
}

/* What ends it: another lane, the long way, a rejection, a resolution, a cancellation. */
static void test_clean_run_ends(void **state)
{
    const struct ha_evidence peer = {.kind = HA_PROOF_PSN, .word = 1};
    struct ha_resolution     res;
    struct ha_log           *log = fresh_log(0);

    (void)state;
    enter(log, HA_OP_SEND, 0);
    enter(log, HA_OP_SEND, 1);
    assert_false(ha_log_is_clean(log));
    assert_int_equal(ha_log_success(log, 1, 1, GEN, 0), 1);
    assert_int_equal(ha_log_op(log, 1)->state, HA_OP_DONE);
    assert_int_equal(ha_log_op(log, 0)->state, HA_OP_POSTED);

    log = fresh_log(0);
    post(log, HA_OP_SEND, 1, 0);
    enter(log, HA_OP_SEND, 0);
    assert_false(ha_log_is_clean(log));

    log = fresh_log(0);
    for (int i = 0; i < 4; i++) {
        enter(log, HA_OP_SEND, 0);
    }
    ha_log_reject(log, 1);
    assert_int_equal(ha_log_taken(log, 0), 0);
    assert_int_equal(ha_log_success(log, 3, 0, GEN, 0), 3); /* it is not one of them */
    assert_int_equal(ha_log_op(log, 1)->result, HA_RESULT_REJECTED);
    assert_int_equal(ha_log_taken(log, 0), 3);

    log = fresh_log(0);
    enter(log, HA_OP_SEND, 0);
    enter(log, HA_OP_SEND, 0);
    assert_int_equal(ha_log_resolve(log, 0, GEN, &peer, &res), 0);
    assert_int_equal(res.k, 1);
    assert_int_equal(ha_log_taken(log, 0), 1);
    assert_false(ha_log_is_clean(log));
    ha_log_cancel(log);
    assert_int_equal(log->run, log->tail);
}

/* What was told of before what lies in front of it is not told of again. */
static void test_clean_run_is_told_once(void **state)
{
    struct ha_log *log = fresh_log(0);

    (void)state;
    enter(log, HA_OP_SEND, 0);
    for (int i = 0; i < 3; i++) {
        enter(log, HA_OP_SEND, 1);
    }
    assert_int_equal(ha_log_success(log, 2, 1, GEN, 0), 2);
    assert_int_equal(ha_log_success(log, 0, 0, GEN, 0), 1);
    ha_log_retire_to(log, 1);
    assert_int_equal(ha_log_success(log, 3, 1, GEN, 0), 1);
    assert_int_equal(ha_log_taken(log, 1), 3);
}

/* A log that never believes in its clean run, and is longer or shorter all the time, sees the same. */
static struct {
    struct ha_op  ops[2][CAPACITY], moved[CAPACITY];
    struct ha_log log[2];
    uint32_t      moves;
    uint32_t      ended[2], gen[2];
    uint64_t      results[2]; /* a hash of all, in their order */
} twins;

static void ended(int which, uint32_t index, enum ha_op_result result)
{
    twins.results[which] = (twins.results[which] ^ index ^ (uint64_t)result << 32) * 0x9e3779b97f4a7c15u;
}

static void twin_success(int which, uint32_t index, int slot, int seen)
{
    struct ha_log    *log = &twins.log[which];
    enum ha_op_result result;
    uint32_t          at;

    log->run           = which == 1 ? log->tail : log->run;
    twins.ended[which] = ha_log_success(log, index, slot, twins.gen[slot], seen);
    if (ha_log_all_ended(log, index, twins.ended[which])) {
        for (at = log->head; at != index + 1; at++) {
            ended(which, at, HA_RESULT_OK);
        }
        ha_log_retire_to(log, index + 1);
    }
    while (ha_log_retire(log, &at, &result)) {
        ended(which, at, result);
    }
}

static void twin_resolve(int which, int slot, uint32_t executed)
{
    struct ha_log           *log  = &twins.log[which];
    uint32_t                 out  = ha_psn_distance(log->acks[slot].una, log->lane[slot].nxt) + 1;
    const struct ha_evidence peer = {.kind = HA_PROOF_PSN, .word = ha_psn_add(log->acks[slot].una, executed % out)};
    struct ha_resolution     res;
    enum ha_op_result        result;
    uint32_t                 at;

    assert_int_equal(ha_log_resolve(log, slot, twins.gen[slot], &peer, &res), 0);
    ended(which, res.k << 16 ^ res.retired << 8 ^ res.replayed << 4 ^ res.unknown, HA_RESULT_NONE);
    while (ha_log_retire(log, &at, &result)) {
        ended(which, at, result);
    }
    ha_log_lane_start(log, slot, twins.gen[slot] + 1, executed);
}

/* A lane gets its operations in their order. */
static int is_behind(const struct ha_log *log, int slot)
{
    int behind = (int32_t)(log->acks[slot].first - log->post) > 0;

    for (uint32_t i = log->post; i != log->tail; i++) {
        behind |= ha_op_is_posted_on(ha_log_op(log, i), slot, log->lane[slot].gen);
    }
    return behind;
}

static void twin_step(int which, uint32_t dice, uint32_t at, int slot)
{
    struct ha_log  *log  = &twins.log[which];
    enum ha_op_kind kind = dice & 8 ? HA_OP_SEND : dice & 16 ? HA_OP_READ : HA_OP_WRITE;

    if ((dice & 7) < 4) {
        if (!ha_log_psn_room(log, slot, 1) || (ha_log_no_backlog(log) && ha_log_room(log) == 0) ||
            is_behind(log, slot)) {
            return;
        }
        if ((dice & 7) < 3 && ha_log_no_backlog(log)) {
            enter(log, kind, slot);
            return;
        }
        if (ha_log_no_backlog(log)) {
            ha_log_append(log, kind, 0, 1);
        }
        ha_log_post(log, slot, 1, 0);
    } else if ((dice & 7) < 7) {
        twin_success(which, at, slot, dice >> 5 & 1);
    } else if ((dice >> 5 & 7) == 0) {
        ha_log_reject(log, at);
    } else if ((dice >> 5 & 7) == 1) {
        twin_resolve(which, slot, dice >> 8 & 3);
    }
}

/* To a ring that just holds what is in it, and one more, or to the whole one. */
static void twin_move(struct ha_log *log, uint32_t whole)
{
    struct ha_op *ops      = log->ops == twins.moved ? twins.ops[1] : twins.moved;
    uint32_t      capacity = CAPACITY;

    while (!whole && capacity > 1 && capacity / 2 > ha_log_used(log)) {
        capacity /= 2;
    }
    memset(ops, 0xee, sizeof(twins.moved));
    ha_log_move(log, ops, capacity);
    twins.moves++;
}

static void test_clean_run_changes_nothing(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int t = 0; t < 2; t++) {
        ha_log_init(&twins.log[t], twins.ops[t], CAPACITY);
        ha_log_lane_start(&twins.log[t], 0, 0, 0);
        ha_log_lane_start(&twins.log[t], 1, 0, 0);
        twins.log[t].head = twins.log[t].post = twins.log[t].tail = UINT32_MAX - 3000;
    }
    for (int step = 0; step < 2000000; step++) {
        uint32_t dice, at, slot;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        dice = (uint32_t)(seed >> 33);
        at   = twins.log[0].head + (dice >> 12) % (CAPACITY + 1);
        slot = step / 64 % 4 != 0 ? (uint32_t)step / 64 % 2 : dice >> 20 & 1;
        for (int t = 0; t < 2; t++) {
            if (t == 1 && (ha_log_room(&twins.log[1]) == 0 || (dice >> 22 & 7) == 0)) {
                twin_move(&twins.log[1], dice >> 25 & 1);
            }
            twin_step(t, dice, at, (int)slot);
        }
        if ((dice & 7) == 7 && (dice >> 5 & 7) == 1) {
            twins.gen[slot]++;
        }
        assert_int_equal(twins.ended[0], twins.ended[1]);
        assert_true(twins.results[0] == twins.results[1]);
        assert_int_equal(twins.log[0].head, twins.log[1].head);
        assert_int_equal(twins.log[0].post, twins.log[1].post);
        assert_int_equal(twins.log[0].acks[slot].una, twins.log[1].acks[slot].una);
        assert_int_equal(ha_log_taken(&twins.log[0], (int)slot), ha_log_taken(&twins.log[1], (int)slot));
    }
    assert_true(twins.log[0].tail < UINT32_MAX / 2); /* they have come round */
    assert_true(twins.moves > 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_short_way),
        cmocka_unit_test(test_not_all_ended),
        cmocka_unit_test(test_clean_run),
        cmocka_unit_test(test_clean_run_ends),
        cmocka_unit_test(test_clean_run_is_told_once),
        cmocka_unit_test(test_clean_run_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
