/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MCA_MISSING_THREADS_PTHREADS_THREADS_H_
#define MCA_MISSING_THREADS_PTHREADS_THREADS_H_

/* See threads_pthreads_mutex.h. */

#include <sched.h>

static inline void opal_thread_yield(void)
{
    sched_yield();
}

#endif
