/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into hte_bench by test_bench.sh: counts the bytes of READs and WRITEs, tells them at the end, and in
 * between spoils the last byte of every batch whose opcode LIAR names. It remembers one batch per thread: use
 * --depth=1. And how many GETs of plain UCX were under way at most. */
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

/* ---- the baseline ---- */

typedef void *(*get_function)(void *, void *, size_t, uint64_t, void *, const void *);
typedef void *(*flush_function)(void *, const void *);
typedef void (*free_function)(void *);

/* Nothing else in it is seen. */
#define SHOWN __attribute__((visibility("default")))
SHOWN void *ucp_get_nbx(void *ep, void *buffer, size_t count, uint64_t remote, void *rkey, const void *param);
SHOWN void *ucp_ep_flush_nbx(void *ep, const void *param);
SHOWN void  ucp_request_free(void *request);

static _Atomic long under_way, most_under_way;

/* UCX returns a request, NULL when all is done, or an error below 0 and above -101. */
static int is_request(const void *result)
{
    return (uintptr_t)result - 1 < (uintptr_t)-101;
}

void *ucp_get_nbx(void *ep, void *buffer, size_t count, uint64_t remote, void *rkey, const void *param)
{
    get_function next   = (get_function)dlsym(RTLD_NEXT, "ucp_get_nbx");
    void        *result = next(ep, buffer, count, remote, rkey, param);
    long         now;

    if (is_request(result)) {
        now            = atomic_fetch_add(&under_way, 1) + 1;
        most_under_way = now > most_under_way ? now : most_under_way;
    }
    return result;
}

void *ucp_ep_flush_nbx(void *ep, const void *param)
{
    flush_function next   = (flush_function)dlsym(RTLD_NEXT, "ucp_ep_flush_nbx");
    void          *result = next(ep, param);

    under_way += is_request(result);
    return result;
}

void ucp_request_free(void *request)
{
    free_function next = (free_function)dlsym(RTLD_NEXT, "ucp_request_free");

    --under_way;
    next(request);
}

__attribute__((destructor)) static void tell(void)
{
    if (most_under_way > 0) {
        fprintf(stderr, "liar: %ld GETs at most\n", most_under_way);
    }
    if (bytes_read + bytes_written > 0) {
        fprintf(stderr, "liar: read %llu wrote %llu\n", (unsigned long long)bytes_read,
                (unsigned long long)bytes_written);
    }
}
