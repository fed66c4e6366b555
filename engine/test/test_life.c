/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends that meet something still running: a batch freed under its callback, an engine destroyed under calls. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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
    struct hte_request r = request(f, HTE_WRITE, 0, 0, 100);
    struct hte_batch_status status;
    hte_batch_t batch;

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
    struct slow slow;
    struct fixture f;
    hte_batch_t batch;

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
    int fd = eventfd(0, EFD_CLOEXEC);
    uint64_t events;
    struct slow slow;
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
    int fd              = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    OK(hte_batch_free(engine, batch));
    assert_int_equal(dup2(fd, hasty->fd), hasty->fd);
    close(fd);
    atomic_store(&hasty->is_done, 1);
}

static void test_eventfd_of_another(void **state)
{
    struct hasty hasty = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    int original       = dup(hasty.fd);
    struct hte_request r;
    struct fixture f;
    hte_batch_t batch;
    uint64_t events;

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
    close_fixture(&f); /* joins the thread that calls back */
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
    hte_batch_t batch;

    (void)state;
    create(&engine, NULL, 0);
    OK(hte_batch_alloc(engine, 1, &batch));
    assert_int_equal(hte_batch_set_eventfd(engine, batch, 999999), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_batch_set_eventfd(engine, batch, -2), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_set_eventfd(engine, batch, -1));
    OK(hte_batch_free(engine, batch));
    hte_destroy(engine);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_outlasts_callback),
        cmocka_unit_test(test_free_outlasts_callback),
        cmocka_unit_test(test_eventfd_of_another),
        cmocka_unit_test(test_bad_eventfd),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
