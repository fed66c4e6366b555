/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes wrong while requests are under way: each ends, each ending is told, nothing hangs. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#define REQUESTS 128

static const struct target_buffer buffer = {.length = SIZE};

static double seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static hte_batch_t submit_many(const struct fixture *f, int opcode, size_t length)
{
    struct hte_request requests[REQUESTS];
    hte_batch_t        batch;
    unsigned           i;

    for (i = 0; i < REQUESTS; ++i) {
        requests[i] = request(f, opcode, 0, 0, length);
    }
    OK(hte_batch_alloc(f->engine, REQUESTS, &batch));
    OK(hte_batch_submit(f->engine, batch, requests, REQUESTS));
    return batch;
}

/* Statuses of the requests add up to the batch's. */
static void check_sum(const struct fixture *f, hte_batch_t batch)
{
    struct hte_batch_status all;
    struct hte_status       one;
    uint64_t                transferred = 0;
    uint32_t                i;

    OK(hte_batch_status(f->engine, batch, &all));
    assert_int_equal(all.finished, all.submitted);
    for (i = 0; i < all.submitted; ++i) {
        OK(hte_request_status(f->engine, batch, i, &one));
        assert_in_range(one.code, HTE_INVALID, HTE_FAILED);
        assert_int_equal(one.code == HTE_COMPLETED, one.error == HTE_OK);
        transferred += one.transferred;
    }
    assert_int_equal(transferred, all.transferred);
}

/* UCX lets go of what a peer that stands still was sent: not over plain shared memory, see open_at() in hte_conn.c. */
static int lets_go(void)
{
    const char *tls = getenv("UCX_TLS");

    return tls == NULL || strstr(tls, "tcp") != NULL || strstr(tls, "ha_rc") != NULL || strstr(tls, "all") != NULL;
}

/* ---- the target dies ---- */

static void kill_in_the_middle(int opcode)
{
    struct hte_batch_status status;
    struct hte_request      again;
    struct fixture          f;
    hte_batch_t             batch;
    double                  begin;

    open_with(&f, NULL, 0, &buffer, 1);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    batch = submit_many(&f, opcode, SIZE);
    usleep(20000);
    target_kill(&f.target);
    begin = seconds();
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_FAILED);
    assert_true(status.error == HTE_ERR_DEAD_PEER || status.error == HTE_ERR_ENDPOINT);
    check_sum(&f, batch);
    OK(hte_batch_free(f.engine, batch));
    printf("ended %.2f s after the kill, %s\n", seconds() - begin, hte_error_string(status.error));

    again  = request(&f, opcode, 0, 0, 100); /* fails quickly now: the host says that nobody is there */
    status = transfer(&f, &again, 1);
    assert_int_equal(status.code, HTE_FAILED);
    assert_int_equal(status.error, HTE_ERR_DEAD_PEER);
    assert_int_not_equal(hte_segment_sync(f.engine, f.segment), HTE_OK);
    again = request(&f, opcode, 0, 2 * SIZE, 100); /* would have to ask the target */
    OK(hte_batch_alloc(f.engine, 1, &batch));
    assert_int_equal(hte_batch_submit(f.engine, batch, &again, 1), HTE_ERR_DEAD_PEER);
    OK(hte_batch_free(f.engine, batch));
    close_fixture(&f);
}

static void test_kill_during_write(void **state)
{
    (void)state;
    kill_in_the_middle(HTE_WRITE);
}

static void test_kill_during_read(void **state)
{
    (void)state;
    kill_in_the_middle(HTE_READ);
}

/* One dead peer does not harm the others. */
static void test_kill_one_of_two(void **state)
{
    struct hte_batch_status status;
    hte_segment_t           second;
    struct target           other;
    struct hte_request      r;
    struct fixture          f;
    hte_batch_t             batch;
    unsigned                i;

    (void)state;
    open_fixture(&f);
    target_start(&other, &buffer, 1);
    OK(hte_segment_open(f.engine, other.name, &second));
    batch = submit_many(&f, HTE_WRITE, SIZE);
    target_kill(&f.target);
    pattern_fill(f.memory, 0, M, 1);
    r = (struct hte_request){
        .opcode = HTE_WRITE, .target = second, .local = f.memory, .target_offset = other.addr[0], .length = M};
    for (i = 0; i < 20; ++i) {
        transfer_ok(&f, &r, 1);
    }
    assert_true(target_verify(&other, 0, 0, M, 1));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_FAILED);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&other);
    close_fixture(&f);
}

/* ---- the user changes his mind ---- */

static void test_unregister_in_flight(void **state)
{
    struct hte_batch_status status;
    struct fixture          f;
    hte_batch_t             batch;

    (void)state;
    open_fixture(&f);
    batch = submit_many(&f, HTE_WRITE, SIZE);
    assert_int_equal(hte_memory_unregister(f.engine, f.memory), HTE_ERR_MEMORY_BUSY);
    assert_int_equal(hte_batch_free(f.engine, batch), HTE_ERR_BATCH_BUSY);
    OK(hte_batch_cancel(f.engine, batch));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_CANCELED);
    check_sum(&f, batch);
    OK(hte_batch_free(f.engine, batch));
    OK(hte_memory_unregister(f.engine, f.memory));
    memset(f.memory, 1, SIZE);
    target_stop(&f.target);
    close_fixture(&f);
}

/* The target takes its buffer away under the requests: some may fail, all end. */
static void test_target_unregisters_in_flight(void **state)
{
    struct hte_batch_status status;
    struct hte_request      r;
    struct fixture          f;
    hte_batch_t             batch;

    (void)state;
    open_fixture(&f);
    batch = submit_many(&f, HTE_WRITE, SIZE / 8);
    target_unregister(&f.target, 0);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    check_sum(&f, batch);
    OK(hte_batch_free(f.engine, batch));
    OK(hte_segment_sync(f.engine, f.segment));
    r = request(&f, HTE_WRITE, 0, 0, 10);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    assert_int_equal(hte_batch_submit(f.engine, batch, &r, 1), HTE_ERR_RANGE);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_close_in_flight(void **state)
{
    struct hte_batch_status status;
    struct fixture          f;
    hte_batch_t             batch;
    size_t                  count = 1;
    unsigned                i;

    (void)state;
    open_fixture(&f);
    pattern_fill(f.memory, 0, M, 4);
    batch = submit_many(&f, HTE_WRITE, M);
    OK(hte_segment_close(f.engine, f.segment));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, HTE_COMPLETED);
    OK(hte_batch_free(f.engine, batch));
    assert_true(target_verify(&f.target, 0, 0, M, 4));
    for (i = 0; i < PATIENCE / 10 && count > 0; ++i) { /* the connections end soon */
        usleep(10000);
        OK(hte_links(f.engine, NULL, &count));
    }
    assert_int_equal(count, 0);
    target_stop(&f.target);
    close_fixture(&f);
}

static void *wait_in_thread(void *arg)
{
    struct fixture *f     = arg;
    hte_batch_t     batch = submit_many(f, HTE_WRITE, SIZE);

    return (void *)(intptr_t)hte_batch_wait(f->engine, batch, -1, NULL);
}

static void test_destroy_in_flight(void **state)
{
    struct fixture f;
    unsigned       i;

    (void)state;
    for (i = 0; i < 3; ++i) {
        open_fixture(&f);
        submit_many(&f, i % 2, SIZE);
        usleep(i * 3000);
        hte_destroy(f.engine);
        f.engine = NULL;
        target_stop(&f.target);
        free(f.memory);
    }
}

/* ---- the target stands still ---- */

/* Where a slice has 300 ms, which are short for a connection or a copy on a busy machine: some tries. */
static void transfer_in_time(const struct fixture *f, const struct hte_request *r)
{
    struct hte_batch_status status = {.code = HTE_TIMEOUT};
    unsigned                i;

    for (i = 0; i < 20 && status.code == HTE_TIMEOUT; ++i) {
        status = transfer(f, r, 1);
    }
    assert_int_equal(status.code, HTE_COMPLETED);
}

static void test_pause_and_timeout(void **state)
{
    static const struct hte_option options[] = {{"slice_timeout_ms", "300"}, {"shutdown_timeout_ms", "500"}};
    struct hte_batch_status        status;
    struct hte_request             r;
    struct fixture                 f;
    hte_batch_t                    batch;
    double                         begin;
    int                            error;

    (void)state;
    if (!lets_go()) {
        skip();
    }
    open_with(&f, options, 2, &buffer, 1);
    r = request(&f, HTE_READ, 0, 0, SIZE);
    transfer_in_time(&f, &r);
    target_pause(&f.target);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    begin = seconds();
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    error = hte_batch_wait(f.engine, batch, 1, &status);
    assert_true(error == HTE_ERR_TIMEOUT || (error == HTE_OK && seconds() - begin >= 0.3)); /* back late: all is over */
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    if (status.code != HTE_COMPLETED) { /* cma needs nobody at the other side */
        assert_int_equal(status.code, HTE_TIMEOUT);
        assert_int_equal(status.error, HTE_ERR_TIMEOUT);
    }
    OK(hte_batch_free(f.engine, batch));
    target_resume(&f.target);
    memset(f.memory, 0, SIZE); /* nobody writes to it any more */
    target_fill(&f.target, 0, 0, SIZE, 8);
    transfer_in_time(&f, &r);
    assert_true(pattern_verify(f.memory, 0, SIZE, 8));
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_destroy_while_paused(void **state)
{
    static const struct hte_option options[] = {{"shutdown_timeout_ms", "300"}};
    struct hte_request             r;
    struct fixture                 f;
    pthread_t                      thread;
    void                          *result;
    double                         begin;

    (void)state;
    open_with(&f, options, 1, &buffer, 1);
    r = request(&f, HTE_WRITE, 0, 0, SIZE);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &f), 0);
    usleep(100000);
    begin = seconds();
    hte_destroy(f.engine);
    assert_true(seconds() - begin < 5);
    pthread_join(thread, &result);
    assert_true((intptr_t)result == HTE_ERR_CANCELED || (intptr_t)result == HTE_OK);
    target_kill(&f.target); /* resumed, UCX 1.13 would abort it in the middle of what it was sent over tcp */
    free(f.memory);
}

/* The same name, another process: after a sync requests go there. */
static void test_two_targets_in_turn(void **state)
{
    struct hte_request r;
    struct fixture     f;
    unsigned           i;

    (void)state;
    open_fixture(&f);
    for (i = 0; i < 3; ++i) {
        r = request(&f, HTE_WRITE, 0, 0, M);
        pattern_fill(f.memory, 0, M, i);
        transfer_ok(&f, &r, 1);
        assert_true(target_verify(&f.target, 0, 0, M, i));
        OK(hte_segment_close(f.engine, f.segment));
        target_stop(&f.target);
        target_start(&f.target, &buffer, 1);
        OK(hte_segment_open(f.engine, f.target.name, &f.segment));
    }
    target_stop(&f.target);
    close_fixture(&f);
}

/* The same name, the same addresses, another process, and nobody syncs: what was under way to the old one fails, and
 * soon requests arrive at the new one. */
static void test_restarted_target(void **state)
{
    struct hte_batch_status status = {.code = HTE_FAILED};
    struct hte_request      r;
    struct fixture          f;
    unsigned                i;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    target_kill(&f.target);
    if (!target_start_again(&f.target, &buffer, 1)) {
        target_stop(&f.target);
        close_fixture(&f);
        skip();
    }
    pattern_fill(f.memory, 0, M, 7);
    for (i = 0; i < 5 && status.code != HTE_COMPLETED; ++i) {
        status = transfer(&f, &r, 1);
        assert_true(status.code == HTE_COMPLETED || status.error == HTE_ERR_DEAD_PEER ||
                    status.error == HTE_ERR_ENDPOINT);
    }
    assert_int_equal(status.code, HTE_COMPLETED);
    assert_true(target_verify(&f.target, 0, 0, M, 7));
    target_stop(&f.target);
    close_fixture(&f);
}

/* A WRITE that UCX has sent makes room for the next, before the target has it; four windows of them, and no more. */
static void test_window(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"window", "1"}};
    struct hte_request             requests[6];
    struct hte_batch_status        all;
    hte_batch_t                    batch;
    struct fixture                 f;
    uint64_t                       before;
    unsigned                       i;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    open_with(&f, options, 3, &(const struct target_buffer){.length = SIZE}, 1);
    for (i = 0; i < 6; ++i) {
        requests[i] = request(&f, HTE_WRITE, i * 128, i * 128, 100);
    }
    transfer_ok(&f, requests, 1);
    target_pause(&f.target);
    before = posts_of(&f);
    OK(hte_batch_alloc(f.engine, 6, &batch));
    OK(hte_batch_submit(f.engine, batch, requests, 6));
    for (i = 0; i < PATIENCE && posts_of(&f) - before < 4; ++i) {
        usleep(1000);
    }
    usleep(50000);
    assert_int_equal(posts_of(&f) - before, 4);
    target_resume(&f.target);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &all));
    assert_int_equal(all.code, HTE_COMPLETED);
    assert_int_equal(posts_of(&f) - before, 6);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f);
}

/* How often threads other than this one went to sleep. */
static long sleeps_of_others(void)
{
    struct rusage all, mine;

    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &mine);
    return all.ru_nvcsw - mine.ru_nvcsw;
}

/* A thread that could post nothing is not woken by what is submitted. */
static void test_full_window_sleeps(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"window", "1"}};
    struct hte_batch_status        all;
    struct hte_request             r;
    struct fixture                 f;
    hte_batch_t                    batch;
    long                           before;
    int                            i;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    open_with(&f, options, 3, &buffer, 1);
    r = request(&f, HTE_READ, 0, 0, 100);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    OK(hte_batch_alloc(f.engine, 1001, &batch));
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    usleep(100000); /* asleep */
    before = sleeps_of_others();
    for (i = 0; i < 1000; ++i) {
        OK(hte_batch_submit(f.engine, batch, &r, 1));
        usleep(100); /* time to wake, poll and fall asleep */
    }
    assert_in_range(sleeps_of_others() - before, 0, 500);
    target_resume(&f.target);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &all));
    assert_int_equal(all.code, HTE_COMPLETED);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_during_write),
        cmocka_unit_test(test_kill_during_read),
        cmocka_unit_test(test_kill_one_of_two),
        cmocka_unit_test(test_unregister_in_flight),
        cmocka_unit_test(test_target_unregisters_in_flight),
        cmocka_unit_test(test_close_in_flight),
        cmocka_unit_test(test_destroy_in_flight),
        cmocka_unit_test(test_pause_and_timeout),
        cmocka_unit_test(test_destroy_while_paused),
        cmocka_unit_test(test_two_targets_in_turn),
        cmocka_unit_test(test_restarted_target),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_full_window_sleeps),
    };

    target_main(argc, argv);
    setenv("HTE_SAME_HOST", "off", 1); /* as test_near.c tests */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
