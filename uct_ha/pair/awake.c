/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/awake.h"

void uct_ha_wakes_open(struct uct_ha_wakes *wakes)
{
    ucs_list_head_init(&wakes->awake);
    ucs_list_head_init(&wakes->busy);
}

/* It is in the stack once: `woken` is set by who puts it there, and unset when it is taken out. */
void uct_ha_awake_posted(struct uct_ha_awake *awake)
{
    struct uct_ha_wakes *wakes = awake->wakes;

    __atomic_store_n(&awake->tx->awake, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&awake->woken, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    awake->woken_next = __atomic_load_n(&wakes->woken, __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(&wakes->woken, &awake->woken_next, awake, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

void uct_ha_awake_collect(struct uct_ha_wakes *wakes)
{
    struct uct_ha_awake *awake = __atomic_exchange_n(&wakes->woken, NULL, __ATOMIC_ACQUIRE);
    struct uct_ha_awake *next;

    for (; awake != NULL; awake = next) {
        next = awake->woken_next;
        __atomic_store_n(&awake->woken, 0, __ATOMIC_RELEASE);
        uct_ha_awake_now(awake);
    }
}

void uct_ha_awake_now(struct uct_ha_awake *awake)
{
    awake->dozing = 0;
    if (!awake->listed) {
        awake->listed = 1;
        awake->fresh  = 1;
        ucs_list_add_tail(&awake->wakes->awake, &awake->link);
        awake->peer->awake++;
        uct_ha_busy_begin(awake->peer, awake->wakes);
    }
}

static void leave(struct uct_ha_awake *awake)
{
    awake->listed = 0;
    ucs_list_del(&awake->link);
    awake->peer->awake--;
}

void uct_ha_awake_looked(struct uct_ha_awake *awake, uint64_t due)
{
    if (due != UINT64_MAX || uct_ha_txlog_head(awake->tx) != uct_ha_txlog_tail(awake->tx)) {
        awake->dozing = 0;
    } else if (!awake->dozing || __atomic_load_n(&awake->tx->awake, __ATOMIC_RELAXED)) {
        awake->dozing = 1;
        __atomic_store_n(&awake->tx->awake, 0, __ATOMIC_RELAXED);
    } else {
        leave(awake);
    }
}

void uct_ha_awake_begin(struct uct_ha_awake *awake, struct uct_ha_wakes *wakes, struct uct_ha_busy *peer,
                        struct uct_ha_txlog *tx)
{
    awake->wakes = wakes;
    awake->peer  = peer;
    awake->tx    = tx;
    uct_ha_awake_now(awake);
}

void uct_ha_awake_end(struct uct_ha_awake *awake)
{
    uct_ha_awake_collect(awake->wakes); /* progress calls this, so nobody puts it there now */
    if (awake->listed) {
        leave(awake);
    }
    uct_ha_busy_begin(awake->peer, awake->wakes); /* without connections it may be forgotten, in time */
}

void uct_ha_busy_begin(struct uct_ha_busy *peer, struct uct_ha_wakes *wakes)
{
    if (!peer->busy) {
        peer->busy = 1;
        ucs_list_add_tail(&wakes->busy, &peer->link);
    }
}

void uct_ha_busy_end(struct uct_ha_busy *peer)
{
    if (peer->busy) {
        peer->busy = 0;
        ucs_list_del(&peer->link);
    }
}
