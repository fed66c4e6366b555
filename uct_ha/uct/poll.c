/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/poll.h"

#include "data/retire.h"
#include "data/rx.h"
#include "lane/number.h"
#include "lane/repost.h"
#include "pair/fact.h"

/* Two sends of one lane that succeeded: the later one says all that there is to say. Where marks are counted they are
 * taken one by one. */
static inline int is_said_by_next(const struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    return (wc[0].wr_id ^ wc[1].wr_id) >> 32 == 0 && wc[0].status == HA_WC_OK && wc[1].status == HA_WC_OK &&
           lane->log_mtu != 0;
}

/* Returns the last one that was taken. */
static const struct ha_wc *take_other(struct uct_ha_iface *iface, const struct ha_wc *wc, const struct ha_wc *end)
{
    struct uct_ha_lane *lane  = uct_ha_lane_of(&iface->lanes, wc->wr_id);
    const struct ha_wc *first = wc;

    if (ucs_unlikely(lane == NULL)) {
        return wc; /* of a lane that is gone */
    }
    switch (wc->wr_id >> 60) {
    case UCT_HA_WR_SEND:
        while (wc + 1 != end && is_said_by_next(lane, wc)) {
            wc++;
        }
        uct_ha_tx_completion(lane, wc, (unsigned)(wc - first));
        break;
    case UCT_HA_WR_MARK:
        uct_ha_tx_completion(lane, wc, 0);
        break;
    default:
        uct_ha_fact_drained(lane);
        break;
    }
    return wc;
}

/* A receive that the lanes of a slot share. */
static UCS_F_ALWAYS_INLINE void take_shared(struct uct_ha_iface *iface, const struct ha_wc *wc)
{
    struct uct_ha_place  *place  = uct_ha_wr_place(wc->wr_id);
    struct uct_ha_shared *shared = place->shared;
    struct uct_ha_road   *road   = uct_ha_number_road(shared, wc->qpn);

    if (ucs_likely(road != NULL)) {
        uct_ha_rx_completion(&iface->flows, road, shared->slot, shared, wc, place, &shared->chain);
        uct_ha_shared_consumed(shared);
    } else {
        uct_ha_shared_drop(place); /* of a lane that is gone */
    }
}

/* Returns the last one that was taken. */
static inline const struct ha_wc *take_own(struct uct_ha_iface *iface, const struct ha_wc *wc, const struct ha_wc *end)
{
    struct uct_ha_lane *lane = uct_ha_lane_of_receive(&iface->lanes, wc->wr_id);

    if (lane == NULL) {
        return take_other(iface, wc, end);
    }
    uct_ha_rx_completion(&iface->flows, lane->road, lane->slot, lane, wc, uct_ha_ring_place(lane, (uint32_t)wc->wr_id),
                         &lane->own_chain);
    return wc;
}

void uct_ha_poll_take(struct uct_ha_iface *iface, const struct ha_wc *wc, int count)
{
    const struct ha_wc *end = wc + count;

    for (; wc != end; wc++) {
        if (uct_ha_wr_is_shared(wc->wr_id)) {
            take_shared(iface, wc);
        } else {
            wc = take_own(iface, wc, end);
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
        if (iface->lanes.room[s].lent) {
            continue; /* the other slot's */
        }
        count = uct_ha_poll_slot(iface, s);
        if (count > 0 && s != look) {
            iface->patience = 0; /* more, perhaps */
        }
        all += count;
    }
    return all;
}
