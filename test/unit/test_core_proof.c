/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a proof by count or by ledger decides, and a count without any proof, against a model that knows what
 * happened: every list of four operations, every point where a lane can stop,
 * and false words. Packet numbers of 4 bits, so that the ledger wraps.
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

static struct ha_log *fresh_log(uint32_t number)
{
    ha_log_init(&the_log, ops, CAPACITY);
    ha_log_lane_start(&the_log, 0, GEN, number);
    return &the_log;
}

static int resolve(int slot, uint32_t gen, enum ha_proof kind, uint32_t word, uint32_t received,
                   struct ha_resolution *res)
{
    struct ha_evidence peer = {.kind = (uint8_t)kind, .word = word, .received = received};

    return ha_log_resolve(&the_log, slot, gen, &peer, res);
}

static void expect_op(const struct ha_log *log, uint32_t index, enum ha_op_state state, enum ha_op_result result)
{
    assert_int_equal(ha_log_op(log, index)->state, state);
    assert_int_equal(ha_log_op(log, index)->result, result);
}

enum { PLAN_WRITE_COUNTED = HA_OP_FETCH + 1, PLAN_KINDS };

/* What happened on a lane: `ran` operations were executed, and of the next one
 * that has a mark, everything but the mark. */
struct truth {
    unsigned count, kind[4];
    unsigned acked, ran;
    int      mark_missing; /* the last one that ran has not left its mark */
};

static int consumes(unsigned kind)
{
    return kind == HA_OP_SEND || kind == PLAN_WRITE_COUNTED;
}

static int marked(unsigned kind)
{
    return kind != HA_OP_READ && !consumes(kind);
}

static struct ha_evidence evidence_of(const struct truth *t, enum ha_proof kind, uint32_t start)
{
    struct ha_evidence e = {.kind = (uint8_t)kind, .word = start};

    for (unsigned i = 0; i < t->ran; i++) {
        e.received += (uint32_t)consumes(t->kind[i]);
        if (marked(t->kind[i]) && !(t->mark_missing && i + 1 == t->ran)) {
            e.word = ha_psn_add(e.word, 1);
        }
    }
    return e;
}

static void post_truth(const struct truth *t, enum ha_proof kind, uint32_t start)
{
    struct ha_log *log = fresh_log(start);

    for (unsigned i = 0; i < t->count; i++) {
        int counted = t->kind[i] == PLAN_WRITE_COUNTED;

        ha_log_append(log, counted ? HA_OP_WRITE : (enum ha_op_kind)t->kind[i], counted ? HA_OP_FLAG_RECEIVE : 0,
                      3 * MTU);
        assert_int_equal(ha_log_next_wait(log), i);
        ha_log_post(log, 0, ha_log_npsn(ha_log_op(log, i), kind == HA_PROOF_LEDGER ? 0 : MTU), 0);
    }
    if (t->acked > 0) {
        ha_log_success(log, t->acked - 1, 0, GEN, 1);
    }
}

/* No operation that ran may run again, none that did not may succeed; what is
 * in doubt is told as such, and by ledger it is one at most. */
static void expect_true_end(const struct truth *t, enum ha_proof kind, const struct ha_resolution *res)
{
    unsigned unknown = 0, k = 0;

    for (unsigned i = 0; i < t->count; i++) {
        const struct ha_op *op = ha_log_op(&the_log, i);

        k += i < t->ran && consumes(t->kind[i]);
        if (i < t->acked) {
            expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_OK);
        } else if (t->kind[i] == HA_OP_READ) {
            expect_op(&the_log, i, HA_OP_WAIT, HA_RESULT_NONE);
        } else if (op->state == HA_OP_WAIT) {
            assert_true(i >= t->ran);
        } else if (op->result == HA_RESULT_PROVEN) {
            assert_true(i < t->ran && t->kind[i] != HA_OP_FETCH);
        } else {
            assert_int_equal(op->result, HA_RESULT_UNKNOWN);
            assert_false(consumes(t->kind[i])); /* a count has no doubt about these */
            unknown += !(t->kind[i] == HA_OP_FETCH && i < t->ran);
        }
    }
    assert_int_equal(res->k, k);
    assert_true(kind != HA_PROOF_LEDGER || unknown <= 1);
}

/* Every other pair of words is refused, or at least promises no less. */
static void try_lies(const struct truth *t, enum ha_proof kind, uint32_t start, const struct ha_evidence *told)
{
    uint32_t             marks = ha_psn_distance(start, told->word);
    struct ha_resolution res;

    for (uint32_t lie = 0; lie <= HA_PSN_MASK; lie++) {
        uint32_t acked_marks = 0, all_marks = 0, acked = 0, all = 0;

        for (unsigned i = 0; i < t->count; i++) {
            acked_marks += i < t->acked && marked(t->kind[i]);
            all_marks += (uint32_t)marked(t->kind[i]);
            acked += i < t->acked && consumes(t->kind[i]);
            all += (uint32_t)consumes(t->kind[i]);
        }
        post_truth(t, kind, start);
        if (lie < acked || lie > all) {
            assert_int_equal(resolve(0, GEN, kind, told->word, lie, &res),
                             lie < acked ? HA_EPROOF_ACKED : HA_EPROOF_WINDOW);
            assert_int_equal(ha_log_op(&the_log, t->acked)->state, t->acked < t->count ? HA_OP_POSTED : HA_OP_FREE);
        }
        if (kind == HA_PROOF_LEDGER && (lie < acked_marks || lie > all_marks) && lie != marks) {
            assert_true(resolve(0, GEN, kind, ha_psn_add(start, lie), told->received, &res) < 0);
        }
    }
}

static void check_truth(struct truth *t, enum ha_proof kind, uint32_t start)
{
    for (t->acked = 0; t->acked <= t->count; t->acked++) {
        for (t->ran = t->acked; t->ran <= t->count; t->ran++) {
            for (t->mark_missing = 0; t->mark_missing <= (t->ran > t->acked); t->mark_missing++) {
                struct ha_evidence   peer = evidence_of(t, kind, start);
                struct ha_resolution res;

                post_truth(t, kind, start);
                assert_int_equal(ha_log_resolve(&the_log, 0, GEN, &peer, &res), 0);
                expect_true_end(t, kind, &res);
                try_lies(t, kind, start, &peer);
            }
        }
    }
}

static void check_all_truths(enum ha_proof kind, uint32_t start)
{
    struct truth t = {.count = 4};

    for (unsigned kinds = 0; kinds < PLAN_KINDS * PLAN_KINDS * PLAN_KINDS * PLAN_KINDS; kinds++) {
        unsigned left = kinds;

        for (int i = 0; i < 4; i++, left /= PLAN_KINDS) {
            t.kind[i] = left % PLAN_KINDS;
        }
        check_truth(&t, kind, start);
    }
}

static void test_resolve_by_count(void **state)
{
    (void)state;
    check_all_truths(HA_PROOF_COUNT, 14);
}

static void test_resolve_by_ledger(void **state)
{
    (void)state;
    check_all_truths(HA_PROOF_LEDGER, 14); /* the marks wrap */
    check_all_truths(HA_PROOF_LEDGER, 3);
}

/* ---- without a proof ---- */

/* How many of the first `n` operations consume a receive. */
static uint32_t consumed(const struct truth *t, unsigned n)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < n; i++) {
        sum += (uint32_t)consumes(t->kind[i]);
    }
    return sum;
}

/* The receiver has declared that it took `c`, whatever its card did: messages are told from
 * each other by that; of the others, those before the last one counted ran. */
static void expect_declared_end(const struct truth *t, uint32_t c, const struct ha_resolution *res)
{
    for (unsigned i = 0; i < t->count; i++) {
        unsigned kind   = t->kind[i];
        int      before = consumes(kind) ? consumed(t, i + 1) <= c : consumed(t, i) < c;

        if (i < t->acked) {
            expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_OK);
        } else if (kind == HA_OP_READ || (kind == HA_OP_SEND && !before)) {
            expect_op(&the_log, i, HA_OP_WAIT, HA_RESULT_NONE);
        } else if (before && kind != HA_OP_FETCH) {
            expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_PROVEN);
        } else {
            expect_op(&the_log, i, HA_OP_DONE, HA_RESULT_UNKNOWN);
        }
    }
    assert_int_equal(res->k, c);
}

static void check_declared(struct truth *t)
{
    for (t->acked = 0; t->acked <= t->count; t->acked++) {
        for (uint32_t c = 0; c <= consumed(t, t->count) + 1; c++) {
            struct ha_resolution res;
            int                  rc;

            post_truth(t, HA_PROOF_PSN, 14);
            rc = resolve(0, GEN, HA_PROOF_NONE, 0, c, &res);
            if (c < consumed(t, t->acked)) {
                assert_int_equal(rc, HA_EPROOF_ACKED);
            } else if (c > consumed(t, t->count)) {
                assert_int_equal(rc, HA_EPROOF_WINDOW);
            } else {
                expect_declared_end(t, c, &res);
            }
        }
    }
}

static void test_resolve_without_proof(void **state)
{
    struct truth t = {.count = 4};

    (void)state;
    for (unsigned kinds = 0; kinds < PLAN_KINDS * PLAN_KINDS * PLAN_KINDS * PLAN_KINDS; kinds++) {
        unsigned left = kinds;

        for (int i = 0; i < 4; i++, left /= PLAN_KINDS) {
            t.kind[i] = left % PLAN_KINDS;
        }
        check_declared(&t);
    }
}

/* What consumes a receive is never in doubt, so a lane of nothing else is
 * exact: replayed or ended, and no error. */
static void test_count_has_no_doubt(void **state)
{
    struct ha_resolution res;
    struct truth         t = {.count = 4, .kind = {PLAN_WRITE_COUNTED, HA_OP_SEND, PLAN_WRITE_COUNTED, HA_OP_READ}};

    (void)state;
    for (uint32_t received = 0; received <= 3; received++) {
        post_truth(&t, HA_PROOF_COUNT, 5);
        assert_int_equal(resolve(0, GEN, HA_PROOF_COUNT, 0, received, &res), 0);
        assert_int_equal(res.k, received);
        assert_int_equal(res.retired, received);
        assert_int_equal(res.replayed, 4 - received);
        assert_int_equal(res.unknown, 0);
    }
}

/* A mark behind a message that was never received: one of them is not true. */
static void test_ledger_contradicts_count(void **state)
{
    struct ha_resolution res;
    struct truth         t = {.count = 2, .kind = {HA_OP_SEND, HA_OP_WRITE}};

    (void)state;
    post_truth(&t, HA_PROOF_LEDGER, 0);
    assert_int_equal(resolve(0, GEN, HA_PROOF_LEDGER, 1, 0, &res), HA_EPROOF_ORDER);
    expect_op(&the_log, 0, HA_OP_POSTED, HA_RESULT_NONE);
    assert_int_equal(resolve(0, GEN, HA_PROOF_LEDGER, 1, 1, &res), 0);
    assert_int_equal(res.retired, 2);
}

/* The count goes on where the successes ended, also past 2^32. */
static void test_count_wraps(void **state)
{
    struct ha_resolution res;
    struct truth         t = {.count = 3, .acked = 1, .kind = {HA_OP_SEND, HA_OP_SEND, HA_OP_SEND}};

    (void)state;
    post_truth(&t, HA_PROOF_COUNT, 0);
    the_log.lane[0].takes = UINT32_MAX + 2u; /* of which two are under way */
    assert_int_equal(resolve(0, GEN, HA_PROOF_COUNT, 0, 2, &res), HA_EPROOF_WINDOW);
    assert_int_equal(resolve(0, GEN, HA_PROOF_COUNT, 0, UINT32_MAX - 1, &res), HA_EPROOF_ACKED);
    assert_int_equal(resolve(0, GEN, HA_PROOF_COUNT, 0, 0, &res), 0);
    assert_int_equal(res.retired, 1);
    assert_int_equal(res.k, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resolve_by_count),         cmocka_unit_test(test_resolve_by_ledger),
        cmocka_unit_test(test_resolve_without_proof),    cmocka_unit_test(test_count_has_no_doubt),
        cmocka_unit_test(test_ledger_contradicts_count), cmocka_unit_test(test_count_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
