/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_NUMBER_H_
#define UCT_HA_NUMBER_H_

/*
 * Which lane a receive belongs to is said by the number of the queue pair. Devices give a number again, and may leave
 * completions of a queue pair that was destroyed. So a number leads nowhere from when its lane is parked until the
 * completion queue was seen empty behind the destruction; a new lane of that number waits for it.
 *
 *   lane ──▶ uct_ha_number_park_locked() ──▶ destroyed: grave ──▶ queue seen empty: uct_ha_number_forget()
 *
 * It leads to the lane's road: of the lane itself a message needs nothing.
 *
 * Progress, but for what is said to be under the lock.
 */

#include "lane/road.h"

int  uct_ha_number_open(struct uct_ha_shared *shared); /* 0 or -ENOMEM */
void uct_ha_number_close(struct uct_ha_shared *shared);

/* The lane's queue pair takes receives from here on. 0, -EAGAIN: not yet, or -ENOMEM. Under the lock. */
int uct_ha_number_enter_locked(struct uct_ha_lane *lane);

/* It is not looked for any more. Under the lock. */
void uct_ha_number_park_locked(struct uct_ha_lane *lane);

/* Destroyed: the lane is handed over, to be released when its number may come again. Any thread, without the lock. */
void uct_ha_number_bury(struct uct_ha_lane *lane);

/* Those that were buried by now; and after that, when the completion queue was seen empty, they are forgotten, or put
 * back when it was not. */
struct uct_ha_lane *uct_ha_number_take_graves(struct uct_ha_lanes *lanes, int slot);
void                uct_ha_number_forget(struct uct_ha_lanes *lanes, int slot, struct uct_ha_lane *graves);
void                uct_ha_number_put_back(struct uct_ha_lane *graves);

/* A number that must not lead anywhere yet. */
#define UCT_HA_NUMBER_RESTS ((struct uct_ha_road *)1)

/* The road of a queue pair of this number (24 bits), or NULL. */
static inline struct uct_ha_road *uct_ha_number_road(const struct uct_ha_shared *shared, uint32_t qpn)
{
    struct uct_ha_road *const *page = shared->page[qpn >> UCT_HA_PAGE_BITS];
    struct uct_ha_road        *road = page[qpn & UCT_HA_PAGE_MASK];

    return ucs_likely((uintptr_t)road > (uintptr_t)UCT_HA_NUMBER_RESTS) ? road : NULL;
}

/* The lane of a queue pair of any number, or NULL. In any thread with the lock. */
struct uct_ha_lane *uct_ha_number_find_locked(const struct uct_ha_shared *shared, uint32_t qpn);

#endif
