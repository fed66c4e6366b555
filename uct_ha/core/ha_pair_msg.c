/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the two sides of a pair tell each other, and when. The own snapshots
 * form a chain in which nothing moves back; the receiver takes maxima. So it
 * does not matter which of them are lost, repeated, late or out of order.
 */

#include <string.h>

#include "ha_pair_msg_internal.h"

void ha_pair_snapshot(const struct ha_pair *pair, struct ha_record *record)
{
    memset(record, 0, sizeof(*record)); /* padding too: records are compared */
    record->epoch      = pair->epoch;
    record->seen_epoch = pair->epoch; /* own epoch is the maximum of both sides */
    record->flags      = pair->flags;
    record->seen_flags = pair->view_flags;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_lane  *lane = &pair->lane[slot];
        const struct ha_view  *view = &pair->view[slot];
        struct ha_record_lane *told = &record->lane[slot];

        told->gen      = lane->gen;
        told->act      = lane->act;
        told->rxpsn    = lane->rxpsn;
        told->received = lane->received;
        told->k        = lane->k;
        told->qpn      = lane->qpn;
        told->psn      = lane->psn;
        told->mtu      = lane->mtu;
        told->st       = lane->st;
        told->proof    = lane->proof;
        told->cause    = lane->cause; /* from the beginning of the fence on */
        told->seen_gen = view->gen;
        told->seen_st  = view->st;
    }
}

static void ha_merge_lane(struct ha_pair *pair, int slot, const struct ha_record_lane *told)
{
    struct ha_lane *lane = &pair->lane[slot];
    struct ha_view *view = &pair->view[slot];

    if (told->gen > view->gen || (told->gen == view->gen && told->act > view->act)) {
        view->act = told->act;
    }
    if (ha_rank(told->gen, told->st) > ha_rank(view->gen, view->st)) {
        if (told->st < HA_LANE_FENCED) {
            view->offer = told->proof;
        } else if (told->gen != view->gen) {
            view->offer = HA_PROOF_NONE; /* read of a lane in use only; never another lane's */
        }
        view->gen      = told->gen;
        view->st       = told->st;
        view->rxpsn    = told->rxpsn;
        view->received = told->received;
        view->k        = told->k;
        view->qpn      = told->qpn;
        view->psn      = told->psn;
        view->mtu      = told->mtu;
        view->proof    = told->proof;
        view->cause    = told->cause;
    }
    if (ha_rank(told->seen_gen, told->seen_st) > ha_rank(view->seen_gen, view->seen_st)) {
        view->seen_gen = told->seen_gen;
        view->seen_st  = told->seen_st;
    }
    if (told->gen == view->gen && told->st == view->st && told->cause > view->cause) {
        view->cause = told->cause; /* it has begun to stop the lane */
    }
    /* Only the decider numbers; the other side learns it here. */
    if (!pair->decider && told->gen == lane->gen && told->act > lane->act) {
        lane->act = told->act;
    }
}

int ha_pair_merge(struct ha_pair *pair, const struct ha_record *record)
{
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (record->lane[slot].gen > pair->lane[slot].gen + 1) {
            return 1;
        }
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        ha_merge_lane(pair, slot, &record->lane[slot]);
    }
    if (record->epoch > pair->epoch && !pair->decider) {
        pair->epoch = record->epoch;
    }
    if (record->seen_epoch > pair->seen_epoch) {
        pair->seen_epoch = record->seen_epoch;
    }
    pair->view_flags |= record->flags;
    pair->seen_flags |= record->seen_flags & pair->flags;
    return 0;
}

int ha_pair_echo_behind(const struct ha_pair *pair, const struct ha_record *record)
{
    if (record->flags & HA_PAIR_FAILED) { /* it wants to know only whether we know */
        return (pair->flags & ~record->seen_flags) != 0;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_record_lane *told = &record->lane[slot];

        if (told->seen_gen != pair->lane[slot].gen || told->seen_st != pair->lane[slot].st) {
            return 1;
        }
    }
    return record->seen_epoch < pair->epoch || (pair->flags & ~record->seen_flags);
}

/* The lane is being stopped here, and the peer has not stopped its end. Whether it has heard of
 * it is not echoed: that it stops is the answer. */
static int ha_pair_stops_alone(const struct ha_pair *pair, int slot)
{
    return pair->lane[slot].q == HA_QP_ERRING && !ha_pair_peer_stopped(pair, slot);
}

/* Has the peer, as far as we know, not merged our present state? */
static int ha_pair_is_dirty(const struct ha_pair *pair, uint64_t now)
{
    if (!pair->started || pair->gone_told || (pair->view_flags & HA_PAIR_FAILED)) {
        return 0; /* nobody there who would want to know */
    }
    if ((pair->flags & HA_PAIR_FAILED) && now >= pair->deadline) {
        return 0; /* we told it for long enough; answers only */
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (pair->view[slot].seen_gen != pair->lane[slot].gen || pair->view[slot].seen_st != pair->lane[slot].st ||
            ha_pair_stops_alone(pair, slot)) {
            return 1;
        }
    }
    /* A new epoch rides on a status that is not seen yet; but that is a matter of the rules. */
    return pair->seen_epoch < pair->epoch || (pair->flags & ~pair->seen_flags);
}

void ha_pair_before(const struct ha_pair *pair, struct ha_before *before)
{
    ha_pair_snapshot(pair, &before->record);
    before->tx_slot = ha_pair_tx_slot(pair);
    before->rx_slot = ha_pair_rx_slot(pair);
}

static int ha_pair_both_closing(const struct ha_pair *pair)
{
    return (pair->flags & pair->view_flags & HA_PAIR_CLOSING) != 0;
}

/* The time without a lane is limited. While FAILED, `deadline` is the end of
 * telling it instead, see ha_pair_fail(). */
static void ha_pair_keep_deadline(struct ha_pair *pair, int had_tx, int has_tx, uint64_t now)
{
    if (pair->flags & HA_PAIR_FAILED) {
        return;
    }
    if (has_tx || ha_pair_both_closing(pair)) {
        pair->deadline = 0;
        pair->lost_at  = 0;
    } else if (had_tx && pair->cfg.deadline != 0) {
        pair->deadline = now + pair->cfg.deadline;
        pair->lost_at  = now;
    }
}

static uint64_t ha_failback_wait(const struct ha_pair *pair)
{
    uint64_t holds = HA_FAILBACK_HOLDS * pair->hold[HA_PREFERRED_SLOT];

    if (pair->cfg.failback != HA_FAILBACK_AUTO) {
        return pair->cfg.failback;
    }
    return holds > HA_FAILBACK_AUTO_NS ? holds : HA_FAILBACK_AUTO_NS;
}

/* How long has the preferred lane been waiting, ready on both sides? */
static void ha_pair_keep_failback(struct ha_pair *pair, uint64_t now)
{
    if (pair->cfg.failback == 0 || !pair->decider) {
        return;
    }
    if (ha_pair_standby(pair) != HA_PREFERRED_SLOT || ha_pair_tx_slot(pair) == HA_NO_SLOT) {
        pair->failback_at = 0;
    } else if (pair->failback_at == 0) {
        pair->failback_at = now + ha_failback_wait(pair);
    }
}

void ha_pair_hold(struct ha_pair *pair, int slot, uint64_t wait, uint64_t now)
{
    pair->hold[slot]    = wait;
    pair->hold_at[slot] = now + wait;
    if (slot == HA_PREFERRED_SLOT) {
        pair->failback_at = 0; /* begins anew */
    }
}

void ha_pair_after(struct ha_pair *pair, const struct ha_before *before, int answer, uint64_t now, struct ha_out *out)
{
    struct ha_before after;
    int              changed;

    ha_pair_before(pair, &after);
    changed = memcmp(&before->record, &after.record, sizeof(after.record)) != 0;
    ha_pair_keep_deadline(pair, before->tx_slot != HA_NO_SLOT, after.tx_slot != HA_NO_SLOT, now);
    ha_pair_keep_failback(pair, now);
    if (ha_pair_both_closing(pair) && pair->linger_at == 0) {
        pair->linger_at = now + pair->cfg.linger;
    }
    pair->dirty = (uint8_t)ha_pair_is_dirty(pair, now);
    if ((changed || answer) && pair->started && !pair->gone_told) {
        ha_emit(out, HA_ACT_SEND, HA_NO_SLOT, 0, 0);
        if (changed) {
            pair->rtx_n  = 0;
            pair->rtx_at = now + pair->cfg.rtx_min;
        }
    }
    if (before->tx_slot != after.tx_slot || before->rx_slot != after.rx_slot) {
        ha_emit(out, HA_ACT_LANES, HA_NO_SLOT, 0, 0);
    }
}

void ha_pair_retransmit(struct ha_pair *pair, uint64_t now, struct ha_out *out)
{
    uint64_t wait = pair->cfg.rtx_min;

    pair->dirty = (uint8_t)ha_pair_is_dirty(pair, now);
    if (!pair->dirty || now < pair->rtx_at) {
        return;
    }
    pair->rtx_n++;
    for (uint32_t i = 0; i < pair->rtx_n && wait < pair->cfg.rtx_max; i++) {
        wait *= 2;
    }
    if (wait > pair->cfg.rtx_max) {
        wait = pair->cfg.rtx_max;
    }
    if (wait == 0) {
        wait = 1; /* time must move */
    }
    pair->rtx_at = now + wait;
    ha_emit(out, HA_ACT_SEND, (int)(pair->rtx_n % pair->slots), 0, 1);
}
