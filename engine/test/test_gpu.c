/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU, of a made-up one: see gpu.h. Two engines of this process, one writes to and reads from the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "gpu.h"

#define LENGTH (8 * M)

struct pair {
    struct hte_engine *engine, *target;
    hte_segment_t      segment;
    char              *local[2], *remote[2]; /* of the host, of the GPU */
};

static int register_at(struct hte_engine *engine, void *addr, const char *location)
{
    const struct hte_memory memory = {.addr = addr, .length = LENGTH, .location = location};

    return hte_memory_register(engine, &memory);
}

static char *place(const char *addr)
{
    char *inside = gpu_inside(addr);

    return inside != NULL ? inside : (char *)addr;
}

static void open_pair(struct pair *pair, const struct hte_option *options, size_t count)
{
    char name[300];

    gpu_reset(1);
    create(&pair->engine, options, count);
    create(&pair->target, options, count);
    pair->local[0]  = aligned_alloc(4096, LENGTH);
    pair->remote[0] = aligned_alloc(4096, LENGTH);
    pair->local[1]  = gpu_alloc(LENGTH);
    pair->remote[1] = gpu_alloc(LENGTH);
    OK(register_at(pair->engine, pair->local[0], NULL));
    OK(register_at(pair->engine, pair->local[1], "cuda:0"));
    OK(register_at(pair->target, pair->remote[0], NULL));
    OK(register_at(pair->target, pair->remote[1], "cuda:3"));
    OK(hte_local_name(pair->target, name, sizeof(name)));
    OK(hte_segment_open(pair->engine, name, &pair->segment));
}

static void close_pair(struct pair *pair)
{
    hte_destroy(pair->engine);
    hte_destroy(pair->target);
    free(pair->local[0]);
    free(pair->remote[0]);
    gpu_free_all();
    assert_int_equal(gpu.mistakes, 0);
}

static struct hte_batch_status run(const struct pair *pair, const struct hte_request *requests, size_t count)
{
    const struct fixture f = {.engine = pair->engine};

    return transfer(&f, requests, count);
}

/* Requests of `each` bytes, `step` apart, in both memories. */
static struct hte_batch_status move(const struct pair *pair, int opcode, int here, int there, size_t each, size_t step)
{
    struct hte_request requests[64];
    size_t             count = LENGTH / step < 64 ? LENGTH / step : 64, i;

    for (i = 0; i < count; ++i) {
        requests[i] = (struct hte_request){.opcode        = opcode,
                                           .target        = pair->segment,
                                           .local         = pair->local[here] + i * step,
                                           .target_offset = (uint64_t)pair->remote[there] + i * step,
                                           .length        = each};
    }
    return run(pair, requests, count);
}

/* Every way, of both kinds of memory on both sides: every byte that was meant, and no other. */
static void move_and_check(const struct pair *pair, int opcode, int here, int there, size_t each, size_t step)
{
    char                   *from  = place(opcode == HTE_WRITE ? pair->local[here] : pair->remote[there]);
    char                   *to    = place(opcode == HTE_WRITE ? pair->remote[there] : pair->local[here]);
    size_t                  count = LENGTH / step < 64 ? LENGTH / step : 64, i;
    int                     moved = gpu.moved;
    struct hte_batch_status status;

    memset(to, 0x11, LENGTH);
    for (i = 0; i < LENGTH; ++i) {
        from[i] = (char)(i * 7 + (i >> 12) + (size_t)(here * 3 + there * 5 + opcode));
    }
    status = move(pair, opcode, here, there, each, step);
    assert_string_equal(hte_error_string(status.error), hte_error_string(HTE_OK));
    for (i = 0; i < count; ++i) {
        assert_memory_equal(to + i * step, from + i * step, each);
        assert_true(each == step || to[i * step + each] == 0x11);
    }
    assert_true((here || there) == (gpu.moved > moved));
}

static void move_all_ways(const struct pair *pair)
{
    static const struct {
        size_t each, step;
    } sizes[] = {{4096, 8192}, {4096, 4096}, {64, 4096}, {LENGTH, LENGTH}, {LENGTH / 2 - 1, LENGTH / 2}};
    size_t s;
    int    ways;

    for (ways = 0; ways < 8; ++ways) {
        for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
            move_and_check(pair, ways & 4 ? HTE_READ : HTE_WRITE, ways & 1, ways >> 1 & 1, sizes[s].each,
                           sizes[s].step);
        }
    }
}

static void test_moved_by_ucx_alone(void **state)
{
    static const struct hte_option options[] = {{"moves", "rma"}, {"pretouch_size", "1M"}};
    struct hte_buffer              buffers[2];
    size_t                         count = 2;
    struct pair                    pair;

    (void)state;
    open_pair(&pair, options, 2);
    assert_int_equal(gpu.mapped, 2);
    OK(hte_segment_buffers(pair.engine, pair.segment, buffers, &count));
    assert_int_equal(count, 2);
    assert_int_equal(!strcmp(buffers[0].location, "cuda:3") + !strcmp(buffers[1].location, "cuda:3"), 1);
    move_all_ways(&pair);
    assert_int_equal(gpu.letters, 0);
    close_pair(&pair);
}

/* A request may go on from one registration into the next. */
static void test_across_registrations(void **state)
{
    static const struct hte_option options[] = {{"moves", "rma"}};
    struct hte_memory              half      = {.length = LENGTH / 2, .location = "cuda:0"};
    struct pair                    pair;
    int                            i;

    (void)state;
    open_pair(&pair, options, 1);
    OK(hte_memory_unregister(pair.engine, pair.local[1]));
    for (i = 0; i < 2; ++i) {
        half.addr = pair.local[1] + (size_t)i * half.length;
        OK(hte_memory_register(pair.engine, &half));
    }
    move_and_check(&pair, HTE_WRITE, 1, 0, LENGTH, LENGTH);
    move_and_check(&pair, HTE_READ, 1, 1, LENGTH, LENGTH);
    close_pair(&pair);
}

/* With two devices each slice is thought about, and a connection is chosen for it. */
static void test_over_two_rails(void **state)
{
    static const struct hte_option options[] = {
        {"moves", "rma"}, {"devices", "lo,lo+lo"}, {"UCX_TLS", "tcp,self"}, {"same_host", "off"}};
    struct pair pair;

    (void)state;
    if (getenv("UCX_TLS") != NULL) {
        skip();
    }
    open_pair(&pair, options, 4);
    assert_int_equal(gpu.mapped, 4);
    move_all_ways(&pair);
    close_pair(&pair);
}

/* Where no hardware moves it, it is not moved, and says so. What the host has is moved as ever, in the same batch. */
static void test_refused_without_hardware(void **state)
{
    struct hte_request      requests[2];
    struct hte_batch_status status;
    struct pair             pair;
    int                     ways;

    (void)state;
    open_pair(&pair, NULL, 0);
    for (ways = 1; ways < 4; ++ways) {
        status = move(&pair, HTE_WRITE, ways & 1, ways >> 1, 4096, 8192);
        assert_int_equal(status.error, HTE_ERR_NOT_IMPLEMENTED);
    }
    memset(pair.local[0], 5, LENGTH);
    memset(pair.remote[0], 0, LENGTH);
    requests[0] = (struct hte_request){HTE_WRITE, pair.segment, pair.local[1], (uint64_t)pair.remote[1], 100};
    requests[1] = (struct hte_request){HTE_WRITE, pair.segment, pair.local[0], (uint64_t)pair.remote[0], 100};
    status      = run(&pair, requests, 2);
    assert_int_equal(status.error, HTE_ERR_NOT_IMPLEMENTED);
    assert_int_equal(status.finished, 2);
    assert_int_equal(pair.remote[0][99], 5);
    move_and_check(&pair, HTE_READ, 0, 0, 4096, 4096);
    assert_int_equal(gpu.moved, 0);
    close_pair(&pair);
}

/* This process copies what is its own, which it cannot here. */
static void test_within_the_process(void **state)
{
    struct hte_request request;
    struct pair        pair;
    hte_batch_t        batch;
    int                ways;

    (void)state;
    open_pair(&pair, NULL, 0);
    OK(hte_batch_alloc(pair.engine, 1, &batch));
    for (ways = 1; ways < 4; ++ways) {
        request = (struct hte_request){HTE_WRITE, HTE_SEGMENT_LOCAL, pair.local[ways & 1],
                                       (uint64_t)pair.local[ways >> 1] + M, 4096};
        assert_int_equal(hte_batch_submit(pair.engine, batch, &request, 1), HTE_ERR_NOT_IMPLEMENTED);
        assert_non_null(strstr(hte_error_detail(), "request 0"));
    }
    OK(hte_batch_free(pair.engine, batch));
    OK(hte_memory_unregister(pair.engine, pair.local[1])); /* nothing has it pinned */
    close_pair(&pair);
}

static void test_without_cuda(void **state)
{
    struct hte_engine *engine;
    void              *memory;

    (void)state;
    gpu_reset(0);
    memory = gpu_alloc(LENGTH);
    create(&engine, NULL, 0);
    assert_true(gpu.in_query > 0);
    assert_int_equal(register_at(engine, memory, "cuda:0"), HTE_ERR_NOT_IMPLEMENTED);
    assert_non_null(strstr(hte_error_detail(), "'cuda:0'"));
    assert_non_null(strstr(hte_error_detail(), "ucx_info"));
    assert_int_equal(gpu.mapped, 0);
    hte_destroy(engine);
    gpu_free_all();
}

static void test_bad_names(void **state)
{
    static const char *const bad[] = {"cuda:", "cuda:x", "cuda:-1", "cuda:00", "cuda:1 ", "cuda:123456"};
    struct hte_engine       *engine;
    void                    *memory;
    size_t                   i;

    (void)state;
    gpu_reset(1);
    memory = gpu_alloc(LENGTH);
    create(&engine, NULL, 0);
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        assert_int_equal(register_at(engine, memory, bad[i]), HTE_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(hte_error_detail(), bad[i]));
    }
    OK(register_at(engine, memory, "cuda:15"));
    hte_destroy(engine);
    gpu_free_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_by_ucx_alone), cmocka_unit_test(test_across_registrations),
        cmocka_unit_test(test_over_two_rails),     cmocka_unit_test(test_refused_without_hardware),
        cmocka_unit_test(test_within_the_process), cmocka_unit_test(test_without_cuda),
        cmocka_unit_test(test_bad_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
