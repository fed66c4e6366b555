/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/outage.h"

#include "base/now.h"
#include "base/stats.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "pair/report.h"

/* How long has nothing come by this lane? Probes say so of the rail, and work under way of the lane: when
 * only acknowledgements are lost, probes are answered all the time. */
static uint64_t silence(const struct uct_ha_conn *conn, int slot, uint64_t now)
{
    const struct uct_ha_peer_rail *rail   = &conn->peer->rail[slot];
    uint64_t                       silent = 0;

    if (rail->missed > 0 && rail->last_rx != 0 && now > rail->last_rx) {
        silent = now - rail->last_rx;
    }
    if (uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx) && uct_ha_txlog_head(conn->tx) == conn->rto_done &&
        conn->rto_since != 0 && now > conn->rto_since) {
        silent = ucs_max(silent, now - conn->rto_since);
    }
    return silent;
}

/* A lane serves one epoch: one that has served and is fenced only now was
 * the active one, even if the peer's packet has brought the next epoch too. */
void uct_ha_outage_begin_locked(struct uct_ha_conn *conn, int slot, uint64_t now)
{
    const struct ha_lane *lane = &conn->pair.lane[slot];

    if (lane->act == 0 || conn->outage_at != 0) {
        return;
    }
    conn->outage_silent     = silence(conn, slot, now);
    conn->outage_slot       = (uint8_t)slot;
    conn->outage_cause      = lane->cause;
    conn->outage_peer_cause = lane->cause == HA_CAUSE_PEER ? conn->pair.view[slot].cause : HA_CAUSE_NONE;
    __atomic_store_n(&conn->outage_at, now, __ATOMIC_RELAXED);
    conn->pairs->moving++;
}

/* The progress check struck. If the rail that was left answers all the same and
 * the move was quick, there was nothing to flee from. */
static void judge_rto(struct uct_ha_conn *conn, int slot, uint64_t outage)
{
    uint64_t now = uct_ha_now();

    if (!uct_ha_peer_rail_answers(conn->peer, slot, now)) {
        outage = UINT64_MAX;
    }
    if (ha_rto_alarm(&conn->pairs->rto, outage, now)) {
        UCT_HA_STATS_ADD(false_alarms, 1);
    }
}

static void count(const struct uct_ha_move *move)
{
    UCT_HA_STATS_ADD(failovers, 1);
    UCT_HA_STATS_ADD(failbacks, move->cause == HA_CAUSE_FAILBACK || move->peer_cause == HA_CAUSE_FAILBACK);
    UCT_HA_STATS_ADD(outage_ns_total, move->took);
    UCT_HA_STATS_SET(outage_ns_last, move->took);
    UCT_HA_STATS_ADD(silent_ns_total, move->silent);
    UCT_HA_STATS_ADD(silent_hist[uct_ha_setup_bin(move->silent)], 1);
    UCT_HA_STATS_ADD(move_hist[uct_ha_setup_bin(move->took)], 1);
}

/* A new outage may begin in the asynchronous handler at any time: what counts
 * is the core's lane, under the lock, not the one that progress saw last. */
void uct_ha_outage_end(struct uct_ha_conn *conn, int tx_slot)
{
    struct uct_ha_lanes *lanes = conn->pairs->lanes;
    struct uct_ha_move   move  = {.took = 0};
    char                 peer[UCT_HA_ADDR_TEXT_MAX];
    uint64_t             now;

    if (ucs_likely(__atomic_load_n(&conn->outage_at, __ATOMIC_RELAXED) == 0)) {
        return;
    }
    pthread_mutex_lock(&lanes->wake.lock);
    now = uct_ha_now();
    if (conn->outage_at != 0 && tx_slot != HA_NO_SLOT && tx_slot == ha_pair_tx_slot(&conn->pair)) {
        move = (struct uct_ha_move){
            .from       = ha_rail_name(lanes->rail[conn->outage_slot]),
            .to         = ha_rail_name(lanes->rail[tx_slot]),
            .peer       = uct_ha_addr_text(&conn->peer->rail[conn->outage_slot].where.addr, peer),
            .id         = conn->id,
            .epoch      = conn->pair.epoch,
            .cause      = conn->outage_cause,
            .peer_cause = conn->outage_peer_cause,
            .begin      = conn->outage_at,
            .silent     = conn->outage_silent,
            .took       = ucs_max(now - conn->outage_at, 1ul),
            .replayed   = conn->outage_replayed,
            .retired    = conn->outage_retired,
        };
        if (move.cause == HA_CAUSE_RTO) {
            judge_rto(conn, conn->outage_slot, move.took);
        }
        conn->outage_replayed = conn->outage_retired = 0;
        __atomic_store_n(&conn->outage_at, 0, __ATOMIC_RELAXED);
        conn->pairs->moving--;
    }
    pthread_mutex_unlock(&lanes->wake.lock);
    if (move.took > 0) { /* else it is not over yet */
        count(&move);
        uct_ha_report_move(&move, now);
    }
}
