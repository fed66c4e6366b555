/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/attend.h"

#include "base/now.h"
#include "lane/settle.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/failover.h"
#include "pair/lost.h"

/* The marker is the last send of a fenced lane: when it comes back flushed, all
 * that were posted before it have come back, successes included. One that does not
 * come back in time is given up: pair/lost.h. */
static void drain_lane(struct uct_ha_conn *conn, struct uct_ha_lane *lane)
{
    struct ha_send  marker = {.op = HA_SEND_IMM, .flags = HA_SEND_TELL};
    struct ha_event event  = {.kind = HA_EV_DRAINED, .slot = lane->slot, .gen = lane->gen};

    if (!lane->fenced || lane->drained || lane->marker) {
        return;
    }
    if (uct_ha_lane_sends(lane) > 0 && (uct_ha_lane_may_run(lane) || lane->lanes->gone[lane->slot])) {
        return; /* a queue pair that runs would send the marker to the peer, one that is gone nowhere */
    }
    if (uct_ha_lane_sends(lane) == 0) { /* nothing is out, and nothing will be */
        lane->drained = 1;
        uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
        return;
    }
    marker.wr_id = uct_ha_wr_id(UCT_HA_WR_MARKER, lane->id, 0);
    if (ha_rc_post_send(lane->rc, &marker) == 0) {
        lane->marker = 1;
    } else {
        uct_ha_attention_locked(conn); /* full: poll first */
    }
}

/* Every message that the peer's proof promised us has been delivered: the lane
 * is done. The own proof is read once more; it must not have moved. */
static void close_lane(struct uct_ha_conn *conn, struct uct_ha_lane *lane)
{
    uint32_t        done  = uct_ha_lane_delivered(lane);
    struct ha_event event = {.kind = HA_EV_DELIVERED, .slot = lane->slot, .gen = lane->gen, .value = done};
    int             lost  = (lane->ended || lane->final) && lane->held_head == lane->held_tail;

    if (!lane->closing || (done != lane->close_k && !lost)) {
        return;
    }
    if (uct_ha_settle_wants_answer(lane) && !lane->reread) {
        uct_ha_settle_ask_locked(lane, 1);
        return;
    }
    uct_ha_settle_read(lane, &event);
    lane->closing = 0;
    uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
}

/* Nobody holds the connection here and it owes nothing: say so. One that the peer began
 * may be bound yet, unless that has failed meanwhile. */
static void close_unused(struct uct_ha_conn *conn, int idle)
{
    struct ha_event event = {.kind = HA_EV_CLOSE};

    if (!conn->bound && !conn->close_told && idle && ha_log_used(&conn->tx->log) == 0 &&
        (conn->was_bound || conn->tx->dead || ha_pair_peer_closing(&conn->pair))) {
        conn->close_told = 1;
        uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
}

void uct_ha_attend_locked(struct uct_ha_conn *conn, int idle)
{
    struct uct_ha_road *road = conn->road;

    for (int s = 0; s < HA_SLOTS; s++) {
        if (road->lane[s] != NULL) {
            drain_lane(conn, road->lane[s]);
        }
        if (road->lane[s] != NULL) {
            close_lane(conn, road->lane[s]);
        }
    }
    if (uct_ha_lost_is_over(conn, uct_ha_now())) {
        conn->todo |= UCT_HA_TODO_DECLARE;
    }
    close_unused(conn, idle);
    uct_ha_failover_run_locked(conn, HA_CTX_PROGRESS);
}
