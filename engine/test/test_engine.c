/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine through its header, against a target in another process. UCX as the environment has it. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fixture.h"

static void test_write_then_read(void **state)
{
    struct hte_request write, read;
    struct fixture     f;

    (void)state;
    open_fixture(&f);
    pattern_fill(f.memory, 0, M, 1);
    write = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &write, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 1)); /* COMPLETED: the target's CPU sees it */
    target_fill(&f.target, 0, 2 * M, M, 2);
    read = request(&f, HTE_READ, 4 * M, 2 * M, M);
    transfer_ok(&f, &read, 1);
    assert_true(pattern_verify(f.memory + 4 * M, 2 * M, M, 2));
    target_stop(&f.target);
    close_fixture(&f);
}

/* Sizes around each border of the slicing, at odd addresses, and nothing beyond the range. */
static void test_sizes(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 4095, 4096, 65535, 65536, 65537, 81920, 81921, 131072, 1048577, 3000001};
    struct hte_request  r;
    struct fixture      f;

    (void)state;
    open_fixture(&f);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        memset(f.memory, 0, SIZE);
        r = request(&f, HTE_WRITE, 0, 0, 4 * M);
        transfer_ok(&f, &r, 1);
        pattern_fill(f.memory + 3, 5, sizes[i], (uint32_t)i);
        r = request(&f, HTE_WRITE, 3, 5, sizes[i]);
        transfer_ok(&f, &r, 1);
        assert_true(target_verify(&f.target, 0, 5, sizes[i], (uint32_t)i));
        memset(f.memory, 0, SIZE);
        r = request(&f, HTE_READ, 4 * M, 0, 4 * M);
        transfer_ok(&f, &r, 1);
        assert_true(pattern_verify(f.memory + 4 * M + 5, 5, sizes[i], (uint32_t)i));
        assert_memory_equal(f.memory + 4 * M, "\0\0\0\0", 5);
        assert_int_equal(f.memory[4 * M + 5 + sizes[i]], 0);
        r = request(&f, HTE_READ, 1, 5, sizes[i]);
        transfer_ok(&f, &r, 1);
        assert_true(pattern_verify(f.memory + 1, 5, sizes[i], (uint32_t)i));
    }
    target_stop(&f.target);
    close_fixture(&f);
}

/* 4 MiB and a bit, divided between two threads: as many slices as ever, in as few operations as run_size allows. */
static void count_posts(const char *run_size, uint64_t posts)
{
    const struct hte_option options[] = {{"threads", "2"}, {"run_size", run_size}, {"devices", ""}};
    struct hte_counters     counters  = {.size = sizeof(counters)};
    struct hte_request      r;
    struct fixture          f;

    open_with(&f, options, 3, &(const struct target_buffer){.length = SIZE}, 1);
    pattern_fill(f.memory, 0, 4 * M + 9, 3);
    r = request(&f, HTE_WRITE, 0, 0, 4 * M + 9);
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, 4 * M + 9, 3));
    OK(hte_counters(f.engine, &counters));
    assert_int_equal(counters.slices_posted, 64);
    assert_int_equal(counters.posts, posts);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_runs(void **state)
{
    (void)state;
    count_posts("0", 64);
    count_posts("64K", 64);
    count_posts("128K", 33);
    count_posts("1M", 5);
}

/* Requests across borders of registered memory on both sides. */
static void test_borders(void **state)
{
    static const struct target_buffer buffers[] = {{.length = 1 * M + 4096}, {.length = 12288}, {.length = 2 * M}};
    struct hte_memory                 parts[3];
    struct hte_request                r;
    struct fixture                    f;
    size_t                            total = 3 * M + 16384;
    char                             *memory;

    (void)state;
    open_with(&f, NULL, 0, buffers, 3);
    memory   = aligned_alloc(4096, 4 * M);
    parts[0] = (struct hte_memory){.addr = memory, .length = 100000};
    parts[1] = (struct hte_memory){.addr = memory + 100000, .length = 1};
    parts[2] = (struct hte_memory){.addr = memory + 100001, .length = 4 * M - 100001};
    OK(hte_memory_register_batch(f.engine, parts, 3));
    pattern_fill(memory, 0, total, 9);
    r       = request(&f, HTE_WRITE, 0, 0, total);
    r.local = memory;
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, f.target.length[0], 9));
    memset(memory, 0, total);
    r.opcode = HTE_READ;
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(memory, 0, total, 9));
    target_stop(&f.target);
    close_fixture(&f);
    free(memory);
}

static void test_local_segment(void **state)
{
    struct hte_buffer  seen;
    struct hte_request r;
    struct fixture     f;
    hte_segment_t      own;
    char               name[256];
    size_t             count = 1;

    (void)state;
    open_fixture(&f);
    OK(hte_local_name(f.engine, name, sizeof(name)));
    OK(hte_segment_open(f.engine, name, &own));
    assert_int_equal(own, HTE_SEGMENT_LOCAL);
    OK(hte_segment_buffers(f.engine, own, &seen, &count));
    assert_int_equal(count, 1);
    assert_true(seen.addr == (uint64_t)f.memory && seen.length == SIZE && seen.permission == HTE_PERM_GLOBAL_RW);
    pattern_fill(f.memory, 0, M, 3);
    r = (struct hte_request){.opcode        = HTE_WRITE,
                             .target        = HTE_SEGMENT_LOCAL,
                             .local         = f.memory,
                             .target_offset = (uint64_t)f.memory + 5 * M,
                             .length        = M};
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(f.memory + 5 * M, 0, M, 3));
    r.opcode = HTE_READ;
    r.local  = f.memory + 3 * M;
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(f.memory + 3 * M, 0, M, 3));
    target_stop(&f.target);
    close_fixture(&f);
}

/* Source and destination overlap: bytes arrive as they were before, whichever lies higher. */
static void test_local_overlap(void **state)
{
    static const size_t at[][2] = {{0, 64 * K}, {64 * K, 0}, {0, 1}, {1, 0}, {0, 512 * K + 3}, {5, 5}};
    struct hte_request  r;
    struct fixture      f;
    int                 op;

    (void)state;
    open_fixture(&f);
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); ++i) {
        for (op = HTE_READ; op <= HTE_WRITE; ++op) {
            r = (struct hte_request){.opcode        = op,
                                     .target        = HTE_SEGMENT_LOCAL,
                                     .length        = M,
                                     .local         = f.memory + at[i][op == HTE_READ],
                                     .target_offset = (uint64_t)f.memory + at[i][op == HTE_WRITE]};
            pattern_fill(f.memory + at[i][0], 0, M, 6);
            transfer_ok(&f, &r, 1);
            assert_true(pattern_verify(f.memory + at[i][1], 0, M, 6));
        }
    }
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- batches ---- */

/* Short form of engine/test/million: every byte of many small requests, both opcodes mixed. */
static void test_many_batches(void **state)
{
    enum { BATCH = 128, ROUNDS = 150, LENGTH = 512 };
    struct hte_request requests[BATCH];
    struct fixture     f;
    unsigned           round, i;
    size_t             at;

    (void)state;
    open_fixture(&f);
    for (round = 0; round < ROUNDS; ++round) {
        at = (round % 8) * BATCH * LENGTH;
        pattern_fill(f.memory + at, at, BATCH * LENGTH, round);
        for (i = 0; i < BATCH; ++i) {
            requests[i] = request(&f, HTE_WRITE, at + i * LENGTH, at + i * LENGTH, LENGTH);
        }
        transfer_ok(&f, requests, BATCH);
        for (i = 0; i < BATCH; ++i) {
            requests[i] = request(&f, HTE_READ, 4 * M + (BATCH - 1 - i) * LENGTH, at + i * LENGTH, LENGTH);
        }
        transfer_ok(&f, requests, BATCH);
        for (i = 0; i < BATCH; ++i) {
            assert_true(pattern_verify(f.memory + 4 * M + (BATCH - 1 - i) * LENGTH, at + i * LENGTH, LENGTH, round));
        }
    }
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_batch_grows(void **state)
{
    struct hte_batch_status status;
    struct hte_status       one;
    struct hte_request      r;
    struct fixture          f;
    hte_batch_t             batch;

    (void)state;
    open_fixture(&f);
    r = request(&f, HTE_WRITE, 0, 0, 100);
    OK(hte_batch_alloc(f.engine, 3, &batch));
    OK(hte_batch_status(f.engine, batch, &status));
    assert_int_equal(status.code, HTE_COMPLETED); /* empty */
    assert_int_equal(hte_request_status(f.engine, batch, 0, &one), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    OK(hte_batch_submit(f.engine, batch, &r, 1));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.submitted, 2);
    assert_int_equal(status.transferred, 200);
    OK(hte_request_status(f.engine, batch, 1, &one));
    assert_int_equal(one.code, HTE_COMPLETED);
    assert_int_equal(one.transferred, 100);
    assert_int_equal(hte_request_status(f.engine, batch, 2, &one), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_free(f.engine, batch));
    assert_int_equal(hte_batch_free(f.engine, batch), HTE_ERR_BAD_HANDLE);
    assert_int_equal(hte_batch_status(f.engine, batch, &status), HTE_ERR_BAD_HANDLE);
    target_stop(&f.target);
    close_fixture(&f);
}

static void count_call(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    struct hte_batch_status status;

    /* not freed yet: the eventfd is written after the call */
    if (hte_batch_status(engine, batch, &status) == HTE_OK && status.code == HTE_COMPLETED) {
        __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
    }
}

static void test_callback_and_eventfd(void **state)
{
    int                calls = 0, fd = eventfd(0, EFD_CLOEXEC);
    struct hte_request requests[40];
    struct fixture     f;
    hte_batch_t        batch;
    uint64_t           events;

    (void)state;
    open_fixture(&f);
    for (unsigned i = 0; i < 40; ++i) {
        requests[i] = request(&f, i % 2, i * 100000, i * 100000, 100000);
    }
    OK(hte_batch_alloc(f.engine, 40, &batch));
    OK(hte_batch_set_callback(f.engine, batch, count_call, &calls));
    OK(hte_batch_set_eventfd(f.engine, batch, fd));
    OK(hte_batch_submit(f.engine, batch, requests, 40));
    assert_int_equal(read(fd, &events, sizeof(events)), sizeof(events)); /* blocks until complete */
    assert_int_equal(events, 1);
    OK(hte_batch_wait(f.engine, batch, 0, NULL));
    assert_int_equal(hte_batch_set_eventfd(f.engine, batch, -1), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_batch_free(f.engine, batch));
    target_stop(&f.target);
    close_fixture(&f); /* joins the thread that calls back */
    assert_int_equal(calls, 1);
    close(fd);
}

/* ---- wrong input: each its own error, nothing half done ---- */

static void expect(const struct fixture *f, struct hte_request bad, int error)
{
    struct hte_request      good[2] = {request(f, HTE_WRITE, 0, 0, 10), bad};
    struct hte_batch_status status;
    hte_batch_t             batch;

    OK(hte_batch_alloc(f->engine, 2, &batch));
    assert_int_equal(hte_batch_submit(f->engine, batch, good, 2), error);
    assert_non_null(strstr(hte_error_detail(), "request 1"));
    OK(hte_batch_status(f->engine, batch, &status));
    assert_int_equal(status.submitted, 0);
    OK(hte_batch_free(f->engine, batch));
}

static void test_bad_requests(void **state)
{
    static const struct target_buffer buffers[] = {
        {.length = M}, {.length = M, .permission = HTE_PERM_GLOBAL_RO}, {.length = M, .permission = HTE_PERM_LOCAL}};
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_with(&f, NULL, 0, buffers, 3);
    expect(&f, request(&f, 2, 0, 0, 10), HTE_ERR_INVALID_ARGUMENT);
    expect(&f, request(&f, HTE_READ, 0, 0, 0), HTE_ERR_ZERO_LENGTH);
    expect(&f, request(&f, HTE_READ, SIZE - 5, 0, 10), HTE_ERR_NOT_REGISTERED);
    expect(&f, request(&f, HTE_READ, 0, 4 * M, 10), HTE_ERR_RANGE);
    expect(&f, request(&f, HTE_READ, 0, 2 * M - 5, 10), HTE_ERR_RANGE); /* into the LOCAL one */
    expect(&f, request(&f, HTE_WRITE, 0, M - 5, 10), HTE_ERR_PERMISSION);
    r = request(&f, HTE_READ, 0, M - 5, 10);
    transfer_ok(&f, &r, 1);
    r.target_offset = UINT64_MAX - 4;
    expect(&f, r, HTE_ERR_RANGE);
    r        = request(&f, HTE_READ, 0, 0, 10);
    r.target = f.segment + 1;
    expect(&f, r, HTE_ERR_BAD_HANDLE);
    r.target = HTE_SEGMENT_NONE;
    expect(&f, r, HTE_ERR_BAD_HANDLE);
    r.target        = HTE_SEGMENT_LOCAL;
    r.target_offset = (uint64_t)f.memory + SIZE - 5;
    expect(&f, r, HTE_ERR_RANGE);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_too_many(void **state)
{
    struct hte_request requests[3];
    struct fixture     f;
    hte_batch_t        batch;

    (void)state;
    open_fixture(&f);
    requests[0] = requests[1] = requests[2] = request(&f, HTE_WRITE, 0, 0, 10);
    OK(hte_batch_alloc(f.engine, 2, &batch));
    assert_int_equal(hte_batch_submit(f.engine, batch, requests, 3), HTE_ERR_TOO_MANY_REQUESTS);
    OK(hte_batch_submit(f.engine, batch, requests, 2));
    assert_int_equal(hte_batch_submit(f.engine, batch, requests, 1), HTE_ERR_TOO_MANY_REQUESTS);
    OK(hte_batch_wait(f.engine, batch, PATIENCE, NULL));
    OK(hte_batch_free(f.engine, batch));
    assert_int_equal(hte_batch_submit(f.engine, HTE_BATCH_NONE, requests, 1), HTE_ERR_BAD_HANDLE);
    assert_int_equal(hte_batch_alloc(f.engine, 0, &batch), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_batch_alloc(f.engine, HTE_BATCH_MAX + 1, &batch), HTE_ERR_INVALID_ARGUMENT);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_bad_memory(void **state)
{
    struct hte_counters counters = {.size = sizeof(counters)};
    struct hte_engine  *engine;
    char               *memory = aligned_alloc(4096, M);
    struct hte_memory   m[2]   = {{.addr = memory, .length = M}};

    (void)state;
    create(&engine, NULL, 0);
    m[0].length = 0;
    assert_int_equal(hte_memory_register(engine, m), HTE_ERR_ZERO_LENGTH);
    m[0].length   = M;
    m[0].location = "gpu";
    assert_int_equal(hte_memory_register(engine, m), HTE_ERR_INVALID_ARGUMENT);
    m[0].location = "cpu:60000";
    assert_int_equal(hte_memory_register(engine, m), HTE_ERR_NUMA);
    m[0].location = "cuda:0";
    assert_int_equal(hte_memory_register(engine, m), HTE_ERR_NOT_IMPLEMENTED);
    m[0].location   = NULL;
    m[0].permission = 3;
    assert_int_equal(hte_memory_register(engine, m), HTE_ERR_INVALID_ARGUMENT);
    m[0].permission = HTE_PERM_GLOBAL_RW;
    m[1]            = (struct hte_memory){.addr = memory + M - 1, .length = 1};
    assert_int_equal(hte_memory_register_batch(engine, m, 2), HTE_ERR_OVERLAP); /* the first is taken back */
    OK(hte_counters(engine, &counters));
    assert_int_equal(counters.memory_regions, 0);
    OK(hte_memory_register(engine, m));
    assert_int_equal(hte_memory_register(engine, &m[1]), HTE_ERR_OVERLAP);
    assert_int_equal(hte_memory_unregister(engine, memory + 1), HTE_ERR_NOT_REGISTERED);
    OK(hte_memory_unregister(engine, memory));
    assert_int_equal(hte_memory_unregister(engine, memory), HTE_ERR_NOT_REGISTERED);
    hte_destroy(engine);
    free(memory);
}

static void test_segments(void **state)
{
    struct hte_request r;
    struct fixture     f;
    hte_segment_t      again, other;
    hte_batch_t        batch;

    (void)state;
    open_fixture(&f);
    OK(hte_segment_open(f.engine, f.target.name, &again));
    assert_int_equal(again, f.segment);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    OK(hte_segment_close(f.engine, again));
    r = request(&f, HTE_WRITE, 0, 0, 10);
    transfer_ok(&f, &r, 1); /* opened twice, closed once */
    OK(hte_segment_close(f.engine, f.segment));
    assert_int_equal(hte_segment_close(f.engine, f.segment), HTE_ERR_BAD_HANDLE);
    assert_int_equal(hte_segment_sync(f.engine, f.segment), HTE_ERR_BAD_HANDLE);
    OK(hte_batch_alloc(f.engine, 1, &batch));
    assert_int_equal(hte_batch_submit(f.engine, batch, &r, 1), HTE_ERR_BAD_HANDLE);
    OK(hte_batch_free(f.engine, batch));
    assert_int_not_equal(hte_segment_open(f.engine, "127.0.0.1:1", &other), HTE_OK);
    OK(hte_segment_open(f.engine, f.target.name, &other));
    assert_int_not_equal(other, f.segment);
    r.target = other;
    transfer_ok(&f, &r, 1);
    target_stop(&f.target);
    close_fixture(&f);
}

/* What the target registers or unregisters after the segment was opened. */
static void test_segment_changes(void **state)
{
    static const struct target_buffer buffers[] = {{.length = M}, {.length = M, .permission = -1}};
    struct hte_buffer                 seen[4];
    struct hte_request                r;
    struct fixture                    f;
    size_t                            count = 4;

    (void)state;
    open_with(&f, NULL, 0, buffers, 2);
    r = request(&f, HTE_WRITE, 0, M, M);
    expect(&f, r, HTE_ERR_RANGE);
    target_register_more(&f.target);
    pattern_fill(f.memory, 0, M, 5);
    transfer_ok(&f, &r, 1); /* found by itself */
    assert_true(target_verify(&f.target, 1, 0, M, 5));
    OK(hte_segment_buffers(f.engine, f.segment, seen, &count));
    assert_int_equal(count, 2);
    assert_int_equal(seen[1].addr, f.target.addr[1]);
    target_unregister(&f.target, 1);
    OK(hte_segment_sync(f.engine, f.segment));
    expect(&f, r, HTE_ERR_RANGE);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    target_stop(&f.target);
    close_fixture(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_then_read),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_borders),
        cmocka_unit_test(test_local_segment),
        cmocka_unit_test(test_local_overlap),
        cmocka_unit_test(test_many_batches),
        cmocka_unit_test(test_batch_grows),
        cmocka_unit_test(test_callback_and_eventfd),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_bad_memory),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_segment_changes),
    };

    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0 || setenv("HTE_SAME_HOST", "off", 1) != 0 ||
           cmocka_run_group_tests(tests, NULL, NULL) != 0; /* and as between hosts */
}
