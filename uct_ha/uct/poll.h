/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_POLL_H_
#define UCT_HA_POLL_H_

#include "uct/iface.h"

/* Take what the completion queue of a rail holds; progress, no lock held: messages are
 * delivered. Returns how many there were. */
unsigned uct_ha_poll_slot(struct uct_ha_iface *iface, int slot);

static inline unsigned uct_ha_poll(struct uct_ha_iface *iface)
{
    unsigned count = 0;

    for (int s = 0; s < iface->lanes.slots; s++) {
        count += uct_ha_poll_slot(iface, s);
    }
    return count;
}

#endif
