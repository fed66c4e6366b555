/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/go.h"

static struct uct_ha_lane *lane_of(const struct uct_ha_flow *flow)
{
    struct uct_ha_lane *lane;

    if (flow->tx_slot == HA_NO_SLOT || flow->tx.dead || uct_ha_flow_fence_waits(flow) ||
        !ha_log_no_backlog(&flow->tx.log) || flow->put_counts) {
        return NULL;
    }
    lane = flow->road.lane[flow->tx_slot];
    return lane->log_mtu == 0 || (lane->log_mtu & (lane->log_mtu - 1)) != 0 ? NULL : lane;
}

/* A full log of operations of so many bytes takes a quarter of the window of packet numbers. */
static uint32_t light(const struct uct_ha_flow *flow, const struct uct_ha_lane *lane)
{
    return HA_PSN_WINDOW / 4 / flow->tx.length * lane->log_mtu;
}

/* Of this room, while others wait for their turn: none, but one operation when the turn is theirs. */
static uint32_t in_turn(struct uct_ha_flow *flow, uint32_t room)
{
    if (ucs_likely(ucs_list_is_empty(&flow->pending))) {
        return room;
    }
    return flow->flows->dispatching == flow && room > 0;
}

static uint32_t credits(const struct uct_ha_flow *flow)
{
    int left = (int)flow->tx_credits - (int16_t)(flow->tx.sent - flow->tx_granted);

    return left > 0 ? (uint32_t)left : 0;
}

/* One in so many tells, or in a few less: a power of two. */
static uint8_t told_mask(uint32_t every)
{
    return every > 1 ? (uint8_t)((1u << (31 - __builtin_clz(ucs_min(every, 256u)))) - 1) : 0;
}

static uint8_t zcopy_shift(const struct uct_ha_flow *flow)
{
    return (uint8_t)(31 - __builtin_clz(ucs_min(ucs_min(flow->light, UCT_HA_LONG_OP), flow->road.lanes->max_zcopy)));
}

static int is_far_ahead(const struct uct_ha_flow *flow, unsigned slot)
{
    return ha_log_ahead(&flow->tx.log, (int)slot) >= HA_PSN_WINDOW / 4;
}

/* Both each time: a limit that nobody has set for 2^31 operations would be ahead again. */
static int open_limits(struct uct_ha_flow *flow, int message)
{
    uint32_t tail = flow->tx.log.tail, left = in_turn(flow, ha_log_room(&flow->tx.log));

    flow->go.limit[0] = tail + (uct_ha_flow_fenced_atomics(flow) ? 0 : left);
    flow->go.limit[1] = tail + ucs_min(left, credits(flow));
    return uct_ha_go_is_open(flow, message);
}

static int open_anew(struct uct_ha_flow *flow, int message)
{
    struct uct_ha_lane *lane = lane_of(flow);

    uct_ha_flow_close_go(flow);
    if (lane == NULL || light(flow, lane) < lane->log_mtu || is_far_ahead(flow, lane->slot)) {
        return 0;
    }
    flow->go.slot     = lane->slot;
    flow->go.room     = lane->room;
    flow->go.rc       = lane->rc;
    flow->go.send_tag = lane->send_tag;
    flow->go.rail_no  = (uint8_t)flow->road.lanes->rail_no[lane->slot];
    flow->go.mtu      = (uint16_t)lane->log_mtu;
    flow->go.shift    = (uint8_t)__builtin_ctz(lane->log_mtu);
    flow->light       = light(flow, lane);

    flow->go.zcopy_shift = zcopy_shift(flow);
    flow->go.told_mask   = told_mask(uct_ha_flow_tell_every(flow, lane));
    flow->go.max_inline  = (uint8_t)flow->road.lanes->max_inline;
    flow->opens_on       = 1;
    if (!flow->silent_listed) {
        uct_ha_flow_list_silent(flow);
    }
    ha_log_run_on(&flow->tx.log, lane->slot);
    return open_limits(flow, message);
}

/* Of one that was not closed, and has no fence to take, only what the limits come from is looked at: there may be room
 * by now, or credits. A log that grows closes it, for more is different then. */
int uct_ha_go_open(struct uct_ha_flow *flow, int message)
{
    if (ucs_unlikely(!uct_ha_tx_has_room(flow))) {
        uct_ha_flow_hold_go(flow);
        return 0;
    }
    if (flow->opens_on && !uct_ha_flow_fence_waits(flow) && !is_far_ahead(flow, flow->go.slot)) {
        return open_limits(flow, message);
    }
    return open_anew(flow, message);
}

void uct_ha_go_far(struct uct_ha_flow *flow, int go, enum ha_op_kind kind, unsigned flags)
{
    struct uct_ha_out         out  = uct_ha_tx_out(flow, flow->tx.log.tail, kind, flags);
    const struct uct_ha_desc *desc = out.txop->desc;
    struct ha_sge             sge;
    struct ha_send            send;

    if (!go || out.length > flow->light || !uct_ha_reg_is_on(desc->mem, flow->go.rail_no)) {
        uct_ha_tx_send(flow, kind, flags);
        return;
    }
    ha_sge_set(&sge, (uintptr_t)desc->data, out.length, desc->mem->lkey[flow->go.rail_no]);
    send.sge     = &sge;
    send.num_sge = 1;
    uct_ha_go_out(flow, &out, uct_ha_go_packets(flow, out.length), 0, &send);
}

void uct_ha_go_tell(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags, uint32_t npsn, unsigned send_flags,
                    struct ha_send *send)
{
    struct uct_ha_out out = uct_ha_tx_out(flow, flow->tx.log.tail, kind, flags);

    uct_ha_go_post(flow, &out, npsn, send_flags, 0, send);
}
