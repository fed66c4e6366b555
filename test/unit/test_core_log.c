/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The operation log, compiled with packet numbers of 4 bits: every start
 * number, proof and wrap is tried and compared with a model that counts
 * packets without wrapping.
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

static uint32_t post(struct ha_log *log, enum ha_op_kind kind, uint32_t packets, int slot)
{
    uint32_t index = ha_log_append(log, kind, 0, packets * (uint64_t)MTU);

    assert_int_equal(ha_log_next_wait(log), index);
    ha_log_post(log, slot, ha_log_npsn(ha_log_op(log, index), MTU), 0);
    return index;
}

static int resolve(int slot, uint32_t gen, enum ha_proof kind, uint32_t word, uint32_t received,
                   struct ha_resolution *res)
{
    struct ha_evidence peer = {.kind = (uint8_t)kind, .word = word, .received = received};

    return ha_log_resolve(&the_log, slot, gen, &peer, res);
}

static int resolve_psn(int slot, uint32_t gen, uint32_t proof, struct ha_resolution *res)
{
    return resolve(slot, gen, HA_PROOF_PSN, proof, 0, res);
}

static void expect_op(const struct ha_log *log, uint32_t index, enum ha_op_state state, enum ha_op_result result)
{
    assert_int_equal(ha_log_op(log, index)->state, state);
    assert_int_equal(ha_log_op(log, index)->result, result);
}

static void test_packet_count(void **state)
{
    (void)state;
    assert_int_equal(ha_psn_count(0, 1024), 1);
    assert_int_equal(ha_psn_count(1, 1024), 1);
    assert_int_equal(ha_psn_count(1024, 1024), 1);
    assert_int_equal(ha_psn_count(1025, 1024), 2);
    assert_int_equal(ha_psn_count(1ull << 30, 4096), 1u << 18);
}

static void test_packet_numbers_wrap(void **state)
{
    (void)state;
    for (uint32_t from = 0; from <= HA_PSN_MASK; from++) {
        for (uint32_t n = 0; n <= HA_PSN_MASK; n++) {
            assert_int_equal(ha_psn_distance(from, ha_psn_add(from, n)), n);
        }
    }
}

static void test_atomics_are_one_packet(void **state)
{
    struct ha_log *log    = fresh_log(0);
    uint32_t       atomic = post(log, HA_OP_ATOMIC, 0, 0);
    uint32_t       fetch  = post(log, HA_OP_FETCH, 0, 0);

    (void)state;
    assert_int_equal(ha_log_op(log, atomic)->npsn, 1);
    assert_int_equal(ha_log_op(log, fetch)->npsn, 1);
}

/* ---- resolve, exhaustively ---- */

struct plan {
    uint32_t        start, count;
    enum ha_op_kind kind[3];
    uint32_t        packets[3];
    uint32_t        acked; /* operations with a success completion */
};

/* What must become of operation `i` whose packets end at `end` (unwrapped)
 * when `executed` packets ran at the peer. */
static void expect_resolved(const struct plan *plan, uint32_t i, uint32_t end, uint32_t executed)
{
    int ran = end <= executed;

    if (i < plan->acked) {
        expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_OK);
    } else if (!ran || plan->kind[i] == HA_OP_READ) {
        expect_op(&the_log, i, HA_OP_WAIT, HA_RESULT_NONE);
    } else if (plan->kind[i] == HA_OP_FETCH) {
        expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_UNKNOWN);
    } else {
        expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_PROVEN);
    }
}

static void post_plan(const struct plan *plan)
{
    struct ha_log *log = fresh_log(plan->start);

    for (uint32_t i = 0; i < plan->count; i++) {
        post(log, plan->kind[i], plan->packets[i], 0);
    }
    if (plan->acked > 0) {
        ha_log_success(log, plan->acked - 1, 0, GEN, 1);
    }
}

static void check_proof(const struct plan *plan, uint32_t acked_end, uint32_t total, uint32_t proof)
{
    struct ha_resolution res;
    struct ha_op         before[CAPACITY];
    uint32_t             executed = ha_psn_distance(plan->start, proof);
    uint32_t             end = 0, k = 0, n = 0;
    int                  rc;

    post_plan(plan);
    memcpy(before, ops, sizeof(ops));
    rc = resolve_psn(0, GEN, proof, &res);
    if (executed < acked_end || executed > total) {
        assert_true(rc == HA_EPROOF_ACKED || rc == HA_EPROOF_WINDOW);
        assert_memory_equal(before, ops, sizeof(ops));
        return;
    }
    assert_int_equal(rc, 0);
    for (uint32_t i = 0; i < plan->count; i++) {
        end += plan->packets[i];
        k += plan->kind[i] == HA_OP_SEND && end <= executed;
        n += i >= plan->acked;
        expect_resolved(plan, i, end, executed);
    }
    assert_int_equal(res.k, k);
    assert_int_equal(res.retired + res.replayed + res.unknown, n);
    assert_false(ha_log_posted_on(&the_log, 0, GEN));
}

static void check_plan(struct plan *plan)
{
    uint32_t total = 0, end = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        total += plan->packets[i];
    }
    if (total >= HA_PSN_WINDOW) {
        return;
    }
    for (plan->acked = 0; plan->acked <= plan->count; plan->acked++) {
        for (uint32_t proof = 0; proof <= HA_PSN_MASK; proof++) {
            check_proof(plan, end, total, proof);
        }
        end += plan->acked < plan->count ? plan->packets[plan->acked] : 0;
    }
}

static void test_resolve_everything(void **state)
{
    struct plan plan = {.count = 3};

    (void)state;
    for (plan.start = 0; plan.start <= HA_PSN_MASK; plan.start++) {
        for (unsigned kinds = 0; kinds < 5 * 5 * 5; kinds++) {
            for (unsigned sizes = 0; sizes < 3 * 3 * 3; sizes++) {
                unsigned kind = kinds, size = sizes;

                for (int i = 0; i < 3; i++, kind /= 5, size /= 3) {
                    plan.kind[i]    = (enum ha_op_kind)(kind % 5);
                    plan.packets[i] = plan.kind[i] >= HA_OP_ATOMIC ? 1 : size % 3 + 1;
                }
                check_plan(&plan);
            }
        }
    }
}

static void test_proof_errors_have_names(void **state)
{
    struct ha_resolution res;
    struct ha_log       *log = fresh_log(14);

    (void)state;
    post(log, HA_OP_SEND, 1, 0);
    post(log, HA_OP_SEND, 1, 0);
    ha_log_success(log, 0, 0, GEN, 1); /* una = 15, nxt = 0 */
    assert_int_equal(resolve_psn(0, GEN, 14, &res), HA_EPROOF_ACKED);
    assert_int_equal(resolve_psn(0, GEN, 1, &res), HA_EPROOF_WINDOW);
    assert_int_equal(resolve(0, GEN, HA_PROOF_EMPTY, 0, 0, &res), HA_EPROOF_ACKED);
    assert_int_equal(resolve_psn(0, GEN, 0, &res), 0);
    assert_int_equal(res.k, 2);
}

static void test_empty_proof_replays_all(void **state)
{
    struct ha_resolution res;
    struct ha_log       *log = fresh_log(3);

    (void)state;
    for (int i = 0; i < 3; i++) {
        post(log, HA_OP_SEND, 1, 1);
    }
    assert_int_equal(resolve(1, GEN, HA_PROOF_EMPTY, 0, 0, &res), 0);
    assert_int_equal(res.k, 0);
    assert_int_equal(res.replayed, 3);
    assert_int_equal(ha_log_next_wait(log), 0);
}

static void test_lane_that_never_sent(void **state)
{
    struct ha_resolution res;
    struct ha_log       *log = fresh_log(3);

    (void)state;
    post(log, HA_OP_SEND, 1, 0);
    assert_int_equal(resolve_psn(1, GEN + 1, 9, &res), 0);
    assert_int_equal(res.k + res.replayed + res.retired, 0);
    expect_op(log, 0, HA_OP_POSTED, HA_RESULT_NONE);
}

/* ---- order and the ring ---- */

static void test_new_work_queues_behind_the_replay(void **state)
{
    struct ha_resolution res;
    struct ha_log       *log = fresh_log(0);
    uint32_t             index;
    enum ha_op_result    result;

    (void)state;
    for (int i = 0; i < 3; i++) {
        post(log, HA_OP_SEND, 1, 0);
    }
    assert_true(ha_log_no_backlog(log));
    ha_log_append(log, HA_OP_SEND, 0, 1);
    assert_false(ha_log_no_backlog(log));
    assert_int_equal(resolve_psn(0, GEN, 1, &res), 0); /* the first ran */
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(ha_log_next_wait(log), i);
        ha_log_post(log, 1, 1, 0);
        assert_int_equal(ha_log_op(log, i)->posts, i < 3 ? 2 : 1);
    }
    assert_true(ha_log_no_backlog(log));
    assert_true(ha_log_retire(log, &index, &result));
    assert_int_equal(index, 0);
    assert_int_equal(result, HA_RESULT_PROVEN);
    assert_false(ha_log_retire(log, &index, &result));
    ha_log_success(log, 3, 1, GEN, 1);
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(ha_log_retire(log, &index, &result));
        assert_int_equal(index, i);
        assert_int_equal(result, HA_RESULT_OK);
    }
    assert_int_equal(ha_log_used(log), 0);
}

static void test_success_counts_what_was_unsignaled(void **state)
{
    struct ha_log *log = fresh_log(0);

    (void)state;
    for (int i = 0; i < 4; i++) {
        post(log, i == 1 ? HA_OP_WRITE : HA_OP_SEND, 1, 0);
    }
    ha_log_success(log, 2, 0, GEN, 1);
    for (uint32_t i = 0; i < 3; i++) {
        expect_op(log, i, HA_OP_DONE, HA_RESULT_OK);
    }
    expect_op(log, 3, HA_OP_POSTED, HA_RESULT_NONE);
    assert_int_equal(ha_log_taken(log, 0), 2);
    assert_int_equal(log->lane[0].takes, 3);
    assert_int_equal(log->acks[0].una, 3);
}

static void test_stale_success_is_ignored(void **state)
{
    struct ha_log *log = fresh_log(0);

    (void)state;
    post(log, HA_OP_SEND, 1, 0);
    ha_log_success(log, 0, 0, GEN - 1, 1); /* old generation */
    ha_log_success(log, 0, 1, GEN, 1);     /* other lane */
    ha_log_success(log, 5, 0, GEN, 1);     /* nothing there */
    expect_op(log, 0, HA_OP_POSTED, HA_RESULT_NONE);
}

/* Success and retirement stay right when the ring and its free-running
 * indices wrap. */
static void test_ring_wraps(void **state)
{
    struct ha_log    *log = fresh_log(0);
    enum ha_op_result result;
    uint32_t          index;

    (void)state;
    log->head = log->post = log->tail = UINT32_MAX - 20;
    ha_log_lane_start(log, 0, GEN, 0);
    for (int round = 0; round < 100; round++) {
        uint32_t last = 0;

        for (int i = 0; i < 5; i++) {
            last = post(log, HA_OP_SEND, 1, 0);
        }
        ha_log_success(log, last, 0, GEN, 1);
        for (uint32_t i = 0; i < 5; i++) {
            assert_true(ha_log_retire(log, &index, &result));
            assert_int_equal(index, last - 4 + i);
        }
    }
    assert_int_equal(ha_log_taken(log, 0), 500);
    assert_int_equal(ha_log_room(log), CAPACITY);
}

/* A standby that was made just before, by the numbers that come round after 2^32 operations: a success on
 * it still ends everything before. */
static void test_standby_used_late(void **state)
{
    struct ha_resolution res;
    enum ha_op_result    result;
    uint32_t             index;

    (void)state;
    for (uint32_t ahead = 0; ahead <= 5; ahead++) {
        struct ha_log *log = fresh_log(0);

        log->head = log->post = log->tail = 100 + ahead;
        ha_log_lane_start(log, 1, GEN, 0); /* the standby */
        log->head = log->post = log->tail = 100;
        for (int i = 0; i < 5; i++) {
            (void)post(log, HA_OP_SEND, 1, 0);
        }
        assert_int_equal(resolve_psn(0, GEN, 0, &res), 0);
        assert_int_equal(res.replayed, 5);
        while (!ha_log_no_backlog(log)) {
            ha_log_post(log, 1, 1, 0);
        }
        assert_int_equal(ha_log_success(log, 104, 1, GEN, 1), 5);
        for (uint32_t i = 100; i < 105; i++) {
            assert_true(ha_log_retire(log, &index, &result));
            assert_int_equal(index, i);
        }
    }
}

static void test_window_is_never_exceeded(void **state)
{
    (void)state;
    for (uint32_t psn = 0; psn <= HA_PSN_MASK; psn++) {
        struct ha_log *log = fresh_log(psn);

        for (uint32_t n = 1; n < HA_PSN_WINDOW; n++) {
            assert_true(ha_log_psn_room(log, 0, HA_PSN_WINDOW - n));
            assert_false(ha_log_psn_room(log, 0, HA_PSN_WINDOW - n + 1));
            post(log, HA_OP_SEND, 1, 0);
        }
        assert_false(ha_log_psn_room(log, 0, 1));
        ha_log_success(log, 0, 0, GEN, 1);
        assert_true(ha_log_psn_room(log, 0, 1));
    }
}

static void test_reject_and_cancel(void **state)
{
    struct ha_resolution res;
    struct ha_log       *log = fresh_log(0);

    (void)state;
    for (int i = 0; i < 3; i++) {
        post(log, HA_OP_WRITE, 1, 0);
    }
    ha_log_append(log, HA_OP_WRITE, 0, 1);
    ha_log_reject(log, 1);
    ha_log_reject(log, 6); /* nothing there */
    assert_int_equal(resolve_psn(0, GEN, 1, &res), 0);
    expect_op(log, 0, HA_OP_DONE, HA_RESULT_PROVEN);
    expect_op(log, 1, HA_OP_DONE, HA_RESULT_REJECTED);
    expect_op(log, 2, HA_OP_WAIT, HA_RESULT_NONE);
    ha_log_reject(log, 0); /* it has ended */
    expect_op(log, 0, HA_OP_DONE, HA_RESULT_PROVEN);
    ha_log_cancel(log);
    expect_op(log, 1, HA_OP_DONE, HA_RESULT_REJECTED);
    expect_op(log, 2, HA_OP_DONE, HA_RESULT_CANCELED);
    expect_op(log, 3, HA_OP_DONE, HA_RESULT_CANCELED);
    assert_true(ha_log_no_backlog(log));
}

/* It is done when its lane is, whatever is proved, and is counted nowhere. */
static void test_tail(void **state)
{
    static const uint8_t kinds[] = {HA_PROOF_PSN, HA_PROOF_COUNT, HA_PROOF_LEDGER, HA_PROOF_NONE, HA_PROOF_EMPTY};

    (void)state;
    for (unsigned i = 0; i < sizeof(kinds); i++) {
        struct ha_resolution res;
        struct ha_log       *log = fresh_log(0);

        ha_log_append(log, HA_OP_TAIL, 0, 0);
        ha_log_post(log, 0, ha_log_npsn(ha_log_op(log, 0), kinds[i] == HA_PROOF_LEDGER ? 0 : MTU), 0);
        assert_int_equal(resolve(0, GEN, kinds[i], 0, 0, &res), 0);
        assert_int_equal(res.k + res.retired + res.replayed + res.unknown, 0);
        expect_op(log, 0, HA_OP_DONE, HA_RESULT_PROVEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packet_count),
        cmocka_unit_test(test_packet_numbers_wrap),
        cmocka_unit_test(test_atomics_are_one_packet),
        cmocka_unit_test(test_resolve_everything),
        cmocka_unit_test(test_proof_errors_have_names),
        cmocka_unit_test(test_empty_proof_replays_all),
        cmocka_unit_test(test_lane_that_never_sent),
        cmocka_unit_test(test_new_work_queues_behind_the_replay),
        cmocka_unit_test(test_success_counts_what_was_unsignaled),
        cmocka_unit_test(test_stale_success_is_ignored),
        cmocka_unit_test(test_ring_wraps),
        cmocka_unit_test(test_standby_used_late),
        cmocka_unit_test(test_window_is_never_exceeded),
        cmocka_unit_test(test_reject_and_cancel),
        cmocka_unit_test(test_tail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
