/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/outage.h"

#include "base/now.h"
#include "base/stats.h"
#include "pair/conn.h"
#include "pair/peer.h"

/* A lane serves one epoch: one that has served and is fenced only now was
 * the active one, even if the peer's packet has brought the next epoch too. */
void uct_ha_outage_begin_locked(struct uct_ha_conn *conn, int slot, uint64_t now)
{
    const struct ha_lane *lane = &conn->pair.lane[slot];

    if (lane->act == 0 || conn->outage_at != 0) {
        return;
    }
    conn->outage_slot       = (uint8_t)slot;
    conn->outage_cause      = lane->cause;
    conn->outage_peer_cause = lane->cause == HA_CAUSE_PEER ? conn->pair.view[slot].cause : HA_CAUSE_NONE;
    __atomic_store_n(&conn->outage_at, now, __ATOMIC_RELAXED);
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

/* A new outage may begin in the asynchronous handler at any time: what counts
 * is the core's lane, under the lock, not the one that progress saw last. */
void uct_ha_outage_end(struct uct_ha_conn *conn, int tx_slot)
{
    struct uct_ha_lanes *lanes  = conn->pairs->lanes;
    uint64_t             outage = 0;
    uint32_t             replayed, retired, epoch;
    unsigned             from, cause, peer_cause;
    int                  to;

    if (ucs_likely(__atomic_load_n(&conn->outage_at, __ATOMIC_RELAXED) == 0)) {
        return;
    }
    pthread_mutex_lock(&lanes->wake.lock);
    to         = ha_pair_tx_slot(&conn->pair);
    epoch      = conn->pair.epoch;
    from       = conn->outage_slot;
    cause      = conn->outage_cause;
    peer_cause = conn->outage_peer_cause;
    replayed   = conn->outage_replayed;
    retired    = conn->outage_retired;
    if (tx_slot != HA_NO_SLOT && tx_slot == to) {
        outage = uct_ha_now() - conn->outage_at;
        if (cause == HA_CAUSE_RTO) {
            judge_rto(conn, (int)from, outage);
        }
        conn->outage_replayed = conn->outage_retired = 0;
        __atomic_store_n(&conn->outage_at, 0, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lanes->wake.lock);
    if (outage == 0) {
        return; /* not over yet */
    }
    UCT_HA_STATS_ADD(failovers, 1);
    UCT_HA_STATS_ADD(failbacks, cause == HA_CAUSE_FAILBACK || peer_cause == HA_CAUSE_FAILBACK);
    UCT_HA_STATS_ADD(outage_ns_total, outage);
    UCT_HA_STATS_SET(outage_ns_last, outage);
    ucs_warn("ha_rc: failover: endpoint %u left %s (%s%s%s), goes on over %s: epoch %u, "
             "replayed %u, retired %u, %.1f ms",
             conn->id, ha_rail_name(lanes->rail[from]), ha_cause_name(cause), peer_cause != HA_CAUSE_NONE ? ": " : "",
             peer_cause != HA_CAUSE_NONE ? ha_cause_name(peer_cause) : "", ha_rail_name(lanes->rail[to]), epoch,
             replayed, retired, (double)outage / 1e6);
}
