/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that forks: an engine stays its maker's, and its child is told so instead of waiting for threads that it
 * does not have. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define FORKS 20 /* at moments that nobody chose: some of them while a thread holds a lock */

/* In a child, where cmocka has no say. */
#define CHECK(what)                                                                            \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "child: line %d: %s (%s)\n", __LINE__, #what, hte_error_detail()); \
            _exit(1);                                                                          \
        }                                                                                      \
    } while (0)

#define REFUSED(call) CHECK((call) == HTE_ERR_CANCELED && strstr(hte_error_detail(), "fork()") != NULL)

static void check_batches(const struct fixture *f, hte_batch_t batch, hte_list_t list)
{
    struct hte_request      r = request(f, HTE_WRITE, 0, 0, 100);
    struct hte_status       one;
    struct hte_batch_status all;
    hte_batch_t             other;
    hte_list_t              other_list;

    REFUSED(hte_batch_alloc(f->engine, 1, &other));
    REFUSED(hte_batch_submit(f->engine, batch, &r, 1));
    REFUSED(hte_batch_submit_notify(f->engine, batch, &r, 1, "name", "text"));
    REFUSED(hte_request_status(f->engine, batch, 0, &one));
    REFUSED(hte_batch_status(f->engine, batch, &all));
    REFUSED(hte_batch_wait(f->engine, batch, -1, &all));
    REFUSED(hte_batch_cancel(f->engine, batch));
    REFUSED(hte_batch_set_priority(f->engine, batch, HTE_PRIORITY_LOW));
    REFUSED(hte_batch_set_callback(f->engine, batch, NULL, NULL));
    REFUSED(hte_batch_set_eventfd(f->engine, batch, -1));
    REFUSED(hte_batch_free(f->engine, batch));
    REFUSED(hte_list_prepare(f->engine, &r, 1, &other_list));
    REFUSED(hte_list_submit(f->engine, batch, list));
    REFUSED(hte_list_release(f->engine, list));
}

static void check_others(const struct fixture *f)
{
    struct hte_memory        memory   = {.addr = f->memory, .length = SIZE};
    struct hte_counters      counters = {.size = sizeof(counters)};
    char                     name[HTE_NAME_MAX + 1], *json;
    struct hte_notification *notifications;
    hte_segment_t            segment;
    size_t                   count = 0;
    void                    *addr;
    int                      way;

    REFUSED(hte_local_name(f->engine, name, sizeof(name)));
    REFUSED(hte_memory_register(f->engine, &memory));
    REFUSED(hte_memory_unregister(f->engine, f->memory));
    REFUSED(hte_memory_alloc(f->engine, 4096, &addr));
    REFUSED(hte_memory_free(f->engine, f->memory));
    REFUSED(hte_segment_open(f->engine, f->target.name, &segment));
    REFUSED(hte_segment_sync(f->engine, f->segment));
    REFUSED(hte_segment_warm(f->engine, f->segment, -1));
    REFUSED(hte_segment_way(f->engine, f->segment, &way, name, sizeof(name)));
    REFUSED(hte_segment_buffers(f->engine, f->segment, NULL, &count));
    REFUSED(hte_segment_close(f->engine, f->segment));
    REFUSED(hte_notify_send(f->engine, f->segment, "name", "text"));
    REFUSED(hte_notify_drain(f->engine, &notifications, &count));
    REFUSED(hte_nic_load(f->engine, NULL, &count));
    REFUSED(hte_links(f->engine, NULL, &count));
    REFUSED(hte_topology_export(f->engine, &json));
    REFUSED(hte_counters(f->engine, &counters));
    REFUSED(hte_metrics(f->engine, &json));
    REFUSED(hte_segment_metrics(f->engine, f->segment, &json));
}

static void await_child(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void run_child(const struct fixture *f, hte_batch_t batch, hte_list_t list)
{
    alarm(PATIENCE / 1000); /* who waits here, waits for ever */
    check_batches(f, batch, list);
    check_others(f);
    hte_shutdown(f->engine);
    hte_destroy(f->engine);
    hte_destroy(f->engine); /* it is still there */
    check_others(f);
    _exit(0);
}

/* Requests are under way when the process forks, and go on. */
static void test_child_is_refused(void **state)
{
    struct hte_request r[8];
    struct fixture     f;
    hte_batch_t        batch;
    hte_list_t         list;
    unsigned           i, k;
    pid_t              child;

    (void)state;
    open_fixture(&f);
    for (i = 0; i < 8; ++i) {
        r[i] = request(&f, HTE_WRITE, i * M, i * M, M);
    }
    OK(hte_list_prepare(f.engine, r, 8, &list));
    for (k = 0; k < FORKS; ++k) {
        pattern_fill(f.memory, 0, SIZE, k);
        OK(hte_batch_alloc(f.engine, 8, &batch));
        OK(hte_list_submit(f.engine, batch, list));
        child = fork();
        if (child == 0) {
            run_child(&f, batch, list);
        }
        await_child(child);
        OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
        OK(hte_batch_free(f.engine, batch));
        assert_true(target_verify(&f.target, 0, 0, SIZE, k));
    }
    OK(hte_list_release(f.engine, list));
    target_stop(&f.target);
    close_fixture(&f);
}

/* What the detail advises: the child's own engine, beside its parent's. And a grandchild is neither's. */
static void run_own_engine(const struct fixture *f)
{
    struct hte_memory  memory = {.addr = f->memory, .length = SIZE};
    struct fixture     own    = *f;
    struct hte_request r;
    char               name[HTE_NAME_MAX + 1];
    pid_t              grandchild;
    int                status;

    alarm(PATIENCE / 1000);
    create(&own.engine, NULL, 0);
    CHECK(hte_memory_register(own.engine, &memory) == HTE_OK);
    CHECK(hte_segment_open(own.engine, f->target.name, &own.segment) == HTE_OK);
    pattern_fill(own.memory, 0, SIZE, 77);
    r = request(&own, HTE_WRITE, 0, 0, SIZE);
    CHECK(transfer(&own, &r, 1).code == HTE_COMPLETED);
    REFUSED(hte_local_name(f->engine, name, sizeof(name)));
    grandchild = fork();
    if (grandchild == 0) {
        REFUSED(hte_local_name(f->engine, name, sizeof(name)));
        REFUSED(hte_local_name(own.engine, name, sizeof(name)));
        hte_destroy(own.engine);
        _exit(0);
    }
    CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    hte_destroy(own.engine);
    _exit(0);
}

static void test_engine_of_a_child(void **state)
{
    struct hte_request r;
    struct fixture     f;
    pid_t              child;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, SIZE);
    pattern_fill(f.memory, 0, SIZE, 1);
    transfer_ok(&f, &r, 1);
    child = fork();
    if (child == 0) {
        run_own_engine(&f);
    }
    await_child(child);
    assert_true(target_verify(&f.target, 0, 0, SIZE, 77));
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, SIZE, 1));
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child_is_refused),
        cmocka_unit_test(test_engine_of_a_child),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
