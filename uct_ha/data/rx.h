/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RX_H_
#define UCT_HA_RX_H_

/*
 * Receiving. A message is delivered only from the lane whose turn it is
 * (flow->rx_slot); what arrives on a younger lane before the older one is
 * closed is held in order. Data part only: progress, no lock.
 */

#include "data/flow.h"
#include "lane/ring.h"

#define UCT_HA_RX_SHORT 256 /* bytes: what the user has to copy if he wants to keep it */

/* All but an active message whose turn it is: failures, credits, PUTs, atomics, and what is
 * held or refused. */
void uct_ha_rx_other(struct uct_ha_lane *lane, const struct ha_wc *wc, struct uct_ha_place *place);

/* Post again what has been consumed, and tell the peer in time how much that was. */
void uct_ha_rx_repost(struct uct_ha_flow *flow);

/* The peer has consumed more of our messages. Old totals may arrive late, in a
 * message that was sent again: forward only. */
static inline void uct_ha_rx_credits(struct uct_ha_flow *flow, uint32_t total)
{
    if (ucs_unlikely(total != flow->tx_granted) && (int16_t)(total - flow->tx_granted) > 0) {
        flow->tx_granted = total;
    }
}

/* A message has been consumed. */
static inline void uct_ha_rx_release(struct uct_ha_flow *flow, struct uct_ha_place *place, struct uct_ha_chain *chain)
{
    uct_ha_ring_free(place, chain);
    if (ucs_unlikely(--flow->road.rx_left == 0)) {
        uct_ha_rx_repost(flow);
    }
}

/* Nothing is reserved to take the place of a message that the user keeps: is there anything? */
int uct_ha_rx_may_keep(struct uct_ha_lanes *lanes, unsigned slot);

/* He keeps it. */
void uct_ha_rx_kept(struct uct_ha_lanes *lanes, unsigned slot, struct uct_ha_place *place);

/* The user gets a message, and may keep it: another buffer takes its place. A short one is copied more cheaply than a
 * buffer is replaced, which it would hold. */
static UCS_F_ALWAYS_INLINE void uct_ha_rx_am(const struct uct_ha_flows *flows, unsigned slot,
                                             struct uct_ha_place *place, uint32_t length, uint32_t imm)
{
    uint8_t *data  = (uint8_t *)(uintptr_t)place->sge.addr;
    unsigned flags = 0;

    if (length > UCT_HA_RX_SHORT &&
        (ucs_likely(flows->lanes->spare[slot] != NULL) || uct_ha_rx_may_keep(flows->lanes, slot))) {
        uct_ha_desc_offer(&flows->lanes->pool, data);
        flags = UCT_CB_PARAM_FLAG_DESC;
    }
    if (ucs_unlikely(uct_ha_iface_invoke_am(flows->base, imm & UCT_HA_IMM_AM_MASK, data, length, flags) ==
                     UCS_INPROGRESS)) {
        uct_ha_rx_kept(flows->lanes, slot, place);
    }
}

/* Receive completion of the lane in that slot of a road of `flows`, good or bad: what came from `source` is in `place`,
 * which goes to its `chain`. */
static UCS_F_ALWAYS_INLINE void uct_ha_rx_completion(const struct uct_ha_flows *flows, struct uct_ha_road *road,
                                                     unsigned slot, const void *source, const struct ha_wc *wc,
                                                     struct uct_ha_place *place, struct uct_ha_chain *chain)
{
    struct uct_ha_flow *flow = uct_ha_flow_of(road);
    uint32_t            imm  = wc->imm;

    if (ucs_unlikely((wc->status | (imm & UCT_HA_IMM_SPECIAL)) != HA_WC_OK || flow->rx_open != source)) {
        uct_ha_rx_other(road->lane[slot], wc, place);
        return;
    }
    uct_ha_road_receive(road, slot);
    uct_ha_rx_credits(flow, imm >> UCT_HA_IMM_CREDIT_SHIFT);
    uct_ha_rx_am(flows, slot, place, wc->byte_len, imm);
    uct_ha_rx_release(flow, place, chain);
}

/* The lane that may deliver has changed: deliver what was held on it. */
void uct_ha_rx_resume(struct uct_ha_flow *flow);

#endif
