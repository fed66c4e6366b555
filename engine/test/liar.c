/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into hte_bench by test_bench.sh: counts the bytes of READs and WRITEs, tells them at the end, and in
 * between spoils the last byte of every batch whose opcode LIAR names. It remembers one batch per thread: use
 * --depth=1. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/include/hte.h"

typedef int (*submit_function)(struct hte_engine *, hte_batch_t, const struct hte_request *, size_t);
typedef int (*wait_function)(struct hte_engine *, hte_batch_t, int, struct hte_batch_status *);

static _Atomic uint64_t bytes_read, bytes_written;
static __thread char   *to_spoil;

static int is_lie(const char *opcode)
{
    const char *lie = getenv("LIAR");

    return lie != NULL && strcmp(lie, opcode) == 0;
}

int hte_batch_submit(struct hte_engine *engine, hte_batch_t batch, const struct hte_request *requests, size_t count)
{
    submit_function           next = (submit_function)dlsym(RTLD_NEXT, "hte_batch_submit");
    const struct hte_request *last = &requests[count - 1];
    char                     *tail = (char *)last->local + last->length - 1;
    size_t                    i;

    for (i = 0; i < count; ++i) {
        atomic_fetch_add(requests[i].opcode == HTE_READ ? &bytes_read : &bytes_written, requests[i].length);
    }
    if (last->opcode == HTE_WRITE && is_lie("write")) {
        *tail = (char)~*tail;
    }
    to_spoil = last->opcode == HTE_READ && is_lie("read") ? tail : NULL;
    return next(engine, batch, requests, count);
}

int hte_batch_wait(struct hte_engine *engine, hte_batch_t batch, int timeout_ms, struct hte_batch_status *status)
{
    wait_function next  = (wait_function)dlsym(RTLD_NEXT, "hte_batch_wait");
    int           error = next(engine, batch, timeout_ms, status);

    if (to_spoil != NULL) {
        *to_spoil = (char)~*to_spoil;
        to_spoil  = NULL;
    }
    return error;
}

__attribute__((destructor)) static void tell(void)
{
    if (bytes_read + bytes_written > 0) {
        fprintf(stderr, "liar: read %llu wrote %llu\n", (unsigned long long)bytes_read,
                (unsigned long long)bytes_written);
    }
}
