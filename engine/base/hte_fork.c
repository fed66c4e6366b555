/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_fork.h"

#include <pthread.h>
#include <stdatomic.h>

static _Atomic uint64_t generation;
static pthread_once_t   once = PTHREAD_ONCE_INIT;
static int              watch_error;

/* In the child, before its fork() returns: it has this one thread. */
static void count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void watch(void)
{
    watch_error = pthread_atfork(NULL, NULL, count_fork);
}

int hte_fork_watch(void)
{
    pthread_once(&once, watch);
    return watch_error;
}

uint64_t hte_fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}
