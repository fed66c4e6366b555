/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void open_ends(struct ends *e)
{
    peer_start(&e->peer);
    e->engine = createTransferEngine("P2PHANDSHAKE", "127.0.0.1", "", 0, 1);
    assert_non_null(e->engine);
    assert_int_equal(getLocalIpAndPort(e->engine, e->name, sizeof(e->name)), 0);
    assert_int_equal(strncmp(e->name, "127.0.0.1:", 10), 0);
    e->segment = openSegment(e->engine, e->peer.name);
    assert_true(e->segment > 0);
    e->buffer = buffer_new();
    assert_int_equal(registerLocalMemory(e->engine, e->buffer, PEER_SIZE, "*", 1), 0);
}

void close_ends(struct ends *e)
{
    assert_int_equal(unregisterLocalMemory(e->engine, e->buffer), 0);
    destroyTransferEngine(e->engine);
    free(e->buffer);
}

int post(struct ends *e, struct handle *handle, int opcode, notify_msg_t *notify)
{
    transfer_request_t *requests = calloc(N_BLOCKS, sizeof(*requests));
    int                 i, result;

    if (handle->batch == INVALID_BATCH) {
        handle->batch = allocateBatchID(e->engine, BATCH);
        assert_true(handle->batch != INVALID_BATCH && handle->batch != 0);
        handle->count = 0;
    }
    for (i = 0; i < N_BLOCKS; ++i) {
        requests[i] = (transfer_request_t){.opcode        = opcode,
                                           .source        = e->buffer + (size_t)i * BLOCK,
                                           .target_id     = e->segment,
                                           .target_offset = e->peer.addr + (size_t)(N_BLOCKS - 1 - i) * BLOCK,
                                           .length        = BLOCK};
    }
    result = notify != NULL ? submitTransferWithNotify(e->engine, handle->batch, requests, N_BLOCKS, *notify)
                            : submitTransfer(e->engine, handle->batch, requests, N_BLOCKS);
    memset(requests, 0xff, N_BLOCKS * sizeof(*requests));
    free(requests);
    handle->count += N_BLOCKS;
    return result;
}

enum outcome check(struct ends *e, struct handle *handle)
{
    bool              has_failed = false;
    transfer_status_t status;
    size_t            i;

    for (i = 0; i < handle->count; ++i) {
        if (getTransferStatus(e->engine, handle->batch, i, &status) != 0 || status.status == STATUS_FAILED) {
            has_failed = true;
        } else if (status.status == STATUS_PENDING || status.status == STATUS_WAITING) {
            return IN_PROGRESS;
        } else {
            assert_int_equal(status.status, STATUS_COMPLETED);
            assert_int_equal(status.transferred_bytes, BLOCK);
        }
    }
    if (!has_failed) {
        assert_int_equal(freeBatchID(e->engine, handle->batch), 0);
        *handle = (struct handle){.batch = INVALID_BATCH};
    }
    return has_failed ? BAD : DONE;
}

enum outcome poll_until_end(struct ends *e, struct handle *handle)
{
    double       end = now() + PATIENCE_S;
    enum outcome outcome;

    do {
        outcome = check(e, handle);
    } while (outcome == IN_PROGRESS && now() < end);
    return outcome;
}

void assert_turned(const char *back, uint32_t seed)
{
    char  *straight = buffer_new();
    size_t i;

    for (i = 0; i < N_BLOCKS; ++i) {
        memcpy(straight + i * BLOCK, back + (N_BLOCKS - 1 - i) * BLOCK, BLOCK);
    }
    assert_true(pattern_verify(straight, 0, PEER_SIZE, seed));
    free(straight);
}

void turn(char *buffer, uint32_t seed)
{
    char  *straight = buffer_new();
    size_t i;

    pattern_fill(straight, seed);
    for (i = 0; i < N_BLOCKS; ++i) {
        memcpy(buffer + i * BLOCK, straight + (N_BLOCKS - 1 - i) * BLOCK, BLOCK);
    }
    free(straight);
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
