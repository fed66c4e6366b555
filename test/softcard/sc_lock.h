/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SC_LOCK_H_
#define SC_LOCK_H_

/* A lock of one word, and waiting on words that processes share. Nothing of libc is called: a
 * count of instructions finds all of it in this library. */

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline void sc_futex_wait(uint32_t *word, uint32_t seen, const struct timespec *limit)
{
    syscall(SYS_futex, word, FUTEX_WAIT, seen, limit, NULL, 0);
}

static inline void sc_futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline int sc_try_lock(uint32_t *lock)
{
    uint32_t free_value = 0;

    return __atomic_compare_exchange_n(lock, &free_value, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void sc_lock(uint32_t *lock)
{
    if (sc_try_lock(lock)) {
        return;
    }
    for (int spins = 0; spins < 100; spins++) {
        if (__atomic_load_n(lock, __ATOMIC_RELAXED) == 0 && sc_try_lock(lock)) {
            return;
        }
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0) {
        sc_futex_wait(lock, 2, NULL);
    }
}

static inline void sc_unlock(uint32_t *lock)
{
    if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2) {
        sc_futex_wake(lock);
    }
}

#endif
