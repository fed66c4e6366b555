/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/conn.h"

#include "data/amo.h"
#include "ctl/ctl.h"
#include "pair/failover.h"
#include "lane/fence.h"
#include "uct/iface.h"
#include "lane/ledger.h"
#include "base/random.h"
#include "lane/ring.h"
#include "lane/room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A device that was told to flush has done so by then. */
#define FLUSH_NS 10000000ull

/* Sends that one lane may have under way: every operation, each with a mark
 * where the peer wants them, and the drain marker. */
static unsigned lane_sends(const struct uct_ha_conn *conn)
{
    return conn->iface->log_len * (conn->marks ? 2 : 1) + 1;
}

static ucs_status_t table_add(struct uct_ha_iface *iface, struct uct_ha_conn *conn)
{
    struct uct_ha_ctl   *ctl = &iface->ctl;
    struct uct_ha_conn **table;
    uint32_t             len;

    for (uint32_t i = 0; i < ctl->table_len; i++) {
        if (ctl->table[i] == NULL) {
            ctl->table[i] = conn;
            conn->id      = i;
            return UCS_OK;
        }
    }
    len   = ctl->table_len == 0 ? 16 : 2 * ctl->table_len;
    table = realloc(ctl->table, len * sizeof(*table));
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (uint32_t i = ctl->table_len; i < len; i++) {
        table[i] = NULL;
    }
    conn->id        = ctl->table_len;
    table[conn->id] = conn;
    ctl->table      = table;
    ctl->table_len  = len;
    return UCS_OK;
}

static int pair_slots(const struct uct_ha_iface *iface, const struct uct_ha_peer *peer)
{
    return iface->slots == HA_SLOTS && peer->slots == HA_SLOTS ? HA_SLOTS : 1;
}

ucs_status_t uct_ha_conn_create(struct uct_ha_iface *iface, struct uct_ha_peer *peer,
                                uint32_t sn, int accepted, struct uct_ha_conn **conn_p)
{
    struct uct_ha_conn *conn = calloc(1, sizeof(*conn));
    struct ha_op       *ops  = calloc(iface->log_len, sizeof(*ops));
    ucs_status_t        status;

    if (conn == NULL || ops == NULL ||
        (conn->txops = calloc(iface->log_len, sizeof(*conn->txops))) == NULL) {
        free(ops);
        free(conn);
        return UCS_ERR_NO_MEMORY;
    }
    conn->iface      = iface;
    conn->peer       = peer;
    peer->stranger   = 0; /* numbers of pairs must not be forgotten from here on */
    conn->sn         = sn;
    conn->peer_id    = HA_EP_ANY;
    conn->tag        = ha_pair_tag(iface->cookie, peer->cookie, sn);
    conn->tx_slot    = HA_NO_SLOT;
    conn->rto_since  = uct_ha_now();
    conn->rto_seen   = conn->rto_since;
    conn->rx_slot    = HA_NO_SLOT;
    conn->tx_credits = (uint16_t)peer->credits;
    conn->put_counts = (peer->caps & HA_CAP_COUNTED) != 0;
    conn->marks      = (peer->caps & HA_CAP_LEDGER) != 0;
    conn->put_op     = conn->put_counts ? HA_WRITE_IMM : HA_WRITE;
    conn->rx_window  = (uint16_t)iface->credits;
    conn->fence_seen = iface->fence_seq;
    ha_log_init(&conn->log, ops, iface->log_len);
    ha_pair_init(&conn->pair, &iface->ctl.pair_config, iface->cookie > peer->cookie,
                 pair_slots(iface, peer));
    status = table_add(iface, conn);
    if (status != UCS_OK) {
        free(conn->txops);
        free(ops);
        free(conn);
        return status;
    }
    ucs_list_head_init(&conn->pending);
    ucs_list_head_init(&conn->flushes);
    ucs_list_add_tail(&iface->ctl.conns, &conn->list);
    ucs_list_add_tail(&peer->conns, &conn->peer_link);
    if (sn >= peer->next_sn) {
        peer->next_sn = sn + 1;
    }
    uct_ha_setup_begin(&conn->setup, accepted, conn->rto_since);
    *conn_p = conn;
    return UCS_OK;
}

void uct_ha_conn_start_locked(struct uct_ha_conn *conn)
{
    struct ha_event event = { .kind = HA_EV_RAIL };

    for (int s = 0; s < conn->pair.slots; s++) {
        event.slot  = s;
        event.value = (uint32_t)uct_ha_peer_rail_usable(conn->peer, s);
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    event.kind = HA_EV_HOLD;
    for (event.slot = 0; event.slot < conn->pair.slots; event.slot++) {
        event.wait = ha_damp_left(&conn->peer->rail[event.slot].damp, uct_ha_now());
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    event.kind = HA_EV_START;
    event.slot = 0;
    uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    uct_ha_ctl_attention_locked(conn);
}

void uct_ha_conn_destroy(struct uct_ha_conn *conn)
{
    struct uct_ha_iface *iface = conn->iface;
    struct uct_ha_lane  *lane;

    uct_ha_failover_forget_locked(conn);
    iface->rx_grown -= conn->rx_grown;
    for (int s = 0; s < HA_SLOTS; s++) {
        lane = conn->lane[s];
        if (lane != NULL) {
            uct_ha_lane_park(conn, s, uct_ha_now() + FLUSH_NS);
        }
        uct_ha_ring_leave(conn, s, lane);
        uct_ha_ledger_cleanup(conn, s);
    }
    if (conn->backlogged) {
        ucs_list_del(&conn->backlog_link);
    }
    if (conn->pending_queued) {
        ucs_list_del(&conn->pending_link);
    }
    if (conn->attention) {
        ucs_list_del(&conn->attention_link);
    }
    iface->outstanding -= ha_log_used(&conn->log);
    iface->ctl.table[conn->id] = NULL;
    ucs_list_del(&conn->list);
    ucs_list_del(&conn->peer_link);
    uct_ha_amo_cleanup(conn);
    free(conn->log.ops);
    free(conn->txops);
    free(conn);
}

/* Ids name a place in the table and how often it was used, so that a late
 * completion of a lane that is gone finds nothing. */
static int lane_register(struct uct_ha_iface *iface, struct uct_ha_lane *lane)
{
    struct uct_ha_lane **lanes;
    uint32_t             len, i;

    for (uint32_t tries = 0; tries < iface->lanes_len; tries++) {
        i = iface->next_lane++ & 0x0fffffffu;
        if (iface->lanes[i % iface->lanes_len] == NULL) {
            iface->lanes[i % iface->lanes_len] = lane;
            lane->id = i;
            return 0;
        }
    }
    len   = iface->lanes_len == 0 ? 64 : 4 * iface->lanes_len;
    lanes = calloc(len, sizeof(*lanes));
    if (lanes == NULL) {
        return -ENOMEM;
    }
    /* Doubling twice keeps old ids valid: id modulo the new length is free for
     * each of them, because ids differ. */
    for (i = 0; i < iface->lanes_len; i++) {
        if (iface->lanes[i] != NULL) {
            lanes[iface->lanes[i]->id % len] = iface->lanes[i];
        }
    }
    free(iface->lanes);
    iface->lanes     = lanes;
    iface->lanes_len = len;
    return lane_register(iface, lane);
}

struct uct_ha_lane *uct_ha_lane_find(struct uct_ha_iface *iface, uint32_t id)
{
    struct uct_ha_lane *lane = iface->lanes_len == 0 ? NULL : iface->lanes[id % iface->lanes_len];

    return ucs_likely(lane != NULL && lane->id == id) ? lane : NULL;
}

/* A limit that is reached says so once per interface; the endpoint ends when its
 * time is over, unless there is room by then. */
static void tell_limit(struct uct_ha_iface *iface, int slot, int status)
{
    const struct ha_rail_limits *limits = ha_rail_limits(iface->rail[slot]);
    ucs_log_level_t              level  = iface->limit_told ? UCS_LOG_LEVEL_DEBUG :
                                                              UCS_LOG_LEVEL_ERROR;

    iface->limit_told = 1;
    if (status == -E2BIG) {
        ucs_log(level, "ha_rc: %s has no room for %u sends of one lane, each with a mark for a peer "
                "that proves by ledger; lower UCX_HA_RC_TX_QUEUE_LEN, or set "
                "UCX_HA_RC_PROOF=count there", ha_rail_name(iface->rail[slot]), iface->log_len);
    } else if (status == -ENOSPC) {
        ucs_log(level, "ha_rc: %s: no room in the completion queue for connection number %u "
                "(%u entries, device limit %u); lower UCX_HA_RC_RX_QUEUE_INIT, "
                "UCX_HA_RC_RX_MEM or UCX_HA_RC_TX_QUEUE_LEN", ha_rail_name(iface->rail[slot]),
                iface->cq_lanes[slot] + 1, iface->cq_depth[slot], limits->max_cqe);
    } else {
        ucs_log(level, "ha_rc: %s: no queue pair and %u receive buffers of %zu bytes for "
                "connection number %u: %s (device limit %u queue pairs); raise ulimit -l, or "
                "lower UCX_HA_RC_RX_QUEUE_INIT, UCX_HA_RC_SEG_SIZE or UCX_HA_RC_TX_QUEUE_LEN",
                ha_rail_name(iface->rail[slot]), iface->credits + UCT_HA_RX_RESERVE,
                iface->config.seg_size, iface->cq_lanes[slot] + 1, strerror(-status),
                limits->max_qp);
    }
}

static int open_queue_pair(struct uct_ha_lane *lane)
{
    struct uct_ha_iface *iface = lane->conn->iface;
    struct ha_rc_caps    caps  = {
        .send_depth = lane_sends(lane->conn), .recv_depth = iface->rx_depth,
        .max_sge = iface->max_sge,
        .max_inline = ucs_max(iface->max_inline, lane->conn->marks ? UCT_HA_LEDGER_MARK : 0),
    };
    int status = ha_rc_create(iface->rail[lane->slot], iface->cq[lane->slot], &caps, &lane->rc);

    if (status == 0) {
        status = caps.max_inline >= UCT_HA_LEDGER_MARK || !lane->conn->marks ?
                 uct_ha_ring_post(lane) : -ENOTSUP;
        if (status != 0) {
            ha_rc_destroy(lane->rc);
        }
    }
    return status;
}

static int lane_open(struct uct_ha_lane *lane)
{
    struct uct_ha_conn *conn   = lane->conn;
    int                 slot   = lane->slot;
    int                 status = lane_sends(conn) <= ha_rail_limits(conn->iface->rail[slot])->max_qp_wr ?
                                 uct_ha_ring_fill(conn, slot) : -E2BIG;

    if (status == 0 && lane->proof == HA_PROOF_LEDGER) {
        status = uct_ha_ledger_init(conn, slot);
    }
    if (status == 0) {
        status = uct_ha_room_add_lane(conn, slot);
        if (status == 0) {
            status = open_queue_pair(lane);
            if (status != 0) {
                uct_ha_room_undo_lane(conn, slot);
            }
        }
    }
    if (status == -ENOSPC || status == -ENOMEM || status == -E2BIG) {
        tell_limit(conn->iface, slot, status);
    }
    return status;
}

int uct_ha_lane_create(struct uct_ha_conn *conn, int slot, uint32_t gen)
{
    struct uct_ha_iface *iface = conn->iface;
    struct uct_ha_lane  *lane  = calloc(1, sizeof(*lane));
    int                  status;

    if (lane == NULL || (lane->held = calloc(iface->rx_depth, sizeof(*lane->held))) == NULL) {
        free(lane);
        return -ENOMEM;
    }
    lane->iface = conn->iface;
    lane->conn = conn;
    lane->slot = (uint8_t)slot;
    lane->gen  = gen;
    lane->born = uct_ha_now();
    lane->proof = iface->proof[slot];
    lane->psn  = (uint32_t)uct_ha_random() & HA_PSN_MASK;
    status     = lane_register(iface, lane);
    if (status == 0) {
        status = lane_open(lane);
        if (status != 0) {
            iface->lanes[lane->id % iface->lanes_len] = NULL;
        }
    }
    if (status != 0) {
        ucs_debug("ha_rc: cannot build a queue pair on %s: %s",
                  ha_rail_name(iface->rail[slot]), strerror(-status));
        free(lane->held);
        free(lane);
        return status;
    }
    conn->lane[slot] = lane;
    return 0;
}

/* The queue pair rests in ERR before it is destroyed, so that its number does
 * not come back while old packets may be on the wire. */
void uct_ha_lane_park(struct uct_ha_conn *conn, int slot, uint64_t until)
{
    struct uct_ha_iface *iface = conn->iface;
    struct uct_ha_lane  *lane  = conn->lane[slot];

    if (!lane->fenced) {
        uct_ha_fence_begin_locked(lane);
    }
    if (lane->final) { /* nobody has said that the card has stopped writing to them */
        uct_ha_ring_leave(conn, slot, lane);
    }
    conn->lane[slot] = NULL;
    iface->lanes[lane->id % iface->lanes_len] = NULL;
    uct_ha_room_park(lane);
    lane->conn        = NULL;
    lane->park_until  = until;
    lane->parked      = iface->ctl.parked;
    iface->ctl.parked = lane;
}

void uct_ha_lane_destroy(struct uct_ha_lane *lane)
{
    ha_rc_destroy(lane->rc);
    uct_ha_ring_return(lane);
    uct_ha_room_later(lane);
    free(lane->held);
    free(lane);
}

static void bury_run(struct uct_ha_job *job)
{
    uct_ha_lane_destroy(ucs_container_of(job, struct uct_ha_lane, job));
}

void uct_ha_lane_bury(struct uct_ha_lane *lane)
{
    lane->job.owner = lane->iface;
    lane->job.run   = bury_run;
    uct_ha_job_post(UCT_HA_JOB_DESTROY, lane->iface->rail_no[lane->slot], &lane->job);
}
