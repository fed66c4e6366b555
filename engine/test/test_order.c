/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes before what: priorities, windows, flushes and what they cover; and what is made anew, or ended, when what
 * it belongs to has changed. */
#include <stdlib.h>
#include <unistd.h>

#include "doors.h"
#include "fixture.h"

enum { MANY = 200, BLOCK = 4096 };

static const struct target_buffer buffer = {.length = SIZE};

static void open_order(struct fixture *f, const struct hte_option *options, size_t count)
{
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    door_reset();
    open_with(f, options, count, &buffer, 1);
}

/* ---- priorities ---- */

static _Atomic int ended, place[3]; /* in which place the batch of this priority ended, from 1 */

static void note_end(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    (void)engine;
    (void)batch;
    *(_Atomic int *)arg = ++ended;
}

static hte_batch_t submit_as(const struct fixture *f, int priority, size_t count)
{
    struct hte_request requests[MANY];
    hte_batch_t        batch;
    size_t             i;

    for (i = 0; i < count; ++i) {
        requests[i] = request(f, HTE_READ, 2 * i * BLOCK, 2 * i * BLOCK, BLOCK);
    }
    OK(hte_batch_alloc(f->engine, count, &batch));
    OK(hte_batch_set_priority(f->engine, batch, priority));
    OK(hte_batch_set_callback(f->engine, batch, note_end, &place[priority]));
    OK(hte_batch_submit(f->engine, batch, requests, count));
    return batch;
}

/* What is more urgent overtakes what is still in the queue. */
static void test_priorities(void **state)
{
    static const struct hte_option options[] = {
        {"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"window", "1"}, {"same_host", "off"}, {"moves", "messages"}};
    struct fixture     f;
    struct hte_request r;
    hte_batch_t        batches[3];
    int                i;

    (void)state;
    open_order(&f, options, 5);
    r = request(&f, HTE_READ, 0, 0, 100);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    ended      = 0;
    batches[0] = submit_as(&f, HTE_PRIORITY_LOW, MANY);
    batches[1] = submit_as(&f, HTE_PRIORITY_MEDIUM, MANY);
    batches[2] = submit_as(&f, HTE_PRIORITY_HIGH, 1);
    target_resume(&f.target);
    for (i = 0; i < 3; ++i) {
        OK(hte_batch_wait(f.engine, batches[i], PATIENCE, NULL));
        OK(hte_batch_free(f.engine, batches[i]));
    }
    assert_int_equal(place[HTE_PRIORITY_HIGH], 1);
    assert_int_equal(place[HTE_PRIORITY_MEDIUM], 2);
    assert_int_equal(place[HTE_PRIORITY_LOW], 3);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- windows ---- */

/* The memory of a READ is with UCX until its bytes are there: that is what the window counts. */
static void test_window_of_reads(void **state)
{
    static const struct hte_option options[] = {
        {"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"window", "2"}, {"same_host", "off"}, {"moves", "messages"}};
    struct fixture     f;
    hte_batch_t        batch;
    uint64_t           before;
    struct hte_request r;
    int                i;

    (void)state;
    open_order(&f, options, 5);
    r = request(&f, HTE_READ, 0, 0, 100);
    transfer_ok(&f, &r, 1);
    target_pause(&f.target);
    before = posts_of(&f);
    batch  = submit_as(&f, HTE_PRIORITY_MEDIUM, MANY);
    for (i = 0; i < PATIENCE && posts_of(&f) - before < 1; ++i) {
        usleep(1000);
    }
    usleep(50000);
    assert_in_range(posts_of(&f) - before, 1, 2); /* each takes a slice at least */
    target_resume(&f.target);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- flushes ---- */

static hte_batch_t write_one(const struct fixture *f, int flushes)
{
    struct hte_request r = request(f, HTE_WRITE, 0, 0, 100);
    hte_batch_t        batch;
    int                i;

    OK(hte_batch_alloc(f->engine, 1, &batch));
    OK(hte_batch_submit(f->engine, batch, &r, 1));
    for (i = 0; i < PATIENCE && door.n_held < flushes; ++i) {
        usleep(1000);
    }
    assert_int_equal(door.n_held, flushes);
    return batch;
}

/* A flush says nothing of what was posted after it. */
static void test_flush_covers(void **state)
{
    static const struct hte_option options[] = {
        {"UCX_TLS", "sm,self"}, {"threads", "1"}, {"same_host", "off"}, {"moves", "rma"}};
    struct fixture f;
    hte_batch_t    first, second;

    (void)state;
    open_order(&f, options, 4);
    door.holds_flushes = 1;
    first              = write_one(&f, 1);
    second             = write_one(&f, 2);
    door.let_go        = 1;
    OK(hte_batch_wait(f.engine, first, PATIENCE, NULL));
    assert_int_equal(hte_batch_wait(f.engine, second, 300, NULL), HTE_ERR_TIMEOUT);
    door.let_go        = 2;
    door.holds_flushes = 0;
    OK(hte_batch_wait(f.engine, second, PATIENCE, NULL));
    OK(hte_batch_free(f.engine, first));
    OK(hte_batch_free(f.engine, second));
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- what belongs to what ---- */

/* A connection rests as long as its segment is open, and no longer. */
static void test_closed_segment(void **state)
{
    static const struct hte_option options[] = {{"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"same_host", "off"}};
    struct fixture                 f;
    struct hte_request             r;
    int                            i;

    (void)state;
    open_order(&f, options, 3);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    transfer_ok(&f, &r, 1);
    usleep(1500000); /* three sweeps */
    assert_int_equal(door.eps_closed, 0);
    transfer_ok(&f, &r, 1);
    OK(hte_segment_close(f.engine, f.segment));
    for (i = 0; i < PATIENCE && door.eps_closed < door.eps_created; ++i) {
        usleep(1000);
    }
    assert_int_equal(door.eps_closed, door.eps_created);
    target_stop(&f.target);
    close_fixture(&f);
}

/* Keys are those of the descriptor that a request was checked against. */
static void test_keys_of_an_edition(void **state)
{
    static const struct target_buffer buffers[] = {{.length = M}, {.length = M, .permission = -1}};
    static const struct hte_option    options[] = {
           {"UCX_TLS", "tcp,self"}, {"threads", "1"}, {"same_host", "off"}, {"moves", "rma"}};
    struct fixture     f;
    struct hte_request r;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    door_reset();
    open_with(&f, options, 4, buffers, 2);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    transfer_ok(&f, &r, 1);
    transfer_ok(&f, &r, 1);
    assert_int_equal(door.keys_unpacked, 1);
    target_register_more(&f.target);
    r.target_offset = f.target.addr[1];
    transfer_ok(&f, &r, 1);
    r.target_offset = f.target.addr[0];
    transfer_ok(&f, &r, 1);
    assert_int_equal(door.keys_unpacked, 3);
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priorities),         cmocka_unit_test(test_window_of_reads),
        cmocka_unit_test(test_flush_covers),       cmocka_unit_test(test_closed_segment),
        cmocka_unit_test(test_keys_of_an_edition),
    };

    door_reset();
    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
