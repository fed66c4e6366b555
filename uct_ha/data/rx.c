/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/rx.h"

#include "data/amo.h"
#include "data/tx.h"
#include "lane/repost.h"
#include "pair/attention.h"
#include "pair/fact.h"

void uct_ha_rx_repost(struct uct_ha_flow *flow)
{
    if (ucs_unlikely(flow->flows->lanes->rings)) {
        uct_ha_ring_repost(&flow->road);
    }
    flow->go.rx_consumed = (uint16_t)(flow->go.rx_consumed + flow->road.rx_round - flow->road.rx_left);
    flow->road.rx_round = flow->road.rx_left = flow->road.rx_chain;
    if (ucs_unlikely((uint16_t)(flow->go.rx_consumed - flow->go.rx_told) >= flow->road.rx_window / 2)) {
        flow->go.rx_consumed = (uint16_t)(flow->go.rx_consumed + uct_ha_ring_grow(&flow->road));
        uct_ha_tx_credit(flow);
    }
}

int uct_ha_rx_may_keep(struct uct_ha_lanes *lanes, unsigned slot)
{
    lanes->spare[slot] = uct_ha_desc_spare(&lanes->pool, lanes->rail_no[slot]);
    return lanes->spare[slot] != NULL;
}

void uct_ha_rx_kept(struct uct_ha_lanes *lanes, unsigned slot, struct uct_ha_place *place)
{
    uct_ha_place_fill(place, lanes->spare[slot], lanes, (int)slot);
    lanes->spare[slot] = NULL;
    lanes->pool.kept++;
}

/* A message without a credit of its own took a receive that was meant for just that. */
static void release(struct uct_ha_lane *lane, struct uct_ha_place *place, uint32_t imm)
{
    struct uct_ha_flow *flow = uct_ha_flow_of(lane->road);

    if (imm & UCT_HA_IMM_CREDIT_ONLY) {
        uct_ha_ring_free(place, lane->chain);
        uct_ha_rx_repost(flow);
    } else {
        uct_ha_rx_release(flow, place, lane->chain);
    }
    if (ucs_unlikely(lane->closing)) {
        uct_ha_attention(flow->road.conn);
    }
}

static void deliver(struct uct_ha_lane *lane, struct uct_ha_place *place, uint32_t length, uint32_t imm)
{
    struct uct_ha_flow *flow = uct_ha_flow_of(lane->road);

    uct_ha_rx_credits(flow, imm >> UCT_HA_IMM_CREDIT_SHIFT);
    if (!(imm & UCT_HA_IMM_CREDIT_ONLY)) {
        if (imm & (UCT_HA_IMM_AMO_REQUEST | UCT_HA_IMM_AMO_REPLY)) {
            uct_ha_amo_take(flow, imm, (uint8_t *)(uintptr_t)place->sge.addr, length);
        } else if (!flow->flows->discard) {
            uct_ha_rx_am(flow->flows, lane->slot, place, length, imm);
        }
    }
    release(lane, place, imm);
}

/* A PUT is in its place already; only that it happened is of interest, and for
 * that no turn has to be waited for. */
static void take_put(struct uct_ha_lane *lane, struct uct_ha_place *place, uint32_t imm)
{
    uct_ha_rx_credits(uct_ha_flow_of(lane->road), imm >> UCT_HA_IMM_CREDIT_SHIFT);
    release(lane, place, imm);
}

static void hold(struct uct_ha_lane *lane, struct uct_ha_place *place, const struct ha_wc *wc)
{
    struct uct_ha_held *held = &lane->held[lane->held_tail++ % lane->held_len];

    if (lane->shared != NULL) {
        lane->shared->chain_left++; /* it is consumed when it is delivered, not now */
    }
    place->recv.next = &uct_ha_place_is_held;
    held->buffer     = (uint32_t)(place - lane->place0);
    held->length     = wc->byte_len;
    held->imm        = wc->imm;
}

void uct_ha_rx_resume(struct uct_ha_flow *flow)
{
    struct uct_ha_shared *shared;
    struct uct_ha_lane   *lane;
    struct uct_ha_held    held;

    while (flow->rx_slot != HA_NO_SLOT && (lane = flow->road.lane[flow->rx_slot]) != NULL &&
           lane->held_head != lane->held_tail) {
        held   = lane->held[lane->held_head++ % lane->held_len];
        shared = lane->shared;
        deliver(lane, uct_ha_ring_place(lane, held.buffer), held.length, held.imm);
        if (shared != NULL) {
            uct_ha_shared_consumed(shared);
        }
    }
    uct_ha_flow_turn(flow);
}

/* A flushed receive is made by the device after ERR took hold: nothing executes
 * on this lane any more. It is the barrier behind which the proof is read. */
static void recv_failed(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    int own = lane->shared == NULL; /* else it was that of a message that was cut off, and no others follow */

    if (!uct_ha_lane_is_fenced(lane)) {
        uct_ha_fact_lane_down(lane, wc->status == HA_WC_FLUSHED ? HA_CAUSE_FLUSH : HA_CAUSE_COMPLETION);
        if ((own && lane->proof == HA_PROOF_PSN) || !uct_ha_lane_is_fenced(lane) ||
            uct_ha_flow_of(lane->road) == NULL) {
            return; /* the flushes of the other receives follow */
        }
    }
    if (own) {
        lane->ended = 1;
    }
    if (__atomic_load_n(&lane->flushed, __ATOMIC_RELAXED) && __atomic_load_n(&lane->settled, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_store_n(&lane->flushed, 1, __ATOMIC_RELEASE); /* the async handler looks at it */
    uct_ha_fact_flushed(lane);
}

void uct_ha_rx_other(struct uct_ha_lane *lane, const struct ha_wc *wc, struct uct_ha_place *place)
{
    if (lane->shared != NULL && (lane->final || wc->status != HA_WC_OK)) {
        uct_ha_ring_free(place, lane->chain);
    }
    if (lane->final) {
        return; /* the peer was told that this will not be taken */
    }
    if (wc->status != HA_WC_OK) {
        recv_failed(lane, wc);
        return;
    }
    uct_ha_road_receive(lane->road, lane->slot);
    if (wc->imm & UCT_HA_IMM_PUT) {
        take_put(lane, place, wc->imm);
    } else if (uct_ha_flow_of(lane->road)->rx_slot == lane->slot && lane->held_head == lane->held_tail) {
        deliver(lane, place, wc->byte_len, wc->imm);
    } else {
        hold(lane, place, wc);
    }
}
