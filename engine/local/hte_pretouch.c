/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_pretouch.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS_MAX 8

struct share {
    pthread_t thread;
    char     *addr;
    uint64_t  length;
};

/* The kernel's own way (Linux 5.14): no fault per page, and an error instead of a signal for memory that cannot be
 * written. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void *touch(void *arg)
{
    struct share *share = arg;

    madvise(share->addr, share->length, MADV_POPULATE_WRITE); /* an old kernel refuses: registration does the work */
    return NULL;
}

void hte_pretouch(void *addr, uint64_t length, uint64_t min_length)
{
    uint64_t     page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t     from = (uint64_t)addr & ~(page - 1), to = ((uint64_t)addr + length + page - 1) & ~(page - 1), part;
    long         cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct share shares[THREADS_MAX];
    unsigned     i, count, started = 0;

    if (min_length == 0 || length < min_length) {
        return;
    }
    count = cpus < 1 ? 1 : cpus > THREADS_MAX ? THREADS_MAX : (unsigned)cpus;
    part  = ((to - from) / count + page - 1) & ~(page - 1);
    for (i = 0; i < count && from < to; ++i, from += part) {
        shares[i].addr   = (char *)from;
        shares[i].length = to - from < part ? to - from : part;
        if (pthread_create(&shares[i].thread, NULL, touch, &shares[i]) != 0) {
            break;
        }
        ++started;
    }
    for (i = 0; i < started; ++i) {
        pthread_join(shares[i].thread, NULL);
    }
}
