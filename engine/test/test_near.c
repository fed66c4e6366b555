/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of one host: bytes are moved without UCX, and what cannot be is said. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "fixture.h"

#define MANY 128

static const struct target_buffer whole = {.length = SIZE};

static struct hte_counters counters_of(const struct fixture *f)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    OK(hte_counters(f->engine, &counters));
    return counters;
}

static void expect_way(const struct fixture *f, int expected, const char *words)
{
    char text[256];
    int  way;

    OK(hte_segment_way(f->engine, f->segment, &way, text, sizeof(text)));
    if (strstr(text, words) == NULL) {
        fail_msg("way: '%s', without '%s'", text, words);
    }
    assert_int_equal(way, expected);
}

static void expect_near(const struct fixture *f)
{
    struct hte_counters counters = counters_of(f);

    assert_true(counters.posts > 0);
    assert_int_equal(counters.posts_same_host, counters.posts);
    expect_way(f, HTE_WAY_SAME_HOST, "same host");
}

/* ---- bytes ---- */

/* Not aligned, over the borders of buffers, more than one call of the system takes. */
static void move_vector(struct fixture *f)
{
    struct hte_request requests[MANY];
    size_t             i, at, length;

    pattern_fill(f->memory, 0, SIZE / 2, 11);
    for (i = 0, at = 1; i < MANY; ++i, at += length) {
        length      = 1 + (i * i * 37) % 30011;
        requests[i] = request(f, HTE_WRITE, at, at, length);
    }
    transfer_ok(f, requests, MANY);
    assert_true(target_verify(&f->target, 0, 1, at - 1, 11));
    memset(f->memory, 0, SIZE);
    for (i = 0; i < MANY; ++i) {
        requests[i].opcode = HTE_READ;
    }
    transfer_ok(f, requests, MANY);
    assert_true(pattern_verify(f->memory + 1, 1, at - 1, 11));
    assert_int_equal(f->memory[0], 0);
    assert_int_equal(f->memory[at], 0);
}

static void move_sizes(struct fixture *f)
{
    static const size_t sizes[] = {1, 7, 8, 4095, 4096, 4097, 65536, 65537, M, M + 1, 3 * M + 5, SIZE / 2};
    struct hte_request  r;
    size_t              i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        pattern_fill(f->memory, 0, sizes[i], (uint32_t)i);
        r = request(f, HTE_WRITE, 0, 13, sizes[i]);
        transfer_ok(f, &r, 1);
        r = request(f, HTE_READ, SIZE / 2, 13, sizes[i]);
        transfer_ok(f, &r, 1);
        assert_true(pattern_verify(f->memory + SIZE / 2, 0, sizes[i], (uint32_t)i));
    }
}

static void move_all(void)
{
    static const struct target_buffer halves[] = {{.length = SIZE / 16}, {.length = SIZE}};
    struct fixture                    f;

    open_with(&f, NULL, 0, halves, 2);
    move_sizes(&f);
    expect_near(&f);
    target_stop(&f.target);
    close_fixture(&f);
    open_fixture(&f);
    move_vector(&f);
    expect_near(&f);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_ordinary_memory(void **state)
{
    (void)state;
    move_all();
}

/* A slice that is more than is moved at a time. */
static void test_larger_than_one_move(void **state)
{
    static const struct hte_option    options[] = {{"threads", "1"}, {"slice_size", "128M"}, {"split_size", "128M"}};
    static const struct target_buffer large     = {.length = 80 * M};
    struct hte_memory                 memory    = {.addr = aligned_alloc(4096, 80 * M), .length = 80 * M};
    struct hte_request                r;
    struct fixture                    f;

    (void)state;
    open_with(&f, options, 3, &large, 1);
    pattern_fill(memory.addr, 0, memory.length, 5);
    OK(hte_memory_register(f.engine, &memory));
    r       = request(&f, HTE_WRITE, 0, 0, memory.length);
    r.local = memory.addr;
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, memory.length, 5));
    memset(memory.addr, 0, memory.length);
    r.opcode = HTE_READ;
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(memory.addr, 0, memory.length, 5));
    target_stop(&f.target);
    close_fixture(&f);
    free(memory.addr);
}

static void test_allocated_memory(void **state)
{
    (void)state;
    setenv("TARGET_ALLOC", "1", 1);
    move_all();
    unsetenv("TARGET_ALLOC");
}

/* Its process needs not run for it. */
static void test_stopped_target(void **state)
{
    struct hte_request r;
    struct fixture     f;

    (void)state;
    open_fixture(&f);
    target_pause(&f.target);
    pattern_fill(f.memory, 0, M, 5);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    r = request(&f, HTE_READ, M, 0, M);
    transfer_ok(&f, &r, 1);
    assert_true(pattern_verify(f.memory + M, 0, M, 5));
    target_resume(&f.target);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- what ends ---- */

static hte_batch_t submit_many(const struct fixture *f, int opcode)
{
    struct hte_request requests[MANY];
    hte_batch_t        batch;
    unsigned           i;

    for (i = 0; i < MANY; ++i) {
        requests[i] = request(f, opcode, 0, 0, 4 * M);
    }
    OK(hte_batch_alloc(f->engine, MANY, &batch));
    OK(hte_batch_submit(f->engine, batch, requests, MANY));
    return batch;
}

static void expect_end(const struct fixture *f, hte_batch_t batch, int error)
{
    struct hte_batch_status status;

    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    assert_int_equal(status.finished, MANY);
    if (status.code != HTE_COMPLETED) { /* it may have been faster */
        assert_string_equal(hte_error_string(status.error), hte_error_string(error));
    }
    OK(hte_batch_free(f->engine, batch));
}

/* An endpoint of UCX's tcp to a process that is just dying may end this one: see open_any() in wire/hte_conn.c. */
static unsigned endpoints;

__attribute__((visibility("default"))) ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params,
                                                                  ucp_ep_h *ep)
{
    __typeof__(&ucp_ep_create) real = (__typeof__(&ucp_ep_create))(uintptr_t)dlsym(RTLD_NEXT, "ucp_ep_create");

    ++endpoints;
    return real(worker, params, ep);
}

/* Either it is known by now, or it turns out. */
static void expect_dead(const struct fixture *f, const struct hte_request *r)
{
    struct hte_batch_status status;
    hte_batch_t             batch;
    int                     error;

    OK(hte_batch_alloc(f->engine, 1, &batch));
    error = hte_batch_submit(f->engine, batch, r, 1);
    if (error == HTE_OK) {
        OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
        assert_int_equal(status.code, HTE_FAILED);
        error = status.error;
    }
    assert_string_equal(hte_error_string(error), hte_error_string(HTE_ERR_DEAD_PEER));
    OK(hte_batch_free(f->engine, batch));
}

static void kill_under_way(int opcode)
{
    struct hte_request r;
    struct fixture     f;
    hte_batch_t        batch;

    open_fixture(&f);
    endpoints = 0;
    r         = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    batch = submit_many(&f, opcode);
    target_kill(&f.target);
    expect_end(&f, batch, HTE_ERR_DEAD_PEER);
    expect_dead(&f, &r);
    assert_int_equal(endpoints, 0);
    close_fixture(&f);
}

static void test_killed_target(void **state)
{
    (void)state;
    kill_under_way(HTE_WRITE);
    kill_under_way(HTE_READ);
    setenv("TARGET_ALLOC", "1", 1); /* the mapping outlives him */
    kill_under_way(HTE_WRITE);
    kill_under_way(HTE_READ);
    unsetenv("TARGET_ALLOC");
}

/* By its end, or as it is submitted: the refusal that came before has brought a new descriptor. */
static void expect_refused(struct fixture *f, const struct hte_request *r)
{
    struct hte_batch_status status;
    hte_batch_t             batch;
    int                     submitted;

    OK(hte_batch_alloc(f->engine, 1, &batch));
    submitted = hte_batch_submit(f->engine, batch, r, 1);
    if (submitted == HTE_OK) {
        OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
        assert_int_equal(status.code, HTE_INVALID);
        assert_int_equal(status.error, HTE_ERR_RANGE);
    } else {
        assert_int_equal(submitted, HTE_ERR_RANGE);
    }
    OK(hte_batch_free(f->engine, batch));
}

/* When it has been taken back nobody writes to it. */
static void release_under_way(void)
{
    static const struct target_buffer two[] = {{.length = SIZE / 2}, {.length = SIZE / 2}};
    struct hte_request                r;
    struct fixture                    f;
    hte_batch_t                       batch;

    open_with(&f, NULL, 0, two, 2);
    memset(f.memory, 0, SIZE);
    r = request(&f, HTE_WRITE, 0, 0, 1);
    transfer_ok(&f, &r, 1);
    batch = submit_many(&f, HTE_WRITE);
    target_unregister(&f.target, 0);
    target_fill(&f.target, 0, 0, SIZE / 2, 77);
    expect_end(&f, batch, HTE_ERR_RANGE);
    assert_true(target_verify(&f.target, 0, 0, SIZE / 2, 77));
    expect_refused(&f, &r);
    r = request(&f, HTE_WRITE, 0, SIZE / 2, M); /* the other one is still there */
    transfer_ok(&f, &r, 1);
    expect_near(&f);
    target_stop(&f.target);
    close_fixture(&f);
}

static void test_released_memory(void **state)
{
    (void)state;
    release_under_way();
    setenv("TARGET_ALLOC", "1", 1);
    release_under_way();
    unsetenv("TARGET_ALLOC");
}

/* Registered, and not to be read any more: the request ends, and its neighbours go through. */
static void test_unmapped_memory(void **state)
{
    struct hte_memory       memory = {.length = M};
    struct hte_batch_status status;
    struct hte_request      requests[3];
    struct hte_status       one;
    struct fixture          f;
    hte_batch_t             batch;

    (void)state;
    open_fixture(&f);
    memory.addr = mmap(NULL, M, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(hte_memory_register(f.engine, &memory));
    mprotect(memory.addr, M, PROT_NONE); /* so that nothing else is mapped there meanwhile */
    pattern_fill(f.memory, 0, 3 * K, 9);
    requests[0]       = request(&f, HTE_WRITE, 0, 0, K);
    requests[1]       = request(&f, HTE_WRITE, K, K, K);
    requests[1].local = memory.addr;
    requests[2]       = request(&f, HTE_WRITE, 2 * K, 2 * K, K);
    OK(hte_batch_alloc(f.engine, 3, &batch));
    OK(hte_batch_submit(f.engine, batch, requests, 3));
    OK(hte_batch_wait(f.engine, batch, PATIENCE, &status));
    assert_int_equal(status.error, HTE_ERR_MEMORY);
    OK(hte_request_status(f.engine, batch, 1, &one));
    assert_int_equal(one.code, HTE_FAILED);
    OK(hte_request_status(f.engine, batch, 2, &one));
    assert_int_equal(one.code, HTE_COMPLETED);
    OK(hte_batch_free(f.engine, batch));
    assert_true(target_verify(&f.target, 0, 0, K, 9));
    assert_true(target_verify(&f.target, 0, 2 * K, K, 9));
    OK(hte_memory_unregister(f.engine, memory.addr));
    munmap(memory.addr, M);
    target_stop(&f.target);
    close_fixture(&f);
}

/* ---- what is not possible ---- */

static void set_capability(bool has)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   data[2];

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    if (has) {
        data[0].effective |= data[0].permitted & (1u << CAP_SYS_PTRACE);
    } else {
        data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    }
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* It goes another way, and says why. */
static void expect_fallback(const char *words)
{
    struct hte_request r;
    struct fixture     f;

    set_capability(false); /* of this thread, and those that it makes */
    open_fixture(&f);
    pattern_fill(f.memory, 0, M, 21);
    r = request(&f, HTE_WRITE, 0, 0, M);
    transfer_ok(&f, &r, 1);
    assert_true(target_verify(&f.target, 0, 0, M, 21));
    assert_int_equal(counters_of(&f).posts_same_host, 0);
    assert_int_equal(counters_of(&f).posts_messages, counters_of(&f).posts);
    expect_way(&f, HTE_WAY_MESSAGES, words);
    target_stop(&f.target);
    close_fixture(&f);
    set_capability(true);
}

static void test_no_permission(void **state)
{
    (void)state;
    setenv("TARGET_HIDDEN", "1", 1);
    expect_fallback("not be looked into");
    unsetenv("TARGET_HIDDEN");
    if (getuid() == 0) {
        setenv("TARGET_USER", "65534", 1);
        expect_fallback("not be looked into");
        unsetenv("TARGET_USER");
    }
}

static void test_not_wanted(void **state)
{
    (void)state;
    setenv("HTE_SAME_HOST", "off", 1);
    expect_fallback("by messages over");
    unsetenv("HTE_SAME_HOST");
}

static void expect_refusal(const struct hte_option *options, size_t count, const char *words)
{
    struct hte_batch_status status;
    struct hte_request      r;
    struct fixture          f;

    open_with(&f, options, count, &whole, 1);
    r      = request(&f, HTE_WRITE, 0, 0, M);
    status = transfer(&f, &r, 1);
    assert_int_equal(status.code, HTE_FAILED);
    assert_int_equal(status.error, HTE_ERR_ENDPOINT);
    assert_int_equal(status.transferred, 0);
    assert_int_equal(hte_segment_warm(f.engine, f.segment, PATIENCE), HTE_ERR_ENDPOINT);
    assert_non_null(strstr(hte_error_detail(), words));
    close_fixture(&f); /* first: the tcp of UCX 1.13 asserts when who it still connects to goes away */
    target_stop(&f.target);
}

static void test_require(void **state)
{
    static const struct hte_option rdma[] = {{"require", "rdma"}, {"UCX_TLS", "tcp,self"}};
    static const struct hte_option near[] = {{"require", "same-host"}, {"UCX_TLS", "tcp,self"}};
    static const struct hte_option none[] = {{"require", "same-host"}, {"same_host", "off"}};
    struct hte_config              config = {.size = sizeof(config), .options = none, .n_options = 2};
    struct hte_engine             *engine;
    struct hte_request             r;
    struct fixture                 f;

    (void)state;
    expect_refusal(rdma, 2, "tcp/");
    setenv("TARGET_HIDDEN", "1", 1);
    set_capability(false);
    expect_refusal(near, 2, "not be looked into");
    set_capability(true);
    unsetenv("TARGET_HIDDEN");
    open_with(&f, near, 1, &whole, 1);
    r = request(&f, HTE_READ, 0, 0, M);
    transfer_ok(&f, &r, 1);
    OK(hte_segment_warm(f.engine, f.segment, PATIENCE));
    expect_near(&f);
    target_stop(&f.target);
    close_fixture(&f);
    assert_int_equal(hte_create(&config, &engine), HTE_ERR_INVALID_ARGUMENT);
}

/* ---- hte_memory_alloc() ---- */

static void test_alloc(void **state)
{
    struct hte_memory  memory = {.length = 3 * K};
    struct hte_engine *engine;
    void              *addr, *other;

    (void)state;
    create(&engine, NULL, 0);
    assert_int_equal(hte_memory_alloc(engine, 0, &addr), HTE_ERR_ZERO_LENGTH);
    assert_int_equal(hte_memory_alloc(engine, K, NULL), HTE_ERR_INVALID_ARGUMENT);
    assert_int_equal(hte_memory_alloc(engine, SIZE_MAX - 5, &addr), HTE_ERR_MEMORY);
    OK(hte_memory_alloc(engine, 5 * K, &addr));
    OK(hte_memory_alloc(engine, 1, &other));
    assert_int_equal(((char *)addr)[5 * K - 1], 0);
    memory.addr = (char *)addr + 100;
    OK(hte_memory_register(engine, &memory));
    assert_int_equal(hte_memory_free(engine, addr), HTE_ERR_MEMORY_BUSY);
    assert_int_equal(hte_memory_free(engine, memory.addr), HTE_ERR_INVALID_ARGUMENT);
    OK(hte_memory_unregister(engine, memory.addr));
    OK(hte_memory_free(engine, addr));
    assert_int_equal(hte_memory_free(engine, addr), HTE_ERR_INVALID_ARGUMENT);
    hte_destroy(engine); /* and the other one with it */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary_memory),
        cmocka_unit_test(test_larger_than_one_move),
        cmocka_unit_test(test_allocated_memory),
        cmocka_unit_test(test_stopped_target),
        cmocka_unit_test(test_killed_target),
        cmocka_unit_test(test_released_memory),
        cmocka_unit_test(test_unmapped_memory),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_not_wanted),
        cmocka_unit_test(test_require),
        cmocka_unit_test(test_alloc),
    };

    target_main(argc, argv);
    unsetenv("UCX_TLS"); /* who names transports gets those */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
