/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_WAKE_H_
#define UCT_HA_WAKE_H_

/*
 * Where progress and the other threads of an interface meet. What both touch is guarded by
 * the lock (functions named *_locked want it held), and one flag calls progress: it looks at
 * that once per call and takes the lock only when it is set. A user who sleeps on the
 * event descriptor does not see the flag: he is woken by `fd`.
 */

#include <pthread.h>
#include <stdint.h>

struct uct_ha_wake {
    pthread_mutex_t lock;
    int             pending; /* atomic: progress should come */
    int             armed;   /* atomic: the user sleeps on the event descriptor */
    int             fd;      /* becomes readable; -1 before it is open */
    uint32_t        written; /* atomic: to `fd`, or just about to be, and not read from it */
    uint32_t        polls;   /* calls of progress, which alone writes it */
};

/* 0 or a negative errno value; the lock can be used in either case, until close. */
int  uct_ha_wake_open(struct uct_ha_wake *wake);
void uct_ha_wake_close(struct uct_ha_wake *wake);

/* Progress should come. Any thread, with the lock or without. */
static inline void uct_ha_wake_progress(struct uct_ha_wake *wake)
{
    __atomic_store_n(&wake->pending, 1, __ATOMIC_RELEASE);
}

/* If progress was called, wake the user who is to call it. */
void uct_ha_wake_user(struct uct_ha_wake *wake);

/* The user is about to sleep. Afterwards look once more at everything that may have come,
 * then ask uct_ha_wake_may_sleep(). */
void uct_ha_wake_arm(struct uct_ha_wake *wake);
int  uct_ha_wake_may_sleep(struct uct_ha_wake *wake, int busy);

#endif
