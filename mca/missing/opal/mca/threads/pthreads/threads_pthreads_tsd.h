/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MCA_MISSING_THREADS_PTHREADS_TSD_H_
#define MCA_MISSING_THREADS_PTHREADS_TSD_H_

/* See threads_pthreads_mutex.h. */

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif
