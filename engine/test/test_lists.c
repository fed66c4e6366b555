/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists: requests that are checked once, and submitted often. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

enum { COUNT = 64, BLOCK = 4096, THREADS = 4, ROUNDS = 200 };

static const struct target_buffer whole = {.length = SIZE};

static void open_way(struct fixture *f, bool is_near, const struct target_buffer *buffers, unsigned n_buffers)
{
    const struct hte_option options[] = {{"same_host", is_near ? "on" : "off"}, {"moves", "messages"}};

    open_with(f, options, 2, buffers, n_buffers);
}

static void make(const struct fixture *f, int opcode, size_t step, struct hte_request *requests)
{
    size_t i;

    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(f, opcode, i * step, i * step, BLOCK);
    }
}

static hte_list_t prepare(const struct fixture *f, const struct hte_request *requests, size_t count)
{
    hte_list_t list;

    OK(hte_list_prepare(f->engine, requests, count, &list));
    return list;
}

static hte_batch_t submit(const struct fixture *f, hte_list_t list, size_t count)
{
    hte_batch_t batch;

    OK(hte_batch_alloc(f->engine, count, &batch));
    OK(hte_list_submit(f->engine, batch, list));
    return batch;
}

static void expect(const struct fixture *f, hte_batch_t batch, size_t count, int code, int error)
{
    struct hte_batch_status status;
    struct hte_status       one;
    size_t                  i;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    assert_int_equal(status.code, code);
    assert_int_equal(status.error, error);
    assert_int_equal(status.finished, count);
    for (i = 0; i < count; ++i) {
        OK(hte_request_status(f->engine, batch, i, &one));
        assert_int_equal(one.code, code);
    }
    OK(hte_batch_free(f->engine, batch));
}

static void expect_refused(const struct fixture *f, hte_list_t list, int error)
{
    struct hte_batch_status status;
    hte_batch_t             batch;

    OK(hte_batch_alloc(f->engine, COUNT, &batch));
    assert_int_equal(hte_list_submit(f->engine, batch, list), error);
    OK(hte_batch_status(f->engine, batch, &status));
    assert_int_equal(status.submitted, 0);
    OK(hte_batch_free(f->engine, batch));
}

static int unregister(const struct fixture *f)
{
    return hte_memory_unregister(f->engine, f->memory);
}

static void end(struct fixture *f)
{
    OK(unregister(f)); /* no pin is left */
    target_stop(&f->target);
    close_fixture(f);
}

/* ---- what is moved ---- */

static void move(bool is_near, size_t step)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    hte_list_t         writes, reads;
    hte_batch_t        batch;
    uint32_t           round;
    size_t             i;

    open_way(&f, is_near, &whole, 1);
    make(&f, HTE_WRITE, step, requests);
    writes = prepare(&f, requests, COUNT);
    make(&f, HTE_READ, step, requests);
    reads = prepare(&f, requests, COUNT);
    memset(requests, 0, sizeof(requests)); /* they are the caller's again */
    for (round = 0; round < 5; ++round) {
        pattern_fill(f.memory, 0, SIZE, round);
        expect(&f, submit(&f, writes, COUNT), COUNT, HTE_COMPLETED, HTE_OK);
        memset(f.memory, 0, SIZE);
        expect(&f, submit(&f, reads, COUNT), COUNT, HTE_COMPLETED, HTE_OK);
        for (i = 0; i < COUNT; ++i) {
            assert_true(target_verify(&f.target, 0, i * step, BLOCK, round));
            assert_true(pattern_verify(f.memory + i * step, i * step, BLOCK, round));
        }
    }
    OK(hte_batch_alloc(f.engine, 3 * COUNT, &batch)); /* among others, and twice */
    OK(hte_list_submit(f.engine, batch, reads));
    make(&f, HTE_READ, step, requests);
    OK(hte_batch_submit(f.engine, batch, requests, COUNT));
    OK(hte_list_submit(f.engine, batch, reads));
    expect(&f, batch, 3 * COUNT, HTE_COMPLETED, HTE_OK);
    OK(hte_list_release(f.engine, writes));
    OK(hte_list_release(f.engine, reads));
    end(&f);
}

static void test_moved(void **state)
{
    (void)state;
    move(true, BLOCK);
    move(true, 2 * BLOCK);
    move(false, BLOCK);
    move(false, 2 * BLOCK);
}

/* Large ones, which are divided among threads; some over the border of registered memory; within the process. */
static void test_all_kinds(void **state)
{
    static const struct hte_option options[] = {{"threads", "4"}, {"split_size", "131072"}};
    struct hte_memory              halves[2] = {{.length = M + 5}, {.length = 3 * M - 5}};
    struct hte_request             requests[4];
    struct fixture                 f;
    char                          *memory = aligned_alloc(4096, 4 * M);
    hte_list_t                     list;
    uint32_t                       round;

    (void)state;
    open_with(&f, options, 2, &whole, 1);
    halves[0].addr = memory;
    halves[1].addr = memory + M + 5;
    OK(hte_memory_register_batch(f.engine, halves, 2));
    requests[0] = request(&f, HTE_WRITE, 0, 0, 3 * M);
    requests[1] = (struct hte_request){HTE_WRITE, f.segment, memory, f.target.addr[0] + 3 * M, 2 * M};
    requests[2] = (struct hte_request){HTE_WRITE, HTE_SEGMENT_LOCAL, f.memory + 5 * M, (uint64_t)memory + 2 * M, M};
    requests[3] = (struct hte_request){HTE_WRITE, f.segment, memory + M, f.target.addr[0] + 6 * M, 99};
    list        = prepare(&f, requests, 4);
    for (round = 0; round < 5; ++round) {
        pattern_fill(f.memory, 0, SIZE, round);
        pattern_fill(memory, 0, 2 * M, round + 100);
        expect(&f, submit(&f, list, 4), 4, HTE_COMPLETED, HTE_OK);
        assert_true(target_verify(&f.target, 0, 0, 3 * M, round));
        assert_memory_equal(memory + 2 * M, f.memory + 5 * M, M);
        pattern_fill(f.memory, 0, 2 * M, round + 100);
        requests[0] = request(&f, HTE_READ, 2 * M, 3 * M, 2 * M);
        requests[1] = request(&f, HTE_READ, 0, 6 * M, 99);
        transfer_ok(&f, requests, 2);
        assert_true(pattern_verify(f.memory + 2 * M, 0, 2 * M, round + 100));
        assert_true(pattern_verify(f.memory, M, 99, round + 100));
    }
    assert_int_equal(hte_memory_unregister(f.engine, memory), HTE_ERR_MEMORY_BUSY);
    assert_int_equal(hte_memory_unregister(f.engine, memory + M + 5), HTE_ERR_MEMORY_BUSY);
    OK(hte_list_release(f.engine, list));
    OK(hte_memory_unregister(f.engine, memory));
    OK(hte_memory_unregister(f.engine, memory + M + 5));
    free(memory);
    end(&f);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    struct hte_request requests[COUNT], bad;
    struct fixture     f;
    hte_list_t         list = 7, again;
    hte_batch_t        batch;

    (void)state;
    open_fixture(&f);
    make(&f, HTE_WRITE, BLOCK, requests);
    assert_int_equal(hte_list_prepare(NULL, requests, COUNT, &list), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_list_prepare(f.engine, NULL, COUNT, &list), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_list_prepare(f.engine, requests, 0, &list), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_list_prepare(f.engine, requests, HTE_BATCH_MAX + 1, &list), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_list_prepare(f.engine, requests, COUNT, NULL), HTE_ERR_INVALID_ARGUMENT);
    bad                = requests[40];
    requests[40].local = f.memory + SIZE - 1;
    assert_int_equal(hte_list_prepare(f.engine, requests, COUNT, &list), HTE_ERR_NOT_REGISTERED);
    assert_non_null(strstr(hte_error_detail(), "request 40"));
    assert_int_equal(list, 7);
    OK(unregister(&f));
    OK(hte_memory_register(f.engine, &(struct hte_memory){.addr = f.memory, .length = SIZE}));
    requests[40] = bad;
    list         = prepare(&f, requests, COUNT);
    OK(hte_batch_alloc(f.engine, COUNT - 1, &batch));
    assert_int_equal(hte_list_submit(f.engine, batch, list), HTE_ERR_TOO_MANY_REQUESTS);
    OK(hte_batch_free(f.engine, batch));
    assert_int_equal(hte_list_submit(f.engine, batch, list), HTE_ERR_BAD_HANDLE);
    expect_refused(&f, HTE_LIST_NONE, HTE_ERR_BAD_HANDLE);
    assert_int_equal(hte_list_release(f.engine, HTE_LIST_NONE), HTE_ERR_BAD_HANDLE);
    OK(hte_list_release(f.engine, list));
    assert_int_equal(hte_list_release(f.engine, list), HTE_ERR_BAD_HANDLE);
    again = prepare(&f, requests, COUNT);
    assert_int_not_equal(again, list);
    expect_refused(&f, list, HTE_ERR_BAD_HANDLE);
    OK(hte_list_release(f.engine, again));
    end(&f);
}

static void test_limit(void **state)
{
    static hte_list_t  lists[HTE_LISTS_MAX];
    struct hte_request r;
    struct fixture     f;
    hte_list_t         more;
    size_t             i;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, BLOCK);
    for (i = 0; i < HTE_LISTS_MAX; ++i) {
        lists[i] = prepare(&f, &r, 1);
    }
    assert_int_equal(hte_list_prepare(f.engine, &r, 1, &more), HTE_ERR_LIMIT);
    OK(hte_list_release(f.engine, lists[5]));
    lists[5] = prepare(&f, &r, 1);
    assert_int_equal(unregister(&f), HTE_ERR_MEMORY_BUSY);
    target_stop(&f.target);
    close_fixture(&f); /* with all of them */
}

/* ---- what becomes of memory meanwhile ---- */

/* Released, its requests under way hold what they use. */
static void test_released_early(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    hte_list_t         list;
    hte_batch_t        batch;

    (void)state;
    open_way(&f, false, &whole, 1);
    make(&f, HTE_READ, 2 * BLOCK, requests);
    list = prepare(&f, requests, COUNT);
    assert_int_equal(unregister(&f), HTE_ERR_MEMORY_BUSY);
    expect(&f, submit(&f, list, COUNT), COUNT, HTE_COMPLETED, HTE_OK);
    assert_int_equal(unregister(&f), HTE_ERR_MEMORY_BUSY);
    target_pause(&f.target);
    batch = submit(&f, list, COUNT);
    OK(hte_list_release(f.engine, list));
    assert_int_equal(unregister(&f), HTE_ERR_MEMORY_BUSY);
    OK(hte_segment_close(f.engine, f.segment));
    target_resume(&f.target);
    expect(&f, batch, COUNT, HTE_COMPLETED, HTE_OK);
    end(&f);
}

static void test_target_takes_back(void **state)
{
    static const struct target_buffer buffers[] = {{.length = M}, {.length = M}, {.length = M, .permission = -1}};
    struct hte_request                r[2];
    struct fixture                    f;
    hte_list_t                        both, first;
    int                               is_near;

    (void)state;
    for (is_near = 0; is_near < 2; ++is_near) {
        open_way(&f, is_near, buffers, 3);
        r[0]  = request(&f, HTE_WRITE, 0, 0, BLOCK);
        r[1]  = request(&f, HTE_WRITE, BLOCK, M, BLOCK);
        both  = prepare(&f, r, 2);
        first = prepare(&f, r, 1);
        expect(&f, submit(&f, both, 2), 2, HTE_COMPLETED, HTE_OK);
        target_register_more(&f.target); /* another descriptor, in which all of it is as it was */
        OK(hte_segment_sync(f.engine, f.segment));
        expect(&f, submit(&f, both, 2), 2, HTE_COMPLETED, HTE_OK);
        expect(&f, submit(&f, first, 1), 1, HTE_COMPLETED, HTE_OK);
        target_unregister(&f.target, 1);
        r[0] = request(&f, HTE_WRITE, 0, M, BLOCK);
        assert_int_equal(transfer(&f, r, 1).code, HTE_INVALID); /* nobody has heard of it */
        OK(hte_segment_sync(f.engine, f.segment));
        expect_refused(&f, both, HTE_ERR_RANGE);
        assert_non_null(strstr(hte_error_detail(), "request 1"));
        expect(&f, submit(&f, first, 1), 1, HTE_COMPLETED, HTE_OK);
        expect_refused(&f, both, HTE_ERR_RANGE);
        OK(hte_segment_close(f.engine, f.segment));
        expect_refused(&f, first, HTE_ERR_BAD_HANDLE);
        OK(hte_list_release(f.engine, first));
        assert_int_equal(unregister(&f), HTE_ERR_MEMORY_BUSY);
        OK(hte_list_release(f.engine, both));
        end(&f);
    }
}

static void test_taken_back_unheard(void **state)
{
    static const struct target_buffer buffers[] = {{.length = M}, {.length = M}};
    struct hte_request                r;
    struct fixture                    f;
    hte_list_t                        list;

    (void)state;
    open_way(&f, true, buffers, 2);
    r    = request(&f, HTE_WRITE, 0, M, BLOCK);
    list = prepare(&f, &r, 1);
    expect(&f, submit(&f, list, 1), 1, HTE_COMPLETED, HTE_OK);
    target_unregister(&f.target, 1);
    expect(&f, submit(&f, list, 1), 1, HTE_INVALID, HTE_ERR_RANGE);
    OK(hte_list_release(f.engine, list));
    end(&f);
}

/* Another process with the same name, and memory at the same addresses, is what the list means then. */
static void test_restarted(void **state)
{
    struct hte_request r;
    struct fixture     f;
    hte_list_t         list;

    (void)state;
    open_way(&f, true, &whole, 1);
    r    = request(&f, HTE_WRITE, 0, 0, BLOCK);
    list = prepare(&f, &r, 1);
    expect(&f, submit(&f, list, 1), 1, HTE_COMPLETED, HTE_OK);
    target_stop(&f.target);
    if (target_start_again(&f.target, &whole, 1)) {
        OK(hte_segment_sync(f.engine, f.segment));
        pattern_fill(f.memory, 0, BLOCK, 3);
        expect(&f, submit(&f, list, 1), 1, HTE_COMPLETED, HTE_OK);
        assert_true(target_verify(&f.target, 0, 0, BLOCK, 3));
    }
    OK(hte_list_release(f.engine, list));
    end(&f);
}

/* ---- threads ---- */

struct shared {
    struct fixture f;
    hte_list_t     list;
    _Atomic bool   is_over;
};

static void *submit_often(void *arg)
{
    struct shared *shared = arg;
    int            i;

    for (i = 0; i < ROUNDS; ++i) {
        expect(&shared->f, submit(&shared->f, shared->list, COUNT), COUNT, HTE_COMPLETED, HTE_OK);
    }
    return NULL;
}

/* New descriptors all the time, and lists that come and go. */
static void *disturb(void *arg)
{
    struct shared     *shared = arg;
    struct hte_request requests[COUNT];

    make(&shared->f, HTE_READ, 2 * BLOCK, requests);
    while (!atomic_load(&shared->is_over)) {
        OK(hte_segment_sync(shared->f.engine, shared->f.segment));
        OK(hte_list_release(shared->f.engine, prepare(&shared->f, requests, COUNT)));
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct hte_request requests[COUNT];
    struct shared      shared = {.is_over = false};
    pthread_t          thread[THREADS], other;
    int                i;

    (void)state;
    open_fixture(&shared.f);
    make(&shared.f, HTE_WRITE, 2 * BLOCK, requests);
    shared.list = prepare(&shared.f, requests, COUNT);
    pthread_create(&other, NULL, disturb, &shared);
    for (i = 0; i < THREADS; ++i) {
        pthread_create(&thread[i], NULL, submit_often, &shared);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(thread[i], NULL);
    }
    atomic_store(&shared.is_over, true);
    pthread_join(other, NULL);
    OK(hte_list_release(shared.f.engine, shared.list));
    end(&shared.f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_released_early),
        cmocka_unit_test(test_target_takes_back),
        cmocka_unit_test(test_taken_back_unheard),
        cmocka_unit_test(test_restarted),
        cmocka_unit_test(test_threads),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
