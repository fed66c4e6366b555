/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/accept.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/path.h"
#include "ctl/terms.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#include <string.h>

/* The peer as its packet describes it; NULL: not now. */
static struct uct_ha_peer *meet(struct uct_ha_iface *iface, const struct uct_ha_accept *accept)
{
    const struct ha_packet_header *header = &accept->header;
    struct uct_ha_peer            *peer   = uct_ha_peer_find(&iface->pairs, header->src_cookie);

    if (peer == NULL) {
        peer = uct_ha_peer_create(&iface->pairs, header->src_cookie, accept->record.slots, header->credits);
        if (peer == NULL) {
            return NULL; /* the peer asks again */
        }
    }
    uct_ha_peer_offers(peer, accept->record.slots, header->credits, header->caps);
    uct_ha_path_learn_locked(peer, header);
    uct_ha_peer_heard_until(peer, header->number);
    if (header->carrier < HA_SLOTS) {
        peer->rail[header->carrier].used = 1;
    }
    uct_ha_path_find(peer, uct_ha_now());
    /* Refused: it is told when it asks again; the way back is not known yet. */
    return uct_ha_terms_learn_locked(peer, header) ? peer : NULL;
}

void uct_ha_accept_locked(struct uct_ha_iface *iface, const struct uct_ha_accept *accept)
{
    struct ha_event     event = {.kind = HA_EV_RECORD, .record = &accept->record.state};
    struct uct_ha_peer *peer  = meet(iface, accept);
    struct uct_ha_flow *flow;
    struct uct_ha_conn *conn;

    if (peer == NULL) {
        return;
    }
    conn = uct_ha_conn_find(peer, &accept->record);
    if (conn == NULL) {
        if (uct_ha_flow_create(&iface->flows, peer, accept->record.sn, 1, &flow) != UCS_OK) {
            return;
        }
        conn = flow->road.conn;
        uct_ha_fact_start_locked(conn);
    }
    if (ha_packet_record_check(&conn->pair, &accept->record.state) != 0) {
        UCT_HA_STATS_ADD(ctl_dropped, 1);
        UCT_HA_STATS_ADD(ctl_unfit, 1);
        return;
    }
    conn->peer_id = accept->record.src_ep;
    uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    uct_ha_attention_locked(conn);
}

void uct_ha_accept_all_locked(struct uct_ha_iface *iface)
{
    struct uct_ha_ctl   *ctl = &iface->ctl;
    struct uct_ha_accept accept;

    while (ctl->num_accepts > 0) {
        accept = ctl->accepts[0];
        memmove(&ctl->accepts[0], &ctl->accepts[1], --ctl->num_accepts * sizeof(ctl->accepts[0]));
        uct_ha_accept_locked(iface, &accept);
    }
}
