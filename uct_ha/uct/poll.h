/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_POLL_H_
#define UCT_HA_POLL_H_

#include "lane/look.h"
#include "uct/iface.h"

/* A queue of which nothing is awaited is looked at in each so-manieth call of progress. */
#define UCT_HA_POLL_RARELY 32

void uct_ha_poll_take(struct uct_ha_iface *iface, const struct ha_wc *wc, int count);

/* Take what the completion queue of a rail holds; progress, no lock held: messages are
 * delivered. Returns how many there were. */
unsigned uct_ha_poll_slot(struct uct_ha_iface *iface, int slot);

/* ... of all rails. */
unsigned uct_ha_poll(struct uct_ha_iface *iface);

/* ... of those where something is awaited, and now and then of all. */
static UCS_F_ALWAYS_INLINE unsigned uct_ha_poll_awaited(struct uct_ha_iface *iface)
{
    int          slot = uct_ha_look(&iface->lanes), count;
    struct ha_wc wc[UCT_HA_POLL_BATCH];

    if (ucs_unlikely(iface->patience-- == 0 || slot == UCT_HA_LOOK_ALL)) {
        return uct_ha_poll(iface);
    }
    count = ha_cq_poll(iface->lanes.room[slot].cq, wc, UCT_HA_POLL_BATCH);
    if (count <= 0) {
        return 0;
    }
    uct_ha_poll_take(iface, wc, count);
    return (unsigned)count;
}

#endif
