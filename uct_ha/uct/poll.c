/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/poll.h"

#include "data/rx.h"
#include "data/tx.h"
#include "pair/fact.h"

static inline void take_completion(struct uct_ha_iface *iface, const struct ha_wc *wc)
{
    struct uct_ha_lane *lane = uct_ha_lane_of(&iface->lanes, wc->wr_id);

    if (ucs_unlikely(lane == NULL)) {
        return; /* of a lane that is gone */
    }
    switch (wc->wr_id >> 60) {
    case UCT_HA_WR_SEND:
    case UCT_HA_WR_MARK:
        uct_ha_tx_completion(lane, wc);
        break;
    case UCT_HA_WR_RECV:
        uct_ha_rx_completion(lane, wc);
        break;
    default:
        uct_ha_fact_drained(lane);
        break;
    }
}

unsigned uct_ha_poll_slot(struct uct_ha_iface *iface, int slot)
{
    struct ha_wc wc[UCT_HA_POLL_BATCH];
    int          count;

    if (ucs_unlikely(iface->stashed & (1u << slot))) {
        iface->stashed &= (uint8_t) ~(1u << slot);
        take_completion(iface, &iface->stash[slot]);
        return 1;
    }
    count = ha_cq_poll(iface->lanes.room[slot].cq, wc, UCT_HA_POLL_BATCH);
    for (int i = 0; i < count; i++) {
        take_completion(iface, &wc[i]);
    }
    return count > 0 ? (unsigned)count : 0;
}
