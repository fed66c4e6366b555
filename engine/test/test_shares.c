/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that take nothing any more keep their share of a thread's slices; the others go on. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/core/hte_share.h"
#include "fixture.h"

#define REQUESTS 64
#define HUNG_MAX 6
#define SOON     15000 /* ms, for a target that is well; slice_timeout_ms is 30000 */

static const struct target_buffer buffer = {.length = SIZE};

/* One alone gets all of it; whatever those before him keep, the next one gets something; and the pool lasts. */
static void test_share(void **state)
{
    uint64_t alone, user, all, mine, before, share;

    (void)state;
    for (alone = 1; alone < 300; alone += alone < 20 ? 1 : 37) {
        all    = 0;
        before = alone;
        for (user = 0; user < 20; ++user, all += mine) {
            for (mine = 0; (share = hte_share(alone, all + mine, mine)) > 0; mine += share) {
                assert_true(share <= alone - mine);
                assert_true(mine == 0 || all + mine + share <= 2 * alone);
            }
            assert_true(mine >= 1 && mine <= before);
            assert_true(user > 0 || mine == alone);
            before = mine;
        }
        assert_true(all < 2 * alone + 20);
    }
}

struct targets {
    struct fixture f;                  /* its target hangs, */
    struct target  hung[HUNG_MAX - 1]; /* and these, */
    struct target  well;               /* and this one does not */
    hte_segment_t  segments[HUNG_MAX], second;
    unsigned       n_hung;
};

static void open_all(struct targets *t, const char *threads, const char *window, unsigned n_hung)
{
    const struct hte_option options[] = {
        {"UCX_TLS", "tcp,self"}, {"threads", threads}, {"window", window}, {"slice_timeout_ms", "30000"}};
    unsigned i;

    t->n_hung = n_hung;
    open_with(&t->f, options, 4, &buffer, 1);
    t->segments[0] = t->f.segment;
    for (i = 1; i < n_hung; ++i) {
        target_start(&t->hung[i - 1], &buffer, 1);
        OK(hte_segment_open(t->f.engine, t->hung[i - 1].name, &t->segments[i]));
    }
    target_start(&t->well, &buffer, 1);
    OK(hte_segment_open(t->f.engine, t->well.name, &t->second));
    pattern_fill(t->f.memory, 0, SIZE, 1);
    for (i = 0; i < n_hung; ++i) {
        OK(hte_segment_warm(t->f.engine, t->segments[i], PATIENCE));
    }
    target_pause(&t->f.target);
    for (i = 1; i < n_hung; ++i) {
        target_pause(&t->hung[i - 1]);
    }
}

static void close_all(struct targets *t)
{
    unsigned i;

    target_stop(&t->f.target);
    for (i = 1; i < t->n_hung; ++i) {
        target_stop(&t->hung[i - 1]);
    }
    target_stop(&t->well);
    close_fixture(&t->f);
}

/* More than any window, for each of those that hang, one after the other; each time the whole buffer. */
static void fill_with(struct targets *t, int opcode, struct hte_request *requests)
{
    unsigned i, k;

    for (i = 0; i < t->n_hung; ++i) {
        for (k = 0; k < REQUESTS; ++k) {
            requests[i * REQUESTS + k] = (struct hte_request){
                .opcode        = opcode,
                .target        = t->segments[i],
                .local         = t->f.memory,
                .length        = SIZE,
                .target_offset = (i == 0 ? &t->f.target : &t->hung[i - 1])->addr[0]};
        }
    }
}

static struct hte_request to_well(const struct targets *t, int opcode, size_t length)
{
    return (struct hte_request){.opcode        = opcode,
                                .target        = t->second,
                                .local         = t->f.memory,
                                .length        = length,
                                .target_offset = t->well.addr[0]};
}

static void transfer_soon(struct targets *t, int opcode, size_t length)
{
    struct hte_request      r = to_well(t, opcode, length);
    struct hte_batch_status status;
    hte_batch_t             batch;

    OK(hte_batch_alloc(t->f.engine, 1, &batch));
    OK(hte_batch_submit(t->f.engine, batch, &r, 1));
    OK(hte_batch_wait(t->f.engine, batch, SOON, &status));
    assert_int_equal(status.code, HTE_COMPLETED);
    OK(hte_batch_free(t->f.engine, batch));
}

static double seconds(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Less than a flush is due for by number; and the thread, asleep with what hangs, is woken, and does not just look now
 * and then. */
static void check_promptness(struct targets *t)
{
    unsigned i, prompt = 0;
    double   begin;

    for (i = 0; i < 20; ++i) {
        usleep(20000); /* asleep */
        begin = seconds(CLOCK_MONOTONIC);
        transfer_soon(t, HTE_WRITE, K);
        prompt += seconds(CLOCK_MONOTONIC) - begin < 0.02;
    }
    assert_in_range(prompt, 10, 20);
}

/* Threads that can do nothing do nothing, though the queue is not empty. */
static void check_idleness(void)
{
    double begin = seconds(CLOCK_PROCESS_CPUTIME_ID);

    usleep(300000);
    assert_true(seconds(CLOCK_PROCESS_CPUTIME_ID) - begin < 0.1);
}

static void wait_all(struct targets *t, hte_batch_t batch)
{
    struct hte_batch_status status;

    OK(hte_batch_wait(t->f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_COMPLETED);
    assert_int_equal(status.finished, t->n_hung * REQUESTS);
    assert_int_equal(status.transferred, t->n_hung * REQUESTS * SIZE);
    OK(hte_batch_free(t->f.engine, batch));
}

static void go_on(int opcode, const char *threads, const char *window, unsigned n_hung, size_t length)
{
    struct hte_request requests[HUNG_MAX * REQUESTS];
    hte_batch_t        batch;
    struct targets     t;
    unsigned           i;

    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    open_all(&t, threads, window, n_hung);
    fill_with(&t, opcode, requests);
    OK(hte_batch_alloc(t.f.engine, n_hung * REQUESTS, &batch));
    OK(hte_batch_submit(t.f.engine, batch, requests, n_hung * REQUESTS));
    for (i = 0; i < 10; ++i) {
        transfer_soon(&t, HTE_WRITE, length);
        transfer_soon(&t, HTE_READ, length);
    }
    check_promptness(&t);
    check_idleness();
    assert_true(target_verify(&t.well, 0, 0, length, 1));
    target_resume(&t.f.target);
    for (i = 1; i < n_hung; ++i) {
        target_resume(&t.hung[i - 1]);
    }
    wait_all(&t, batch);
    if (opcode == HTE_WRITE) {
        assert_true(target_verify(&t.f.target, 0, 0, SIZE, 1));
    }
    close_all(&t);
}

static void test_write(void **state)
{
    (void)state;
    go_on(HTE_WRITE, "1", "128", 1, SIZE);
}

static void test_read(void **state)
{
    (void)state;
    go_on(HTE_READ, "1", "128", 1, SIZE);
}

/* The pool is used up: each target has the slice that nobody can take from it. */
static void test_smallest_window(void **state)
{
    (void)state;
    go_on(HTE_WRITE, "1", "1", 3, 256 * K);
    go_on(HTE_READ, "1", "1", 3, 256 * K);
}

/* Threads that sleep with nothing but what hangs are woken for the one that is well. */
static void test_threads(void **state)
{
    (void)state;
    go_on(HTE_WRITE, "3", "16", 2, SIZE);
    go_on(HTE_READ, "3", "16", 2, SIZE);
}

/* What is posted to a target that hangs is given up later than what waits. */
static void cancel_beside(unsigned n_hung)
{
    struct hte_request      requests[HUNG_MAX * REQUESTS];
    struct hte_batch_status status;
    hte_batch_t             batch;
    struct targets          t;
    unsigned                i, all = n_hung * REQUESTS;

    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    open_all(&t, "1", "16", n_hung);
    fill_with(&t, HTE_WRITE, requests);
    OK(hte_batch_alloc(t.f.engine, all, &batch));
    OK(hte_batch_submit(t.f.engine, batch, requests, all));
    transfer_soon(&t, HTE_WRITE, M);
    OK(hte_batch_cancel(t.f.engine, batch));
    transfer_soon(&t, HTE_READ, M);
    OK(hte_batch_status(t.f.engine, batch, &status));
    assert_true(status.finished >= all - 5 * n_hung && status.finished < all);
    target_resume(&t.f.target);
    for (i = 1; i < n_hung; ++i) {
        target_resume(&t.hung[i - 1]);
    }
    OK(hte_batch_wait(t.f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_CANCELED);
    OK(hte_batch_free(t.f.engine, batch));
    transfer_soon(&t, HTE_WRITE, M);
    close_all(&t);
}

/* Pieces that wait for room of their target are found and end. */
static void test_cancel(void **state)
{
    (void)state;
    cancel_beside(2);
}

/* The next one gets a single slice, which is less than a flush is due for by number. */
static void test_many_hang(void **state)
{
    (void)state;
    cancel_beside(6);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share),           cmocka_unit_test(test_write),   cmocka_unit_test(test_read),
        cmocka_unit_test(test_smallest_window), cmocka_unit_test(test_threads), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_many_hang),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
