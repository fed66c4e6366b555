/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/check.h"

#include "lane/settle.h"
#include "pair/attention.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#define MSEC 1000000ull

/* Between the two PSN reads that settle a fence without a completion: far
 * longer than a packet that was being executed can take. Progress settles at
 * once by a flushed receive; this is for a process that computes. */
#define SETTLE_NS (10 * MSEC)

static int must_fence(const struct uct_ha_lane *lane)
{
    return lane->fenced && !lane->fencing && uct_ha_lane_may_run(lane) && lane->fence_fails < UCT_HA_FENCE_TRIES;
}

/* The device has stopped it by itself. The completion that says why is for progress, and may be here by then. */
static int has_died(const struct uct_ha_lane *lane)
{
    return !lane->fenced && lane->drained_at != 0;
}

uint64_t uct_ha_check_settle_due(const struct uct_ha_lane *lane)
{
    if (lane != NULL && has_died(lane)) {
        return lane->drained_at + SETTLE_NS;
    }
    if (lane == NULL || !lane->fenced || lane->fencing || lane->asking ||
        (!must_fence(lane) && (lane->settled || !uct_ha_settle_is_ready(lane)))) {
        return UINT64_MAX;
    }
    return (lane->read_at != 0 ? lane->read_at : lane->fence_at) + SETTLE_NS;
}

void uct_ha_check_settle_locked(struct uct_ha_lane *lane, uint64_t now)
{
    struct ha_event event = {.kind = HA_EV_LANE_DOWN, .slot = lane->slot, .gen = lane->gen, .cause = HA_CAUSE_FLUSH};

    if (now < uct_ha_check_settle_due(lane)) {
        return;
    }
    if (has_died(lane)) {
        uct_ha_failover_event_locked(lane->road->conn, &event, HA_CTX_ASYNC);
    } else if (must_fence(lane)) {
        uct_ha_fence_begin_locked(lane);
    } else {
        uct_ha_fact_settle_locked(lane, HA_CTX_ASYNC);
    }
}

/* A long operation is no progress until its end. Slower than this no rail is. */
#define SLOWEST_BYTES_PER_MS 32768u

/* Who has few receives left may be computing: then our card waits until it looks, and whatever is under way waits
 * behind the first message that found none. Meanwhile our clock goes so much slower. A rail that is not well is noticed
 * by other ways; one queue pair that is stuck, so late. */
#define SCARCE_SLOWER 16u

static uint64_t rto_of(const struct uct_ha_conn *conn)
{
    uint32_t bytes = __atomic_load_n(&conn->tx->longest, __ATOMIC_RELAXED);

    return conn->pairs->rto.value + bytes / SLOWEST_BYTES_PER_MS * MSEC;
}

/* Of the time since the last look, what does not count: all of it when the owner has not looked himself. */
static uint64_t rest_of(const struct uct_ha_conn *conn, uint32_t polls, uint64_t now)
{
    uint64_t gone = now - conn->rto_seen;

    if (polls == conn->rto_polls) {
        return gone;
    }
    return conn->peer->scarce ? gone - gone / SCARCE_SLOWER : 0;
}

/* The owner looks seldom, or not any more: nothing that would tell of the operations under way has been sent
 * for a while. */
static void ask_for_tail(struct uct_ha_conn *conn)
{
    conn->todo |= UCT_HA_TODO_TAIL;
    uct_ha_attention_locked(conn);
}

/* One more round of polling may still find it; then the lane is suspected. No other one may be there, but this rail is
 * well and only the queue pair is stuck: a new one on the same rail is better than waiting. */
static void strike_locked(struct uct_ha_conn *conn, int slot, uint64_t now)
{
    struct ha_event event = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .cause = HA_CAUSE_RTO};
    uint64_t        still = now - conn->rto_since;

    if (!conn->rto_struck) {
        conn->rto_struck = still > rto_of(conn);
        return;
    }
    event.gen = conn->pair.lane[slot].gen;
    if (still > 2 * rto_of(conn) && uct_ha_peer_rail_answers(conn->peer, slot, now)) {
        event.kind = HA_EV_LANE_DOWN;
    }
    uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
}

/* No progress although the owner polls and something is out that will tell: suspect the
 * lane. A process that does not poll cannot see completions and says nothing. */
void uct_ha_check_rto_locked(struct uct_ha_conn *conn, uint64_t now)
{
    uint32_t head  = uct_ha_txlog_head(conn->tx);
    uint32_t tail  = uct_ha_txlog_tail(conn->tx);
    uint32_t polls = __atomic_load_n(&conn->pairs->lanes->wake.polls, __ATOMIC_RELAXED);
    int      told  = uct_ha_txlog_is_told(conn->tx);
    int      slot  = ha_pair_tx_slot(&conn->pair);
    uint64_t lane  = slot == HA_NO_SLOT ? 0 : (uint64_t)conn->pair.lane[slot].gen << 1 | (unsigned)slot;

    if (head == tail) {
        __atomic_store_n(&conn->tx->longest, 0, __ATOMIC_RELAXED);
    }
    if (!told && head != tail && tail == conn->rto_tail && slot != HA_NO_SLOT) {
        ask_for_tail(conn);
    }
    if (!told || head != conn->rto_done || slot == HA_NO_SLOT || lane != conn->rto_lane) {
        conn->rto_since  = now;
        conn->rto_struck = 0;
    } else {
        conn->rto_since += rest_of(conn, polls, now);
        if (polls != conn->rto_polls) {
            strike_locked(conn, slot, now);
        }
    }
    conn->rto_lane  = lane;
    conn->rto_done  = head;
    conn->rto_tail  = tail;
    conn->rto_polls = polls;
    conn->rto_seen  = now;
}
