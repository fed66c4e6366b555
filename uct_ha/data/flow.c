/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/flow.h"

#include "lane/look.h"
#include "pair/conn.h"
#include "pair/peer.h"

#include <stdlib.h>
#include <string.h>

void uct_ha_flows_init(struct uct_ha_flows *flows, size_t get_bytes)
{
    flows->gets_left = (int64_t)ucs_min(get_bytes, (size_t)INT64_MAX);
    ucs_list_head_init(&flows->pending);
    ucs_list_head_init(&flows->backlog);
    ucs_list_head_init(&flows->silent);
    uct_ha_slab_init(&flows->slab, sizeof(struct uct_ha_flow));
    uct_ha_slab_init(&flows->rings, UCT_HA_RING_BYTES);
}

void uct_ha_flows_cleanup(struct uct_ha_flows *flows)
{
    uct_ha_slab_cleanup(&flows->slab);
    uct_ha_slab_cleanup(&flows->rings);
}

void uct_ha_flow_list_silent(struct uct_ha_flow *flow)
{
    flow->silent_listed = 1;
    flow->silent_tail   = flow->tx.log.tail - 1; /* it has sent since */
    ucs_list_add_tail(&flow->flows->silent, &flow->silent_link);
}

static void init(struct uct_ha_flow *flow, struct uct_ha_flows *flows, const struct uct_ha_peer *peer)
{
    flow->flows         = flows;
    flow->tx_slot       = HA_NO_SLOT;
    flow->rx_slot       = HA_NO_SLOT;
    flow->road.sends    = flow->go.sends;
    flow->tx_credits    = (uint16_t)peer->credits;
    flow->put_counts    = (peer->caps & HA_CAP_COUNTED) != 0;
    flow->card_atomics  = (peer->caps & HA_CAP_ATOMIC_HW) != 0;
    flow->put_op        = flow->put_counts ? HA_WRITE_IMM : HA_WRITE;
    flow->go.fence_seen = flows->fence_seq;
    ucs_list_head_init(&flow->pending);
    ucs_list_head_init(&flow->flushes);
}

ucs_status_t uct_ha_flow_create(struct uct_ha_flows *flows, struct uct_ha_peer *peer, uint32_t sn, int accepted,
                                struct uct_ha_flow **flow_p)
{
    struct uct_ha_flow *flow = uct_ha_slab_alloc(&flows->slab);
    struct uct_ha_conn *conn;
    ucs_status_t        status;

    if (flow == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    memset(flow, 0, sizeof(*flow));
    if (uct_ha_txlog_open(&flow->tx, flows->lanes->log_len, flows->count, &flows->rings) != 0) {
        uct_ha_slab_free(&flows->slab, flow);
        return UCS_ERR_NO_MEMORY;
    }
    init(flow, flows, peer);
    status = uct_ha_conn_create(peer, sn, accepted, &flow->road, &flow->tx, &conn);
    if (status != UCS_OK) {
        uct_ha_txlog_close(&flow->tx);
        uct_ha_slab_free(&flows->slab, flow);
        return status;
    }
    flows->count++;
    *flow_p = flow;
    return UCS_OK;
}

static void use_locked(struct uct_ha_flow *flow, unsigned used)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        int more = (int)(used >> s & 1u) - (int)(flow->used >> s & 1u);

        if (more != 0) {
            uct_ha_look_used_locked(flow->road.lanes, s, more);
        }
    }
    flow->used = used;
}

void uct_ha_flow_destroy(struct uct_ha_flow *flow)
{
    struct uct_ha_flows *flows = flow->flows;

    use_locked(flow, 0);
    uct_ha_conn_destroy(flow->road.conn);
    if (flow->backlogged) {
        ucs_list_del(&flow->backlog_link);
    }
    if (flow->pending_queued) {
        ucs_list_del(&flow->pending_link);
    }
    if (flow->silent_listed) {
        ucs_list_del(&flow->silent_link);
    }
    flows->outstanding -= ha_log_used(&flow->tx.log) + uct_ha_flow_atomics(flow);
    flows->count--;
    uct_ha_txlog_close(&flow->tx);
    free(flow->amo);
    uct_ha_slab_free(&flows->slab, flow);
}

void uct_ha_flow_refresh_locked(struct uct_ha_flow *flow)
{
    const struct ha_pair *pair = &flow->road.conn->pair;

    flow->rx_slot = ha_pair_rx_slot(pair);
    flow->tx_slot = flow->tx.dead ? HA_NO_SLOT : ha_pair_tx_slot(pair);
    if (flow->tx_slot != HA_NO_SLOT && flow->road.lane[flow->tx_slot] == NULL) {
        flow->tx_slot = HA_NO_SLOT;
    }
    if (flow->rx_slot != HA_NO_SLOT && flow->road.lane[flow->rx_slot] == NULL) {
        flow->rx_slot = HA_NO_SLOT;
    }
    uct_ha_flow_close_go(flow);
    uct_ha_flow_turn(flow);
    use_locked(flow, (flow->tx_slot != HA_NO_SLOT ? 1u << flow->tx_slot : 0) |
                         (flow->rx_slot != HA_NO_SLOT ? 1u << flow->rx_slot : 0));
}
