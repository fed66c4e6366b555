/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/fact.h"

#include "base/now.h"
#include "lane/settle.h"
#include "pair/attention.h"
#include "pair/cold.h"
#include "pair/conn.h"
#include "pair/failover.h"
#include "pair/peer.h"

/* What follows is decided; the peers and the user hear of it. */
static void end_locked(struct uct_ha_conn *conn)
{
    uct_ha_attention_locked(conn);
    conn->pairs->flush(conn->pairs);
}

void uct_ha_fact(struct uct_ha_conn *conn, const struct ha_event *event)
{
    pthread_mutex_t *lock = &conn->pairs->lanes->wake.lock;

    pthread_mutex_lock(lock);
    uct_ha_failover_event_locked(conn, event, HA_CTX_PROGRESS);
    end_locked(conn);
    pthread_mutex_unlock(lock);
}

void uct_ha_fact_lane_down(struct uct_ha_lane *lane, enum ha_cause cause)
{
    struct uct_ha_conn *conn = lane->road->conn;
    pthread_mutex_t    *lock = &lane->lanes->wake.lock;
    struct ha_event event    = {.kind = HA_EV_LANE_DOWN, .slot = lane->slot, .gen = lane->gen, .cause = (uint8_t)cause};

    pthread_mutex_lock(lock);
    uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    if (conn->peer->bye_rx) {
        /* It has left in order: nobody is there to fail over with. */
        event.kind  = HA_EV_PEER_LOST;
        event.value = HA_FAIL_PEER_DEAD;
        uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    end_locked(conn);
    pthread_mutex_unlock(lock);
}

void uct_ha_fact_flushed(struct uct_ha_lane *lane)
{
    struct uct_ha_conn *conn = lane->road->conn;
    pthread_mutex_t    *lock = &lane->lanes->wake.lock;

    pthread_mutex_lock(lock);
    uct_ha_fact_settle_locked(lane, HA_CTX_PROGRESS);
    end_locked(conn);
    pthread_mutex_unlock(lock);
}

void uct_ha_fact_drained(struct uct_ha_lane *lane)
{
    struct uct_ha_conn *conn  = lane->road->conn;
    pthread_mutex_t    *lock  = &lane->lanes->wake.lock;
    struct ha_event     event = {.kind = HA_EV_DRAINED, .slot = lane->slot, .gen = lane->gen};

    pthread_mutex_lock(lock);
    lane->drained = 1; /* under the lock: the timer asks for it */
    uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    end_locked(conn);
    pthread_mutex_unlock(lock);
}

int uct_ha_fact_rail_is_well(struct uct_ha_lane *lane)
{
    struct uct_ha_conn *conn = lane->road->conn;
    int                 well;

    pthread_mutex_lock(&lane->lanes->wake.lock);
    well = conn->pairs->heartbeat == 0 || uct_ha_peer_rail_answers(conn->peer, lane->slot, uct_ha_now());
    pthread_mutex_unlock(&lane->lanes->wake.lock);
    return well;
}

int uct_ha_fact_has_left(const struct uct_ha_conn *conn)
{
    return __atomic_load_n(&conn->peer->bye_rx, __ATOMIC_RELAXED);
}

void uct_ha_fact_start_locked(struct uct_ha_conn *conn)
{
    struct ha_event event = {.kind = HA_EV_RAIL};

    for (int s = 0; s < conn->pair.slots; s++) {
        event.slot  = s;
        event.value = (uint32_t)uct_ha_peer_rail_usable(conn->peer, s);
        uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    event.kind = HA_EV_HOLD;
    for (event.slot = 0; event.slot < conn->pair.slots; event.slot++) {
        event.wait = uct_ha_cold_hold(conn, event.slot, ha_damp_left(&conn->peer->rail[event.slot].damp, uct_ha_now()));
        uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    }
    event.kind = HA_EV_START;
    event.slot = 0;
    uct_ha_failover_event_locked(conn, &event, HA_CTX_PROGRESS);
    uct_ha_attention_locked(conn);
}

static void settle(struct uct_ha_lane *lane, enum ha_context ctx)
{
    struct ha_event event = {.kind = HA_EV_SETTLED, .slot = lane->slot, .gen = lane->gen};

    uct_ha_settle_read(lane, &event);
    if (event.proof == HA_PROOF_NONE) {
        lane->read_fails = UCT_HA_PROOF_TRIES; /* progress will declare it */
        return;
    }
    uct_ha_settle_tell(lane, &event);
    __atomic_store_n(&lane->settled, 1, __ATOMIC_RELAXED); /* progress reads it */
    uct_ha_failover_event_locked(lane->road->conn, &event, ctx);
}

void uct_ha_fact_settle_locked(struct uct_ha_lane *lane, enum ha_context ctx)
{
    if (lane->settled || !lane->fenced || !uct_ha_settle_is_ready(lane)) {
        return;
    }
    if (uct_ha_settle_wants_answer(lane)) {
        uct_ha_settle_ask_locked(lane, __atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE));
    } else {
        settle(lane, ctx);
    }
}

/* Two equal answers, apart: no packet is being executed any more. One that the device refuses
 * counts for nothing; after too many it is not asked again. */
static int is_at_rest(struct uct_ha_lane *lane)
{
    int rests = lane->answer == 0 && lane->reads > 0 && lane->answer_psn == lane->last_read;

    lane->read_fails = (uint8_t)(lane->read_fails + (lane->answer != 0));
    lane->reads      = lane->answer == 0;
    lane->last_read  = lane->answer_psn;
    lane->read_at    = uct_ha_now();
    return rests;
}

/* The device has refused the answer that would be the proof; the timer asks again soon, but not for ever. */
static int is_asked_again(struct uct_ha_lane *lane)
{
    if (lane->answer == 0 || lane->read_fails + 1 >= UCT_HA_PROOF_TRIES) {
        return 0;
    }
    lane->read_fails++;
    lane->read_at = uct_ha_now();
    return 1;
}

/* What was asked behind the barrier is the proof: a flushed receive, or two equal answers. */
void uct_ha_fact_answered_locked(struct uct_ha_lane *lane)
{
    if (lane->settled) {
        lane->reread = 1; /* for the close */
    } else if (lane->asked_final) {
        if (!is_asked_again(lane)) {
            settle(lane, HA_CTX_ASYNC);
        }
    } else if (is_at_rest(lane)) {
        uct_ha_settle_ask_locked(lane, 1);
    } else if (__atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE)) {
        uct_ha_fact_settle_locked(lane, HA_CTX_ASYNC); /* the barrier was passed meanwhile: once more */
    }
    end_locked(lane->road->conn);
}

/* It can drain and be settled now. */
void uct_ha_fact_stopped_locked(struct uct_ha_lane *lane)
{
    struct uct_ha_conn *conn = lane->road->conn;

    if (__atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE)) {
        uct_ha_fact_settle_locked(lane, HA_CTX_ASYNC); /* progress has seen that, too early */
    }
    end_locked(conn);
}

void uct_ha_fact_built_locked(struct uct_ha_lane *lane)
{
    end_locked(lane->road->conn);
}

void uct_ha_fact_usable_locked(struct uct_ha_peer *peer)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = {.kind = HA_EV_RAIL};

    for (int s = 0; s < HA_SLOTS; s++) {
        event.slot  = s;
        event.value = (uint32_t)uct_ha_peer_rail_usable(peer, s);
        ucs_list_for_each (conn, &peer->conns, peer_link) {
            if (s < conn->pair.slots && conn->pair.lane[s].usable != event.value) {
                uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
            }
        }
    }
}

void uct_ha_fact_peer_lost_locked(struct uct_ha_peer *peer, unsigned why)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = {.kind = HA_EV_PEER_LOST, .value = why};

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
    }
}
