/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

int check_(int error, const char *what, int line)
{
    if (error != HTE_OK) {
        fprintf(stderr, "line %d: %s: %s (%s)\n", line, what, hte_error_string(error), hte_error_detail());
    }
    return error;
}

void create(struct hte_engine **engine, const struct hte_option *options, size_t count)
{
    struct hte_config config = {.size = sizeof(config), .name = "127.0.0.1", .options = options, .n_options = count};

    OK(hte_create(&config, engine));
}

void open_with(struct fixture *f, const struct hte_option *options, size_t n_options,
               const struct target_buffer *buffers, unsigned n_buffers)
{
    struct hte_memory memory = {.length = SIZE};

    target_start(&f->target, buffers, n_buffers);
    create(&f->engine, options, n_options);
    f->memory   = aligned_alloc(4096, SIZE);
    memory.addr = f->memory;
    OK(hte_memory_register(f->engine, &memory));
    OK(hte_segment_open(f->engine, f->target.name, &f->segment));
}

void open_fixture(struct fixture *f)
{
    static const struct target_buffer buffer = {.length = SIZE};

    open_with(f, NULL, 0, &buffer, 1);
}

void close_fixture(struct fixture *f)
{
    hte_destroy(f->engine);
    free(f->memory);
}

struct hte_request request(const struct fixture *f, int opcode, size_t local, size_t remote, size_t length)
{
    return (struct hte_request){.opcode        = opcode,
                                .target        = f->segment,
                                .local         = f->memory + local,
                                .target_offset = f->target.addr[0] + remote,
                                .length        = length};
}

struct hte_batch_status transfer(const struct fixture *f, const struct hte_request *requests, size_t count)
{
    struct hte_batch_status status;
    hte_batch_t             batch;

    OK(hte_batch_alloc(f->engine, count, &batch));
    OK(hte_batch_submit(f->engine, batch, requests, count));
    OK(hte_batch_wait(f->engine, batch, PATIENCE, &status));
    OK(hte_batch_free(f->engine, batch));
    return status;
}

void transfer_ok(const struct fixture *f, const struct hte_request *requests, size_t count)
{
    struct hte_batch_status status = transfer(f, requests, count);

    assert_string_equal(hte_error_string(status.error), hte_error_string(HTE_OK));
    assert_int_equal(status.code, HTE_COMPLETED);
    assert_int_equal(status.finished, count);
}

/* UCX 1.13 loses what it allocated for shared memory endpoints that cannot be connected (the peer is dead). Who
 * allocated it is seen behind ucs_malloc() only by unwinding: UCX has no frame pointers. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char                                        *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char                                        *__lsan_default_suppressions(void)
{
    return "leak:libuct.so\n";
}

/* What a peer writes is ordered by messages between processes, and UCX's own locks by code that is not instrumented:
 * the thread sanitizer sees neither, and takes a lock of UCX for held that was given back. Run it with
 * UCX_MEM_MMAP_HOOK_MODE=none UCX_MEM_EVENTS=n TSAN_OPTIONS=report_mutex_bugs=0. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char                                        *__tsan_default_suppressions(void)
{
    return "race:^ucs_\n"
           "mutex:^ucs_\n"
           "deadlock:ucs_callbackq\n"
           "deadlock:libucs.so\n"
           "called_from_lib:libucp.so\n"
           "called_from_lib:libuct.so\n";
}

uint64_t posts_of(const struct fixture *f)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    OK(hte_counters(f->engine, &counters));
    return counters.posts;
}
