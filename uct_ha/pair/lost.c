/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/lost.h"

#include "base/now.h"
#include "lane/settle.h"
#include "pair/attention.h"
#include "pair/failover.h"

/* A card that has stopped has written what it had to write by then, and a peer that heard of it has
 * stopped its end. */
#define GRACE_NS 30000000ull
#define LOOK_NS  10000000ull /* between two looks */

static int is_gone(const struct uct_ha_lane *lane)
{
    return lane->lanes->gone[lane->slot];
}

/* Nothing will come of waiting for the card. */
static int is_hopeless(const struct uct_ha_lane *lane)
{
    return is_gone(lane) || lane->fence_fails == UCT_HA_FENCE_TRIES || lane->read_fails == UCT_HA_PROOF_TRIES;
}

static int is_overdue(const struct uct_ha_lane *lane, uint64_t now)
{
    return now >= lane->fenced_at + lane->lanes->silence;
}

static int is_over(const struct uct_ha_lane *lane, uint64_t now)
{
    return lane->fenced && now >= lane->fenced_at + GRACE_NS && (is_hopeless(lane) || is_overdue(lane, now));
}

/* The card has stopped the queue pair, and can be believed. */
static int has_stopped(const struct uct_ha_lane *lane)
{
    return !is_gone(lane) && !lane->fencing && lane->fence_fails == 0;
}

/* What arrives after the count would be lost: so the peer's end has to be stopped before, should this
 * one still run. Two cards that are gone must not wait for each other for ever. */
static int may_declare(const struct uct_ha_lane *lane, uint64_t now)
{
    return !lane->settled && is_over(lane, now) &&
           (has_stopped(lane) || is_overdue(lane, now) || ha_pair_peer_stopped(&lane->road->conn->pair, lane->slot));
}

static int may_end_drain(const struct uct_ha_lane *lane, uint64_t now)
{
    return !lane->drained && is_over(lane, now);
}

/* Fewer messages than the peer was told, as it seems: are they still in the queue, behind which no flushed receive
 * comes? */
static int is_short(const struct uct_ha_lane *lane)
{
    return lane->shared != NULL && lane->closing && !lane->ended && lane->settled;
}

/* Progress, which counts them. */
static int may_end_receives(const struct uct_ha_lane *lane, uint64_t now)
{
    return is_short(lane) && uct_ha_lane_delivered(lane) != lane->close_k && now >= lane->fence_at + GRACE_NS;
}

uint64_t uct_ha_lost_due(const struct uct_ha_lane *lane)
{
    uint64_t due;

    if (lane == NULL || !lane->fenced || (lane->settled && lane->drained && !is_short(lane)) ||
        lane->road->conn->attention) {
        return UINT64_MAX; /* nothing is wanted of the card, or progress will look anyway */
    }
    due = lane->fenced_at + (is_hopeless(lane) || is_short(lane) ? GRACE_NS : lane->lanes->silence);
    return ucs_max(due, lane->lost_look + LOOK_NS);
}

void uct_ha_lost_check(struct uct_ha_lane *lane, uint64_t now)
{
    if (now >= uct_ha_lost_due(lane)) {
        lane->lost_look = now;
        uct_ha_attention_locked(lane->road->conn);
    }
}

int uct_ha_lost_is_over(const struct uct_ha_conn *conn, uint64_t now)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        if (conn->road->lane[s] != NULL &&
            (may_declare(conn->road->lane[s], now) || may_end_drain(conn->road->lane[s], now) ||
             may_end_receives(conn->road->lane[s], now))) {
            return 1;
        }
    }
    return 0;
}

/* ---- in progress ---------------------------------------------------------------- */

static void end_drain(struct uct_ha_lane *lane)
{
    struct ha_event event = {.kind = HA_EV_DRAINED, .slot = lane->slot, .gen = lane->gen};

    if (uct_ha_lane_sends(lane) > 0) {
        ucs_debug("ha_rc: %s: %u send completions of queue pair 0x%x did not come back",
                  ha_rail_name(lane->lanes->rail[lane->slot]), uct_ha_lane_sends(lane), ha_rc_qpn(lane->rc));
    }
    uct_ha_txlog_stain(lane->road->conn->tx, lane->slot, lane->gen);
    lane->drained = 1;
    uct_ha_failover_event_locked(lane->road->conn, &event, HA_CTX_PROGRESS);
}

static void declare(struct uct_ha_lane *lane)
{
    struct ha_event event = {.kind     = HA_EV_SETTLED,
                             .slot     = lane->slot,
                             .gen      = lane->gen,
                             .proof    = HA_PROOF_NONE,
                             .received = uct_ha_lane_received(lane)};

    ucs_debug("ha_rc: %s proves nothing of queue pair 0x%x: %u receives were taken from it, and no more will be",
              ha_rail_name(lane->lanes->rail[lane->slot]), ha_rc_qpn(lane->rc), uct_ha_lane_received(lane));
    lane->final = 1;
    __atomic_store_n(&lane->settled, 1, __ATOMIC_RELAXED);
    uct_ha_settle_tell(lane, &event);
    uct_ha_failover_event_locked(lane->road->conn, &event, HA_CTX_PROGRESS);
}

void uct_ha_lost_declare(struct uct_ha_conn *conn, const int *empty)
{
    struct uct_ha_pairs *pairs = conn->pairs;
    uint64_t             now   = uct_ha_now();

    pthread_mutex_lock(&pairs->lanes->wake.lock);
    for (int s = 0; s < HA_SLOTS; s++) { /* the lane may go with each fact */
        if (empty[s] && conn->road->lane[s] != NULL && may_end_drain(conn->road->lane[s], now)) {
            end_drain(conn->road->lane[s]);
        }
        if (empty[s] && conn->road->lane[s] != NULL && may_declare(conn->road->lane[s], now)) {
            declare(conn->road->lane[s]);
        }
        if (empty[s] && conn->road->lane[s] != NULL && may_end_receives(conn->road->lane[s], now)) {
            conn->road->lane[s]->ended = 1;
        }
    }
    uct_ha_attention_locked(conn);
    pairs->flush(pairs);
    pthread_mutex_unlock(&pairs->lanes->wake.lock);
}
