/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Fences of the operation log: every list of operations, every order of posting, success, retirement and
 * resolve, against the plain rule: a fenced operation is held while one before it that fetches is on its way.
 */
#define HA_PSN_BITS 4
#include "core/ha_log.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CAPACITY 8

struct world {
    struct ha_log log;
    struct ha_op  ops[CAPACITY];
    int           slot, cuts, max_cuts;
};

static unsigned long held, posted, looked;

/* What ha_log_is_held() says in one comparison. One that has its data may count until it is retired. */
static void check_held(const struct ha_log *log)
{
    int fenced = ha_log_op(log, log->post)->flags & HA_OP_FLAG_FENCE, waits = 0, done = 0;

    for (uint32_t i = log->head; i != log->post; i++) {
        const struct ha_op *op      = ha_log_op(log, i);
        int                 fetches = op->kind == HA_OP_READ || op->kind == HA_OP_FETCH;

        waits |= fetches && op->state == HA_OP_POSTED;
        done |= fetches && op->state == HA_OP_DONE;
    }
    if (waits || !done) {
        assert_int_equal(ha_log_is_held(log), fenced && waits);
    }
    held += (unsigned long)(fenced && waits);
}

static struct ha_log *copy_of(struct world *to, const struct world *from)
{
    *to         = *from;
    to->log.ops = to->ops;
    return &to->log;
}

static void retire(struct ha_log *log)
{
    enum ha_op_result result;
    uint32_t          index;

    while (ha_log_retire(log, &index, &result)) {
    }
}

static void go_on(const struct world *w);

static void cut(const struct world *w, uint32_t executed)
{
    struct world         next;
    struct ha_resolution res;
    struct ha_log       *log  = copy_of(&next, w);
    const uint32_t       una  = log->acks[w->slot].una;
    struct ha_evidence   peer = {.kind = HA_PROOF_PSN, .word = ha_psn_add(una, executed)};

    assert_int_equal(ha_log_resolve(log, w->slot, log->lane[w->slot].gen, &peer, &res), 0);
    next.slot = !w->slot;
    next.cuts++;
    ha_log_lane_start(log, next.slot, (uint32_t)next.cuts + 1, 14);
    go_on(&next);
    retire(log);
    go_on(&next);
}

static void go_on(const struct world *w)
{
    struct world   next;
    struct ha_log *log;

    looked++;
    log = copy_of(&next, w);
    if (ha_log_next_wait(log) != log->tail) {
        check_held(log);
        if (!ha_log_is_held(log)) {
            posted += (ha_log_op(log, log->post)->flags & HA_OP_FLAG_FENCE) != 0;
            ha_log_post(log, next.slot, 1, 0);
            go_on(&next);
        }
    }
    for (uint32_t i = w->log.head; i != w->log.tail; i++) {
        log = copy_of(&next, w);
        if (ha_log_success(log, i, next.slot, log->lane[next.slot].gen, 1) > 0) {
            go_on(&next);
            retire(log);
            go_on(&next);
        }
    }
    log = copy_of(&next, w);
    for (uint32_t n = 0; w->cuts < w->max_cuts && n <= ha_log_ahead(log, w->slot); n++) {
        cut(w, n);
    }
}

/* Digits of `list`: 0 write, 1 read, 2 fetching atomic, and 3 more with a fence. */
static void every_list(unsigned num_ops, unsigned lists, int cuts)
{
    static const enum ha_op_kind kinds[] = {HA_OP_WRITE, HA_OP_READ, HA_OP_FETCH};

    for (unsigned list = 0; list < lists; list++) {
        struct world w = {.slot = 0, .max_cuts = cuts};

        ha_log_init(&w.log, w.ops, CAPACITY);
        w.log.head = w.log.post = w.log.tail = list % 2 ? UINT32_MAX - 1 : 0; /* indices run freely */
        w.log.read                           = w.log.head - 3;
        ha_log_lane_start(&w.log, 0, 1, 13);
        for (unsigned i = 0, rest = list; i < num_ops; i++, rest /= 6) {
            ha_log_append(&w.log, kinds[rest % 3], rest % 6 >= 3 ? HA_OP_FLAG_FENCE : 0, 8);
        }
        go_on(&w);
    }
}

static void test_every_list(void **state)
{
    (void)state;
    every_list(4, 6 * 6 * 6 * 6, 1);
    every_list(3, 6 * 6 * 6, 2);
    print_message("%lu states, %lu fenced operations held, %lu posted\n", looked, held, posted);
    assert_true(held > 1000 && posted > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
