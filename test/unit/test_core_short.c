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
        assert_int_equal(ha_log_success(log, 2, 0, GEN), i == 2 ? 3 : 0);
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
        ended = ha_log_success(&other, i, 0, GEN);
        assert_true(ha_log_all_ended(&other, i, ended));
        ha_log_retire_to(&other, i + 1);
        assert_int_equal(ha_log_success(log, i, 0, GEN), ended);
        while (ha_log_retire(log, &index, &result)) {
            assert_int_equal(result, HA_RESULT_OK);
        }
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
    ended = ha_log_success(log, 2, 0, GEN);
    assert_int_equal(ended, 2);
    assert_false(ha_log_all_ended(log, 2, ended)); /* the first one is on the other lane */
    ended = ha_log_success(log, 0, 1, GEN);
    assert_true(ha_log_all_ended(log, 0, ended));
    ha_log_retire_to(log, 1);
    assert_false(ha_log_all_ended(log, 2, ha_log_success(log, 2, 0, GEN))); /* told before */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_short_way),
        cmocka_unit_test(test_not_all_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
