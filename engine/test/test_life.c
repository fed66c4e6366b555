/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends that meet something still running: a batch freed under its callback, an engine destroyed under calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

/* ---- a batch and its callback ---- */

struct slow {
    _Atomic int began, ended;
};

static void call_slowly(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    struct slow *slow = arg;

    (void)engine;
    (void)batch;
    atomic_store(&slow->began, 1);
    usleep(200000);
    atomic_store(&slow->ended, 1);
}

/* A batch whose requests are final, and whose callback runs. */
static hte_batch_t batch_in_callback(const struct fixture *f, struct slow *slow, int fd)
{
    struct hte_request      r = request(f, HTE_WRITE, 0, 0, 100);
    struct hte_batch_status status;
    hte_batch_t             batch;

    *slow = (struct slow){0};
    OK(hte_batch_alloc(f->engine, 1, &batch));
    OK(hte_batch_set_callback(f->engine, batch, call_slowly, slow));
    OK(hte_batch_set_eventfd(f->engine, batch, fd));
    OK(hte_batch_submit(f->engine, batch, &r, 1));
    while (!atomic_load(&slow->began)) {
        usleep(100);
    }
    OK(hte_batch_status(f->engine, batch, &status));
    assert_int_equal(status.code, HTE_COMPLETED);
    return batch;
}

static void test_wait_outlasts_callback(void **state)
{
    struct slow    slow;
    struct fixture f;
    hte_batch_t    batch;

    (void)state;
    open_fixture(&f);
    batch = batch_in_callback(&f, &slow, -1);
    assert_int_equal(hte_batch_wait(f.engine, batch, 1, NULL), HTE_ERR_TIMEOUT);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    assert_int_equal(atomic_load(&slow.ended), 1);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_free_outlasts_callback(void **state)
{
    int            fd = eventfd(0, EFD_CLOEXEC);
    uint64_t       events;
    struct slow    slow;
    struct fixture f;

    (void)state;
    open_fixture(&f);
    OK(hte_batch_free(f.engine, batch_in_callback(&f, &slow, fd)));
    assert_int_equal(atomic_load(&slow.ended), 1);
    assert_int_equal(read(fd, &events, sizeof(events)), sizeof(events));
    close(fd);
    target_stop(&f.target);
    close_fixture(&f);
}

struct hasty {
    int         fd;
    _Atomic int is_done;
};

/* Frees the batch, closes its eventfd, and gives its number to another one. */
static void call_hastily(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    struct hasty *hasty = arg;
    int           fd    = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    OK(hte_batch_free(engine, batch));
    assert_int_equal(dup2(fd, hasty->fd), hasty->fd);
    close(fd);
    atomic_store(&hasty->is_done, 1);
}

static void test_eventfd_of_another(void **state)
{
    struct hasty       hasty    = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int                original = dup(hasty.fd);
    struct hte_request r;
    struct fixture     f;
    hte_batch_t        batch;
    uint64_t           events;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    OK(hte_batch_set_callback(f.engine, batch, call_hastily, &hasty));
    OK(hte_batch_set_eventfd(f.engine, batch, hasty.fd));
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    while (!atomic_load(&hasty.is_done)) {
        usleep(1000);
    }
    target_stop(&f.target);
    close_fixture(&f);                                             /* joins the thread that calls back */
    assert_int_equal(read(hasty.fd, &events, sizeof(events)), -1); /* nobody wrote to what has its number now */
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(read(original, &events, sizeof(events)), sizeof(events));
    assert_int_equal(events, 1);
    close(original);
    close(hasty.fd);
}

static void test_bad_eventfd(void **state)
{
    struct hte_engine *engine;
    hte_batch_t        batch;

    (void)state;
    create(&engine, NULL, 0);
    OK(hte_batch_alloc(engine, 1, &batch));
    assert_int_equal(hte_batch_set_eventfd(engine, batch, 999999), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_batch_set_eventfd(engine, batch, -2), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_set_eventfd(engine, batch, -1));
    OK(hte_batch_free(engine, batch));
    hte_destroy(engine);
}

/* ---- an engine and calls of other threads ---- */

struct call {
    struct fixture *f;
    int (*make)(struct fixture *f);
    _Atomic int error; /* 1: not back yet */
};

static char silent_name[64]; /* of somebody who accepts connections and says nothing */

static int call_open(struct fixture *f)
{
    hte_segment_t segment;

    return hte_segment_open(f->engine, silent_name, &segment);
}

static int call_sync(struct fixture *f)
{
    return hte_segment_sync(f->engine, HTE_SEGMENT_NONE);
}

static int call_send(struct fixture *f)
{
    return hte_notify_send(f->engine, f->segment, "name", "text");
}

static int call_warm(struct fixture *f)
{
    return hte_segment_warm(f->engine, f->segment, -1);
}

static int submit_one(struct fixture *f, struct hte_request r, hte_batch_t *batch)
{
    int error = hte_batch_alloc(f->engine, 1, batch);

    return error == HTE_OK ? hte_batch_submit(f->engine, *batch, &r, 1) : error;
}

static int call_submit(struct fixture *f)
{
    hte_batch_t batch;

    return submit_one(f, request(f, HTE_WRITE, 0, 2 * SIZE, 10), &batch); /* has to ask the target */
}

static int call_wait(struct fixture *f)
{
    hte_batch_t batch;
    int         error = submit_one(f, request(f, HTE_READ, 0, 0, SIZE), &batch);

    return error == HTE_OK ? hte_batch_wait(f->engine, batch, -1, NULL) : error;
}

/* Short ones, as many as go in. */
static int call_looks(struct fixture *f)
{
    struct hte_counters counters = {.size = sizeof(counters)};
    size_t              count    = 0;
    int                 error;

    do {
        error = hte_counters(f->engine, &counters);
        error = error == HTE_OK ? hte_links(f->engine, NULL, &count) : error;
    } while (error == HTE_OK);
    return error;
}

static void *make_call(void *arg)
{
    struct call *call = arg;

    call->error = call->make(call->f);
    return NULL;
}

/* Listens and never answers. */
static int be_silent(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          length  = sizeof(address);
    int                fd      = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(silent_name, sizeof(silent_name), "127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

/* No call is inside the library when hte_destroy() has returned. */
static void test_destroy_under_calls(void **state)
{
    static const struct hte_option    options[] = {{"shutdown_timeout_ms", "100"}, {"handshake_timeout_ms", "1000"}};
    static const struct target_buffer buffer    = {.length = SIZE};
    struct call calls[] = {{.make = call_open},   {.make = call_sync}, {.make = call_send}, {.make = call_warm},
                           {.make = call_submit}, {.make = call_wait}, {.make = call_looks}};
    enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
    pthread_t      threads[CALLS];
    struct fixture f;
    int            i, silent;

    (void)state;
    silent = be_silent();
    open_with(&f, options, 2, &buffer, 1);
    target_pause(&f.target);
    for (i = 0; i < CALLS; ++i) {
        calls[i].f     = &f;
        calls[i].error = 1;
        assert_int_equal(pthread_create(&threads[i], NULL, make_call, &calls[i]), 0);
    }
    usleep(100000);
    hte_destroy(f.engine);
    usleep(100000); /* from the library's last step to ours */
    for (i = 0; i < CALLS; ++i) {
        assert_true(calls[i].error <= HTE_OK);
    }
    /* on one host one that stands is reached all the same */
    assert_true(calls[3].error == HTE_ERR_CANCELED || calls[3].error == HTE_OK);
    assert_true(calls[5].error == HTE_ERR_CANCELED || calls[5].error == HTE_OK);
    assert_int_equal(calls[6].error, HTE_ERR_CANCELED);
    for (i = 0; i < CALLS; ++i) {
        pthread_join(threads[i], NULL);
    }
    close(silent);
    target_kill(&f.target);
    free(f.memory);
}

/* Calls may go on after hte_shutdown(): all are refused, and nothing that they look at is gone. */
static void test_calls_after_shutdown(void **state)
{
    int (*const calls[])(struct fixture *) = {call_open,   call_sync, call_send, call_warm,
                                              call_submit, call_wait, call_looks};
    struct call    looks                   = {.make = call_looks, .error = 1};
    char           name[HTE_NAME_MAX + 1];
    pthread_t      thread;
    struct fixture f;
    size_t         i;

    (void)state;
    open_fixture(&f);
    looks.f = &f;
    assert_int_equal(pthread_create(&thread, NULL, make_call, &looks), 0);
    usleep(10000);
    hte_shutdown(f.engine);
    pthread_join(thread, NULL);
    assert_int_equal(looks.error, HTE_ERR_CANCELED);
    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
        assert_int_equal(calls[i](&f), HTE_ERR_CANCELED);
    }
    assert_int_equal(hte_local_name(f.engine, name, sizeof(name)), HTE_ERR_CANCELED);
    assert_int_equal(hte_memory_unregister(f.engine, f.memory), HTE_ERR_CANCELED);
    assert_int_equal(hte_segment_close(f.engine, f.segment), HTE_ERR_CANCELED);
    hte_shutdown(f.engine);
    hte_shutdown(NULL);
    target_stop(&f.target);
    close_fixture(&f);
}

/* The order to connect comes while the only thread is in a callback, and the end before it looks at its orders: a
 * sanitizer says whether they were freed. */
static void test_destroy_with_order(void **state)
{
    static const struct hte_option    options[] = {{"threads", "1"}};
    static const struct target_buffer buffer    = {.length = SIZE};
    struct slow                       slow;
    struct fixture                    f;
    int                               error;

    (void)state;
    open_with(&f, options, 1, &buffer, 1);
    (void)batch_in_callback(&f, &slow, -1);
    error = hte_segment_warm(f.engine, f.segment, 0);
    assert_true(error == HTE_OK || error == HTE_ERR_TIMEOUT);
    assert_int_equal(atomic_load(&slow.ended), 0); /* nobody has looked at it */
    close_fixture(&f);
    assert_int_equal(atomic_load(&slow.ended), 1);
    target_stop(&f.target);
}

/* ---- a peer that will never answer ---- */

/* Plain shared memory does not notice that a peer is dead, and UCX keeps what it was told to do: a request, its flush,
 * the close of the connection. Destroying ends all the same. */
static void destroy_with_dead_peer(int opcode, void (*strike)(struct target *))
{
    static const struct hte_option    options[] = {{"UCX_TLS", "sm,self"}, {"shutdown_timeout_ms", "100"}};
    static const struct target_buffer buffer    = {.length = SIZE};
    struct hte_batch_status           status;
    struct hte_request                r;
    struct fixture                    f;
    hte_batch_t                       batch;

    open_with(&f, options, 2, &buffer, 1);
    r = request(&f, opcode, 0, 0, M);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    strike(&f.target);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    (void)hte_batch_wait(f.engine, batch, 300, &status);
    hte_destroy(f.engine);
    if (strike != target_kill) {
        target_kill(&f.target);
    }
    free(f.memory);
}

static void test_destroy_with_dead_peer(void **state)
{
    static void (*const strikes[])(struct target *) = {target_pause, target_kill};
    unsigned i;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip(); /* it would override the option */
    }
    for (i = 0; i < sizeof(strikes) / sizeof(strikes[0]); ++i) {
        destroy_with_dead_peer(HTE_WRITE, strikes[i]);
        destroy_with_dead_peer(HTE_READ, strikes[i]);
    }
}

/* Its segment is still open, and broken: to connect finds the new process. */
static void test_warm_after_restart(void **state)
{
    static const struct target_buffer buffer = {.length = SIZE};
    struct hte_request                r;
    struct fixture                    f;
    hte_segment_t                     again;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    target_kill(&f.target);
    assert_int_not_equal(transfer(&f, &r, 1).code, HTE_COMPLETED);
    assert_true(hte_segment_warm(f.engine, f.segment, PATIENCE) != HTE_OK);
    if (!target_start_again(&f.target, &buffer, 1)) {
        target_stop(&f.target);
        close_fixture(&f);
        skip();
    }
    OK(hte_segment_open(f.engine, f.target.name, &again));
    assert_int_equal(again, f.segment);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    transfer_ok(&f, &r, 1);
    OK(hte_segment_close(f.engine, again));
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warm_after_restart),
        cmocka_unit_test(test_wait_outlasts_callback),
        cmocka_unit_test(test_free_outlasts_callback),
        cmocka_unit_test(test_eventfd_of_another),
        cmocka_unit_test(test_bad_eventfd),
        cmocka_unit_test(test_destroy_under_calls),
        cmocka_unit_test(test_calls_after_shutdown),
        cmocka_unit_test(test_destroy_with_order),
        cmocka_unit_test(test_destroy_with_dead_peer),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
