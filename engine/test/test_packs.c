/* SPDX-License-Identifier: BSD-3-Clause */
/* Small requests that continue each other are one operation, and each has its own end all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "doors.h"
#include "fixture.h"
#include "wire/hte_letter.h"

enum { COUNT = 64, BLOCK = 4096, BAD = 20 };

static const struct target_buffer buffer = {.length = SIZE};

/* The ways that a WRITE may take, each without the others. */
enum way { NEAR, LETTERS, WAYS };

static void open_way(struct fixture *f, enum way way, const char *timeout_ms)
{
    const struct hte_option options[] = {{"threads", "1"},
                                         {"slice_timeout_ms", timeout_ms},
                                         {"devices", ""},
                                         {"same_host", way == NEAR ? "on" : "off"},
                                         {"moves", "messages"}};
    door_reset();
    open_with(f, options, 5, &buffer, 1);
}

/* Each continues the one before it; or none does. */
static void make(const struct fixture *f, int opcode, size_t step, struct hte_request *requests)
{
    size_t i;

    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(f, opcode, i * step, i * step, BLOCK);
    }
}

static struct hte_counters counters_of(const struct fixture *f)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    OK(hte_counters(f->engine, &counters));
    return counters;
}

static hte_batch_t submit(const struct fixture *f, const struct hte_request *requests)
{
    hte_batch_t batch;

    OK(hte_batch_alloc(f->engine, COUNT, &batch));
    OK(hte_batch_submit(f->engine, batch, requests, COUNT));
    return batch;
}

static void expect(const struct fixture *f, hte_batch_t batch, size_t index, int code, int error)
{
    struct hte_status status;

    OK(hte_request_status(f->engine, batch, index, &status));
    assert_int_equal(status.code, code);
    assert_int_equal(status.error, error);
    if (code == HTE_COMPLETED) {
        assert_int_equal(status.transferred, BLOCK);
    }
}

/* All but that one are COMPLETED, and counted; frees the batch. */
static void expect_all_but(const struct fixture *f, hte_batch_t batch, size_t bad, int code, int error)
{
    struct hte_batch_status status;
    size_t                  i, n_bad = bad < COUNT;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    for (i = 0; i < COUNT; ++i) {
        expect(f, batch, i, i == bad ? code : HTE_COMPLETED, i == bad ? error : HTE_OK);
    }
    assert_int_equal(status.code, n_bad ? code : HTE_COMPLETED);
    assert_int_equal(status.error, n_bad ? error : HTE_OK);
    assert_int_equal(status.finished, COUNT);
    assert_int_equal(status.transferred, (COUNT - n_bad) * BLOCK);
    OK(hte_batch_free(f->engine, batch));
}

/* ---- what is joined ---- */

static void count_posts(enum way way, int opcode, size_t step, uint64_t posts)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    size_t             i;

    open_way(&f, way, "0");
    make(&f, opcode, step, requests);
    target_fill(&f.target, 0, 0, SIZE, 5);
    pattern_fill(f.memory, 0, SIZE, 6);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(counters_of(&f).posts, posts);
    for (i = 0; i < COUNT; ++i) {
        if (opcode == HTE_WRITE) {
            assert_true(target_verify(&f.target, 0, i * step, BLOCK, 6));
        } else {
            assert_true(pattern_verify(f.memory + i * step, i * step, BLOCK, 5));
        }
    }
    if (step > BLOCK) { /* and nothing between them */
        assert_true(opcode == HTE_WRITE ? target_verify(&f.target, 0, BLOCK, step - BLOCK, 5)
                                        : pattern_verify(f.memory + BLOCK, BLOCK, step - BLOCK, 6));
    }
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_joined(void **state)
{
    (void)state;
    count_posts(NEAR, HTE_WRITE, BLOCK, 1);
    count_posts(NEAR, HTE_READ, BLOCK, 1);
    count_posts(LETTERS, HTE_WRITE, BLOCK, 1);
    count_posts(LETTERS, HTE_READ, BLOCK, 1);
}

/* They are parts of few operations; but for the first one, which makes the connection. */
static void test_not_joined(void **state)
{
    (void)state;
    count_posts(NEAR, HTE_WRITE, BLOCK + 8, 1 + COUNT / 16);
    count_posts(NEAR, HTE_READ, BLOCK + 8, 1 + COUNT / 16);
    count_posts(LETTERS, HTE_WRITE, BLOCK + 8, 1 + COUNT / 16);
    count_posts(LETTERS, HTE_READ, BLOCK + 8, 1 + COUNT / 16);
}

/* Continued on one side only, or in the other direction. */
static void test_half_continued(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    size_t             i;

    (void)state;
    open_way(&f, NEAR, "0");
    pattern_fill(f.memory, 0, SIZE, 6);
    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(&f, HTE_WRITE, i * BLOCK, (COUNT - i) * BLOCK, BLOCK);
    }
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(counters_of(&f).posts, 1 + COUNT / 16);
    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(&f, i % 2 == 0 ? HTE_WRITE : HTE_READ, i * BLOCK, M + i * BLOCK, BLOCK);
    }
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(counters_of(&f).posts, 1 + COUNT / 16 + COUNT);
    for (i = 0; i < COUNT; ++i) {
        requests[i] = request(&f, HTE_WRITE, (COUNT - i) * BLOCK, 2 * M + i * BLOCK, BLOCK);
    }
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(counters_of(&f).posts, 1 + COUNT / 16 + COUNT + COUNT / 16);
    for (i = 0; i < COUNT; i += 2) {
        assert_true(target_verify(&f.target, 0, M + i * BLOCK, BLOCK, 6));
    }
    target_stop(&f.target);
    close_fixture(&f);
}

/* What is longer than a slice is cut, whatever it continues. */
static void test_large(void **state)
{
    static const struct hte_option options[] = {{"threads", "1"}, {"devices", ""}, {"run_size", "0"}};
    struct hte_request             requests[2];
    struct fixture                 f;

    (void)state;
    open_with(&f, options, 3, &buffer, 1);
    requests[0] = request(&f, HTE_WRITE, 0, 0, BLOCK);
    requests[1] = request(&f, HTE_WRITE, BLOCK, BLOCK, 600 * K);
    transfer_ok(&f, requests, 2);
    assert_int_equal(counters_of(&f).posts, 1 + 10);
    target_stop(&f.target);
    close_fixture(&f);
}

/* Over tcp, blocks that continue each other: what UCX is asked to send is 64 KiB at a time. */
static void test_sends(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    size_t             i;

    (void)state;
    open_way(&f, LETTERS, "0");
    make(&f, HTE_WRITE, BLOCK, requests);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(door.letters_of[HTE_LETTER_DATA], COUNT * BLOCK / (64 * K));
    make(&f, HTE_READ, BLOCK, requests);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    assert_int_equal(door.letters_of[HTE_LETTER_ASK], COUNT * BLOCK / (64 * K));
    for (i = 0; i < COUNT; ++i) { /* in one letter what fits into it */
        requests[i] = request(&f, HTE_WRITE, i * 24 * K, i * 24 * K, 20 * K);
    }
    transfer_ok(&f, requests, COUNT);
    assert_in_range(door.letters_of[HTE_LETTER_DATA], 4 + COUNT / 3, 4 + COUNT / 2);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- one bad among them ---- */

/* Its bytes cannot be touched: at the target, or here. */
static void one_bad(enum way way, int opcode, int is_remote, size_t step)
{
    struct hte_memory  memory = {.length = COUNT * step};
    struct hte_request requests[COUNT];
    struct fixture     f;
    size_t             i;
    int                code = is_remote ? HTE_INVALID : HTE_FAILED, error = is_remote ? HTE_ERR_RANGE : HTE_ERR_MEMORY;

    open_way(&f, way, "0");
    memory.addr = mmap(NULL, memory.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(hte_memory_register(f.engine, &memory));
    pattern_fill(memory.addr, 0, memory.length, 9);
    target_fill(&f.target, 0, 0, SIZE, 9);
    make(&f, opcode, step, requests);
    for (i = 0; i < COUNT; ++i) {
        requests[i].local = (char *)memory.addr + i * step;
    }
    if (is_remote) {
        target_protect(&f.target, 0, BAD * step, BLOCK);
    } else {
        mprotect((char *)memory.addr + BAD * step, BLOCK, PROT_NONE);
    }
    expect_all_but(&f, submit(&f, requests), BAD, code, error);
    if (step == BLOCK) {
        assert_true(counters_of(&f).posts > COUNT); /* joined, then alone */
    }
    for (i = 0; i < COUNT; ++i) {
        assert_true(i == BAD || target_verify(&f.target, 0, i * step, BLOCK, 9));
        assert_true(i == BAD || pattern_verify((char *)memory.addr + i * step, i * step, BLOCK, 9));
    }
    OK(hte_memory_unregister(f.engine, memory.addr));
    munmap(memory.addr, memory.length);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_bad_there(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < WAYS; ++way) {
        one_bad((enum way)way, HTE_WRITE, 1, BLOCK);
        one_bad((enum way)way, HTE_WRITE, 1, 2 * BLOCK);
        one_bad((enum way)way, HTE_READ, 1, BLOCK);
        one_bad((enum way)way, HTE_READ, 1, 2 * BLOCK);
    }
}

static void test_bad_here(void **state)
{
    int way;

    (void)state;
    for (way = 0; way < WAYS; ++way) {
        one_bad((enum way)way, HTE_WRITE, 0, BLOCK);
        one_bad((enum way)way, HTE_WRITE, 0, 2 * BLOCK);
        one_bad((enum way)way, HTE_READ, 0, BLOCK);
        one_bad((enum way)way, HTE_READ, 0, 2 * BLOCK);
    }
}

/* What was lost is sent again: as it was, and then alone. */
static void test_lost(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    int                fails;

    (void)state;
    open_way(&f, LETTERS, "0");
    make(&f, HTE_WRITE, BLOCK, requests);
    for (fails = 1; fails <= 4; ++fails) {
        pattern_fill(f.memory, 0, SIZE, (uint32_t)fails);
        door.letters_to_fail = fails;
        expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
        assert_true(target_verify(&f.target, 0, 0, COUNT * BLOCK, (uint32_t)fails));
    }
    assert_true(counters_of(&f).slices_retried > 0);
    target_stop(&f.target);
    close_fixture(&f);
}

/* One that never goes through takes nobody with it. */
static void test_given_up(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;

    (void)state;
    open_way(&f, LETTERS, "0");
    make(&f, HTE_READ, BLOCK, requests);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    door.letters_to_fail = 10; /* twice together, and then the first one until its 9 retries are used up */
    expect_all_but(&f, submit(&f, requests), 0, HTE_FAILED, HTE_ERR_ENDPOINT);
    assert_int_equal(door.letters_to_fail, 0);
    target_stop(&f.target);
    close_fixture(&f);
}

/* Each is checked as if it were the only one, and nothing is kept of those before it. */
static void test_checked(void **state)
{
    static const struct target_buffer buffers[] = {{.length = M}, {.length = M, .permission = HTE_PERM_GLOBAL_RO}};
    const struct {
        size_t local, remote, length;
        int    opcode, error;
    } bad[] = {{M, SIZE, BLOCK, HTE_READ, HTE_ERR_RANGE},
               {M, 2 * M - 1, BLOCK, HTE_READ, HTE_ERR_RANGE},
               {SIZE, M, BLOCK, HTE_READ, HTE_ERR_NOT_REGISTERED},
               {SIZE - 1, M, BLOCK, HTE_READ, HTE_ERR_NOT_REGISTERED},
               {(size_t)-8, M, BLOCK, HTE_READ, HTE_ERR_NOT_REGISTERED},
               {0, M, 0, HTE_READ, HTE_ERR_ZERO_LENGTH},
               {0, M, (size_t)-8, HTE_READ, HTE_ERR_RANGE},
               {0, M, BLOCK, HTE_WRITE, HTE_ERR_PERMISSION},
               {0, M, BLOCK, 7, HTE_ERR_INVALID_ARGUMENT}};
    struct hte_request requests[3];
    struct fixture     f;
    hte_batch_t        batch;
    size_t             i;

    (void)state;
    open_with(&f, NULL, 0, buffers, 2);
    OK(hte_batch_alloc(f.engine, COUNT, &batch));
    requests[0] = request(&f, HTE_READ, 0, M, BLOCK);
    requests[1] = request(&f, HTE_READ, BLOCK, M + BLOCK, BLOCK);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        requests[2] = request(&f, bad[i].opcode, bad[i].local, bad[i].remote, bad[i].length);
        assert_int_equal(hte_batch_submit(f.engine, batch, requests, 3), bad[i].error);
        assert_non_null(strstr(hte_error_detail(), "request 2"));
    }
    OK(hte_batch_free(f.engine, batch));
    OK(hte_memory_unregister(f.engine, f.memory)); /* no pin is left */
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- all of them ---- */

static void expect_each(const struct fixture *f, hte_batch_t batch, int code, int error)
{
    struct hte_batch_status status;
    size_t                  i;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    for (i = 0; i < COUNT; ++i) {
        expect(f, batch, i, code, error);
    }
    OK(hte_batch_free(f->engine, batch));
}

static void test_timeout_and_cancel(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    hte_batch_t        batch;

    (void)state;
    open_way(&f, LETTERS, "1000");
    make(&f, HTE_READ, BLOCK, requests);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
    target_pause(&f.target);
    expect_each(&f, submit(&f, requests), HTE_TIMEOUT, HTE_ERR_TIMEOUT);
    batch = submit(&f, requests);
    OK(hte_batch_cancel(f.engine, batch));
    expect_each(&f, batch, HTE_CANCELED, HTE_ERR_CANCELED);
    target_resume(&f.target);
    expect_all_but(&f, submit(&f, requests), COUNT, 0, 0); /* within its time, after a second's rest */
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_dead(void **state)
{
    struct hte_request requests[COUNT];
    struct fixture     f;
    hte_batch_t        batch;
    int                way;

    (void)state;
    for (way = 0; way < WAYS; ++way) {
        open_way(&f, (enum way)way, "0");
        make(&f, HTE_READ, BLOCK, requests);
        expect_all_but(&f, submit(&f, requests), COUNT, 0, 0);
        target_pause(&f.target);
        batch = way == LETTERS ? submit(&f, requests) : HTE_BATCH_NONE;
        target_kill(&f.target);
        expect_each(&f, way == LETTERS ? batch : submit(&f, requests), HTE_FAILED, HTE_ERR_DEAD_PEER);
        close_fixture(&f);
    }
}

/* ---- all kinds at once ---- */

/* Small and large ones, across borders of memory here, in order and not; every byte once. */
static void fill_mixture(const struct fixture *f, char *memory, int opcode, struct hte_request *requests, size_t *count)
{
    static const size_t longest[] = {64, BLOCK, 70 * K, 600 * K};
    size_t              at        = 0, length, i, k;
    struct hte_request  swap;

    for (*count = 0; at < SIZE; at += length, ++*count) {
        length                 = 1 + (size_t)rand() % longest[rand() % 4];
        length                 = length < SIZE - at && *count < 4095 ? length : SIZE - at;
        requests[*count]       = request(f, opcode, 0, at, length);
        requests[*count].local = memory + at;
    }
    for (i = 0; i < *count; i += 1 + (size_t)rand() % 20) {
        k           = (size_t)rand() % *count;
        swap        = requests[i];
        requests[i] = requests[k];
        requests[k] = swap;
    }
}

static void test_mixture(void **state)
{
    static const size_t       parts[] = {100000, 1, 3 * M, 4099, SIZE - 3 * M - 104100};
    static struct hte_request requests[4096];
    struct hte_memory         memory[5];
    struct fixture            f;
    size_t                    i, at, count;
    char                     *bytes = aligned_alloc(4096, SIZE);

    (void)state;
    open_with(&f, NULL, 0, &buffer, 1);
    for (i = 0, at = 0; i < 5; at += parts[i++]) {
        memory[i] = (struct hte_memory){.addr = bytes + at, .length = parts[i]};
    }
    OK(hte_memory_register_batch(f.engine, memory, 5));
    srand(7);
    for (i = 0; i < 10; ++i) {
        pattern_fill(bytes, 0, SIZE, (uint32_t)i);
        fill_mixture(&f, bytes, HTE_WRITE, requests, &count);
        transfer_ok(&f, requests, count);
        assert_true(target_verify(&f.target, 0, 0, SIZE, (uint32_t)i));
        memset(bytes, 0, SIZE);
        fill_mixture(&f, bytes, HTE_READ, requests, &count);
        transfer_ok(&f, requests, count);
        assert_true(pattern_verify(bytes, 0, SIZE, (uint32_t)i));
    }
    for (i = 0; i < 5; ++i) {
        OK(hte_memory_unregister(f.engine, memory[i].addr)); /* no pin is left */
    }
    target_stop(&f.target);
    close_fixture(&f);
    free(bytes);
}

static void test_mixture_by_letters(void **state)
{
    setenv("HTE_SAME_HOST", "off", 1);
    setenv("HTE_MOVES", "messages", 1);
    test_mixture(state);
    setenv("HTE_THREADS", "4", 1);
    setenv("HTE_WINDOW", "8", 1);
    test_mixture(state);
    unsetenv("HTE_THREADS");
    unsetenv("HTE_WINDOW");
    unsetenv("HTE_SAME_HOST");
    unsetenv("HTE_MOVES");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_not_joined),
        cmocka_unit_test(test_half_continued),
        cmocka_unit_test(test_sends),
        cmocka_unit_test(test_bad_there),
        cmocka_unit_test(test_bad_here),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_timeout_and_cancel),
        cmocka_unit_test(test_dead),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_mixture_by_letters),
    };

    door_reset();
    target_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
