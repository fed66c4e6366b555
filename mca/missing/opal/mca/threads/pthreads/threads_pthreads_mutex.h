/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MCA_MISSING_THREADS_PTHREADS_MUTEX_H_
#define MCA_MISSING_THREADS_PTHREADS_MUTEX_H_

/*
 * Open MPI 5's headers include this one, and Debian's libopenmpi-dev 5.0 has it not. What they need of it to be
 * compiled, and no more: the hook has no object of these types and calls none of their functions, so it does not matter
 * what they look like inside. Searched last: where Open MPI's own one is, that is taken.
 */

#include <pthread.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t  opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER

int  opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex);
void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex);
void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex);

#endif
