/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/poll.h"

#include "data/rx.h"
#include "data/tx.h"
#include "pair/fact.h"

static void take_other(struct uct_ha_iface *iface, const struct ha_wc *wc)
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
    default:
        uct_ha_fact_drained(lane);
        break;
    }
}

void uct_ha_poll_take(struct uct_ha_iface *iface, const struct ha_wc *wc, int count)
{
    struct uct_ha_lane *lane;

    for (int i = 0; i < count; i++) {
        lane = uct_ha_lane_of_receive(&iface->lanes, wc[i].wr_id);
        if (lane != NULL) {
            uct_ha_rx_completion(lane, &wc[i]);
        } else {
            take_other(iface, &wc[i]);
        }
    }
}

unsigned uct_ha_poll_slot(struct uct_ha_iface *iface, int slot)
{
    struct ha_wc wc[UCT_HA_POLL_BATCH];
    int          count;

    if (iface->stashed & (1u << slot)) {
        iface->stashed &= (uint8_t) ~(1u << slot);
        uct_ha_poll_take(iface, &iface->stash[slot], 1);
        return 1;
    }
    count = ha_cq_poll(iface->lanes.room[slot].cq, wc, UCT_HA_POLL_BATCH);
    if (count <= 0) {
        return 0;
    }
    uct_ha_poll_take(iface, wc, count);
    return (unsigned)count;
}

unsigned uct_ha_poll(struct uct_ha_iface *iface)
{
    int      look = uct_ha_look(&iface->lanes);
    unsigned all  = 0, count;

    iface->patience = UCT_HA_POLL_RARELY - 1;
    for (int s = 0; s < iface->lanes.slots; s++) {
        count = uct_ha_poll_slot(iface, s);
        if (count > 0 && s != look) {
            iface->patience = 0; /* more, perhaps */
        }
        all += count;
    }
    return all;
}
