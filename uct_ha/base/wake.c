/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/wake.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int uct_ha_wake_open(struct uct_ha_wake *wake)
{
    pthread_mutex_init(&wake->lock, NULL);
    wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return wake->fd < 0 ? -errno : 0;
}

void uct_ha_wake_close(struct uct_ha_wake *wake)
{
    if (wake->fd >= 0) {
        close(wake->fd);
    }
    pthread_mutex_destroy(&wake->lock);
}

void uct_ha_wake_user(struct uct_ha_wake *wake)
{
    uint64_t one = 1;

    if (__atomic_load_n(&wake->pending, __ATOMIC_ACQUIRE) && __atomic_exchange_n(&wake->armed, 0, __ATOMIC_ACQ_REL)) {
        ssize_t written;

        __atomic_fetch_add(&wake->written, 1, __ATOMIC_RELEASE); /* before: what is in `fd` has been counted */
        written = write(wake->fd, &one, sizeof(one));
        (void)written; /* a full counter is readable as well */
    }
}

void uct_ha_wake_arm(struct uct_ha_wake *wake)
{
    uint64_t count;

    if (__atomic_load_n(&wake->written, __ATOMIC_ACQUIRE) != 0 && read(wake->fd, &count, sizeof(count)) > 0) {
        __atomic_fetch_sub(&wake->written, (uint32_t)count, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&wake->armed, 1, __ATOMIC_SEQ_CST);
}

int uct_ha_wake_may_sleep(struct uct_ha_wake *wake, int busy)
{
    if (busy || __atomic_load_n(&wake->pending, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&wake->armed, 0, __ATOMIC_RELAXED);
        return 0;
    }
    return 1;
}
