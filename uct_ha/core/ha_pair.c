/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The facts that come in by ha_pair_step(). What follows from them is in ha_pair_rule.c.
 */

#include "ha_pair.h"

#include <string.h>

#include "ha_pair_msg_internal.h"

/* The peer is not there any more. If our user has let go, nothing was lost by
 * that: the pair is simply gone. */
static void ha_pair_peer_ended(struct ha_pair *pair, unsigned why, uint64_t now, struct ha_out *out)
{
    if (why == HA_FAIL_CANCELED || why == HA_FAIL_REFUSED || why == HA_FAIL_DOUBT || why == HA_FAIL_OPTIONS ||
        why == HA_FAIL_SINGLE) {
        /* it is still there: tell it */
        ha_pair_fail(pair, why, now, out);
        return;
    }
    pair->view_flags |= HA_PAIR_FAILED;
    if (!(pair->flags & HA_PAIR_CLOSING)) {
        ha_pair_fail(pair, why, now, out);
    }
}

/* ---- events ---- */

static int ha_event_is_current(const struct ha_pair *pair, const struct ha_event *event)
{
    return event->slot >= 0 && event->slot < pair->slots && event->gen == pair->lane[event->slot].gen;
}

static void ha_on_qp_created(struct ha_pair *pair, const struct ha_event *event, struct ha_out *out)
{
    struct ha_lane *lane;
    uint8_t         usable;

    if (event->slot < 0 || event->slot >= pair->slots) {
        return;
    }
    lane   = &pair->lane[event->slot];
    usable = lane->usable;
    if (!(lane->asked & HA_ASKED_CREATE) || event->gen != lane->gen + 1) {
        return;
    }
    memset(lane, 0, sizeof(*lane));
    lane->gen   = event->gen;
    lane->st    = HA_LANE_CONN;
    lane->q     = HA_QP_INIT;
    lane->qpn   = event->qpn;
    lane->psn   = event->psn;
    lane->mtu   = event->mtu;
    lane->proof = event->proof;
    if (event->proof == HA_PROOF_LEDGER) {
        lane->rxpsn    = event->ledger_key;
        lane->received = (uint32_t)(event->ledger_addr >> 32);
        lane->k        = (uint32_t)event->ledger_addr;
    }
    lane->usable = usable;
    if (ha_pair_failed(pair)) {
        ha_lane_fence(pair, event->slot, HA_CAUSE_CLOSE, out);
    }
}

static void ha_on_qp_failed(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_out *out)
{
    struct ha_lane *lane;

    if (event->slot < 0 || event->slot >= pair->slots) {
        return;
    }
    lane = &pair->lane[event->slot];
    if ((lane->asked & HA_ASKED_CREATE) && event->gen == lane->gen + 1) {
        lane->asked &= (uint8_t)~HA_ASKED_CREATE;
        lane->renew_at = now + pair->cfg.cooldown + pair->cfg.rtx_max;
    } else if (event->gen == lane->gen) {
        ha_lane_fence(pair, event->slot, HA_CAUSE_CONNECT, out);
    }
}

/* A soft trigger may be wrong, so it must never take the only lane away. */
static int ha_suspect_is_safe(const struct ha_pair *pair, int slot)
{
    if (pair->lane[slot].st == HA_LANE_CONN) {
        return 0;
    }
    if (pair->lane[slot].act == 0) { /* a standby: carries nothing */
        return ha_pair_tx_slot(pair) == !slot;
    }
    return pair->lane[slot].act == pair->epoch && ha_pair_standby(pair) == !slot;
}

/* Without a proof the peer judges by its own log, see "Without a proof" in docs/failover.md. */
static void ha_on_settled(struct ha_pair *pair, const struct ha_event *event)
{
    struct ha_lane *lane = &pair->lane[event->slot];
    int             unused;

    if (lane->q != HA_QP_ERRING) {
        return;
    }
    /* The peer posts only on a lane that we called READY and, where we number
     * the epochs, only on one that we chose. */
    unused   = lane->st == HA_LANE_CONN || (pair->decider && lane->act == 0);
    lane->q  = HA_QP_ERR;
    lane->st = HA_LANE_FENCED;
    ha_lane_set_proof(lane, event->proof == HA_PROOF_NONE && unused ? HA_PROOF_EMPTY : event->proof, event->psn,
                      event->received);
}

/* Read again at the end, it must say what it said before. */
static int ha_proof_has_moved(const struct ha_lane *lane, const struct ha_event *event)
{
    return event->proof == lane->proof && ((ha_proof_has_word(lane->proof) && event->psn != lane->rxpsn) ||
                                           (ha_proof_has_count(lane->proof) && event->received != lane->received));
}

static void ha_on_delivered(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_out *out)
{
    const struct ha_lane *lane = &pair->lane[event->slot];

    if (lane->st != HA_LANE_RESOLVED || !(lane->asked & HA_ASKED_CLOSE)) {
        return;
    }
    if (event->value != pair->view[event->slot].k) {
        ha_pair_fail(pair, HA_FAIL_COUNT, now, out);
    } else if (ha_proof_has_moved(lane, event)) {
        ha_pair_fail(pair, HA_FAIL_PROOF_MOVED, now, out);
    } else {
        ha_lane_close(pair, event->slot, now, out);
    }
}

static void ha_on_resolved(struct ha_pair *pair, const struct ha_event *event)
{
    struct ha_lane *lane = &pair->lane[event->slot];

    if (lane->st != HA_LANE_FENCED || !(lane->asked & HA_ASKED_RESOLVE)) {
        return;
    }
    lane->st = HA_LANE_RESOLVED;
    lane->k  = event->value;
}

static void ha_on_lane_event(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_out *out)
{
    struct ha_lane *lane = &pair->lane[event->slot];

    switch (event->kind) {
    case HA_EV_QP_CONNECTED:
        if (lane->q == HA_QP_CONNECTING) {
            lane->q  = HA_QP_UP;
            lane->st = HA_LANE_READY;
        }
        break;
    case HA_EV_LANE_DOWN:
        ha_lane_fence(pair, event->slot, event->cause, out);
        break;
    case HA_EV_LANE_SUSPECT:
        if (ha_suspect_is_safe(pair, event->slot)) {
            ha_lane_fence(pair, event->slot, event->cause, out);
        } else if (ha_pair_tx_slot(pair) == event->slot) {
            pair->hold_at[!event->slot] = 0; /* another one is needed */
        }
        break;
    case HA_EV_SETTLED:
        ha_on_settled(pair, event);
        break;
    case HA_EV_DRAINED:
        if (lane->q == HA_QP_ERRING || lane->q == HA_QP_ERR) { /* no driver says it of another one */
            lane->drained = 1;
        }
        break;
    case HA_EV_RESOLVED:
        ha_on_resolved(pair, event);
        break;
    case HA_EV_BAD_PROOF:
        ha_pair_fail(pair, event->value, now, out);
        break;
    case HA_EV_DELIVERED:
        ha_on_delivered(pair, event, now, out);
        break;
    default:
        break;
    }
}

static void ha_on_record(struct ha_pair *pair, const struct ha_record *record, uint64_t now, struct ha_out *out)
{
    if (ha_pair_merge(pair, record)) {
        ha_pair_fail(pair, HA_FAIL_GENERATION, now, out);
        return;
    }
    if (record->flags & HA_PAIR_FAILED) {
        ha_pair_peer_ended(pair, HA_FAIL_PEER_FAILED, now, out);
    }
}

/* The deadline has passed, but a peer that answers may still move. */
static int ha_pair_may_wait(struct ha_pair *pair, int peer_answers, uint64_t now)
{
    uint64_t last = pair->lost_at + HA_PATIENCE * pair->cfg.deadline;

    if (!peer_answers || pair->lost_at == 0 || now >= last) {
        return 0;
    }
    pair->deadline = now + pair->cfg.deadline < last ? now + pair->cfg.deadline : last;
    return 1;
}

static void ha_on_timer(struct ha_pair *pair, int peer_answers, uint64_t now, struct ha_out *out)
{
    if (!ha_pair_failed(pair) && pair->deadline != 0 && now >= pair->deadline &&
        !ha_pair_may_wait(pair, peer_answers, now)) {
        ha_pair_fail(pair, pair->epoch == 0 ? HA_FAIL_CONNECT : HA_FAIL_DEADLINE, now, out);
    } else {
        ha_pair_retransmit(pair, now, out);
    }
}

static void ha_on_event(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_out *out)
{
    switch (event->kind) {
    case HA_EV_START:
        if (!pair->started) {
            pair->started    = 1;
            pair->standby_at = UINT64_MAX;
            if (pair->cfg.connect_timeout != 0) {
                pair->deadline = now + pair->cfg.connect_timeout;
            }
        }
        break;
    case HA_EV_RAIL:
        if (event->slot >= 0 && event->slot < pair->slots) {
            pair->lane[event->slot].usable = event->value != 0;
        }
        break;
    case HA_EV_RECORD:
        ha_on_record(pair, event->record, now, out);
        break;
    case HA_EV_QP_CREATED:
        ha_on_qp_created(pair, event, out);
        break;
    case HA_EV_QP_FAILED:
        ha_on_qp_failed(pair, event, now, out);
        break;
    case HA_EV_PEER_LOST:
        ha_pair_peer_ended(pair, event->value, now, out);
        break;
    case HA_EV_CLOSE:
        pair->flags |= HA_PAIR_CLOSING;
        break;
    case HA_EV_HOLD:
        if (event->slot >= 0 && event->slot < pair->slots) {
            ha_pair_hold(pair, event->slot, event->wait, now);
        }
        break;
    case HA_EV_TIMER:
        ha_on_timer(pair, event->value != 0, now, out);
        break;
    default:
        if (ha_event_is_current(pair, event)) {
            ha_on_lane_event(pair, event, now, out);
        }
        break;
    }
}

/* How far slot 0 is on both sides, with its first lane: what comes after that one has failed is no progress. */
static uint32_t ha_first_stage(const struct ha_pair *pair)
{
    const struct ha_lane *lane = &pair->lane[0];
    const struct ha_view *view = &pair->view[0];

    if (lane->gen > 1 || view->gen > 1) {
        return 0;
    }
    return 1u << 31 | lane->gen << 17 | view->gen << 16 | (uint32_t)lane->q << 8 | (uint32_t)lane->st << 4 | view->st;
}

/* At the start slot 1 waits for slot 0 as long as that comes on, and for a peer that has not said anything yet: who
 * sets up thousands takes his time for each. */
static void ha_await_first(struct ha_pair *pair, const struct ha_event *event, uint32_t stage, uint64_t now)
{
    int heard = pair->standby_at != UINT64_MAX;

    if (pair->started && pair->epoch == 0 && (heard ? stage != ha_first_stage(pair) : event->kind == HA_EV_RECORD)) {
        pair->standby_at = now + pair->cfg.standby_delay;
    }
}

int ha_pair_step(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_action *actions)
{
    struct ha_out    out = {actions, 0};
    struct ha_before before;
    uint32_t         stage  = ha_first_stage(pair);
    int              answer = 0;

    pair->now = now;
    ha_pair_before(pair, &before);
    ha_on_event(pair, event, now, &out);
    if (event->kind == HA_EV_RECORD) {
        answer = ha_pair_echo_behind(pair, event->record) || event->value != 0;
    }
    ha_await_first(pair, event, stage, now);
    ha_pair_after(pair, &before, answer, now, &out);
    return out.count;
}
