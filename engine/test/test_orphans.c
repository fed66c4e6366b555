/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain shared memory: UCX does not notice that a peer is dead, and its requests never end. Ours do. */
#include <stdlib.h>

#include "fixture.h"

#define REQUESTS 128

static const struct target_buffer buffer = {.length = SIZE};

static void open_over_memory(struct fixture *f)
{
    static const struct hte_option options[] = {{"UCX_TLS", "posix,self"}};

    open_with(f, options, 1, &buffer, 1);
    OK(hte_segment_warm(f->engine, f->segment, PATIENCE));
}

/* The target stands still, so that they fill what it would have to empty. */
static hte_batch_t submit_to_a_statue(struct fixture *f, int opcode)
{
    struct hte_request      requests[REQUESTS];
    struct hte_batch_status status;
    hte_batch_t             batch;
    unsigned                i;

    target_pause(&f->target);
    for (i = 0; i < REQUESTS; ++i) {
        requests[i] = request(f, opcode, 0, 0, SIZE);
    }
    OK(hte_batch_alloc(f->engine, REQUESTS, &batch));
    OK(hte_batch_submit(f->engine, batch, requests, REQUESTS));
    /* a living peer is waited for */
    assert_int_equal(hte_batch_wait(f->engine, batch, 1500, &status), HTE_ERR_TIMEOUT);
    assert_int_equal(status.code, HTE_PENDING);
    return batch;
}

static void expect_dead_peer(const struct fixture *f, hte_batch_t batch)
{
    struct hte_batch_status status;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_FAILED);
    assert_int_equal(status.error, HTE_ERR_DEAD_PEER);
    assert_int_equal(status.finished, REQUESTS);
    OK(hte_batch_free(f->engine, batch));
}

static void kill_with_requests_out(int opcode)
{
    struct hte_batch_status status;
    struct hte_request      again;
    struct fixture          f;
    hte_batch_t             batch;

    open_over_memory(&f);
    batch = submit_to_a_statue(&f, opcode);
    target_kill(&f.target);
    expect_dead_peer(&f, batch);
    again  = request(&f, opcode, 0, 0, 100);
    status = transfer(&f, &again, 1);
    assert_int_equal(status.error, HTE_ERR_DEAD_PEER);
    OK(hte_memory_unregister(f.engine, f.memory));
    close_fixture(&f);
}

static void test_kill_writes(void **state)
{
    (void)state;
    kill_with_requests_out(HTE_WRITE);
}

static void test_kill_reads(void **state)
{
    (void)state;
    kill_with_requests_out(HTE_READ);
}

static void test_kill_of_a_closed_segment(void **state)
{
    struct fixture f;
    hte_batch_t    batch;

    (void)state;
    open_over_memory(&f);
    batch = submit_to_a_statue(&f, HTE_READ);
    OK(hte_segment_close(f.engine, f.segment));
    target_kill(&f.target);
    expect_dead_peer(&f, batch);
    close_fixture(&f);
}

/* Another process has its place before anybody looked whether there is nobody. */
static void test_replaced_at_once(void **state)
{
    struct fixture     f;
    hte_batch_t        batch;
    struct hte_request r;

    (void)state;
    open_over_memory(&f);
    batch = submit_to_a_statue(&f, HTE_READ);
    target_kill(&f.target);
    if (!target_start_again(&f.target, &buffer, 1)) {
        target_stop(&f.target);
        close_fixture(&f);
        skip();
    }
    expect_dead_peer(&f, batch);
    OK(hte_segment_sync(f.engine, f.segment));
    r = request(&f, HTE_WRITE, 0, 0, M);
    pattern_fill(f.memory, 0, M, 7);
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 7));
    target_stop(&f.target);
    close_fixture(&f);
}

/* Each dead peer leaves requests with UCX: the engine has room for the next one all the same. */
static void test_one_after_the_other(void **state)
{
    struct fixture f;
    hte_batch_t    batch;
    unsigned       i;

    (void)state;
    open_over_memory(&f);
    for (i = 0; i < 5; ++i) {
        batch = submit_to_a_statue(&f, (int)(i % 2));
        target_kill(&f.target);
        expect_dead_peer(&f, batch);
        OK(hte_segment_close(f.engine, f.segment));
        target_start(&f.target, &buffer, 1);
        OK(hte_segment_open(f.engine, f.target.name, &f.segment));
    }
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_writes),
        cmocka_unit_test(test_kill_reads),
        cmocka_unit_test(test_kill_of_a_closed_segment),
        cmocka_unit_test(test_replaced_at_once),
        cmocka_unit_test(test_one_after_the_other),
    };

    target_main(argc, argv);
    setenv("HTE_SAME_HOST", "off", 1); /* it is about what UCX does not give back */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
