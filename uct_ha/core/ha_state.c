/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_state_internal.h"

#include <string.h>

#include "ha_log.h"

void ha_pair_init(struct ha_pair *pair, const struct ha_pair_config *cfg, int decider, int slots)
{
    memset(pair, 0, sizeof(*pair));
    pair->cfg     = *cfg;
    pair->decider = decider != 0;
    pair->slots   = slots < 2 ? 1 : 2;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        pair->lane[slot].st      = HA_LANE_CLOSED;
        pair->view[slot].st      = HA_LANE_CLOSED;
        pair->view[slot].seen_st = HA_LANE_CLOSED;
    }
}

/* ---- questions ---- */

int ha_pair_failed(const struct ha_pair *pair)
{
    return (pair->flags & HA_PAIR_FAILED) != 0;
}

int ha_pair_peer_closing(const struct ha_pair *pair)
{
    return (pair->view_flags & HA_PAIR_CLOSING) != 0;
}

/* Is everything that was posted before lane `slot` served at least `st`? */
static int ha_pair_older_at(const struct ha_pair *pair, int slot, unsigned st)
{
    const struct ha_lane *lane = &pair->lane[slot], *other = &pair->lane[!slot];

    return other->act == 0 || other->act > lane->act || other->st >= st;
}

int ha_lane_works(const struct ha_pair *pair, int slot)
{
    const struct ha_lane *lane = &pair->lane[slot];

    return lane->st == HA_LANE_READY && lane->q == HA_QP_UP && ha_pair_same_gen(pair, slot);
}

int ha_pair_tx_slot(const struct ha_pair *pair)
{
    if (ha_pair_failed(pair) || pair->epoch == 0) {
        return HA_NO_SLOT;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (ha_lane_works(pair, slot) && pair->view[slot].st >= HA_LANE_READY && pair->lane[slot].act == pair->epoch &&
            ha_pair_older_at(pair, slot, HA_LANE_RESOLVED)) {
            return slot;
        }
    }
    return HA_NO_SLOT;
}

int ha_pair_rx_slot(const struct ha_pair *pair)
{
    if (ha_pair_failed(pair)) {
        return HA_NO_SLOT;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (pair->lane[slot].act != 0 && pair->lane[slot].st < HA_LANE_CLOSED &&
            ha_pair_older_at(pair, slot, HA_LANE_CLOSED)) {
            return slot;
        }
    }
    return HA_NO_SLOT;
}

int ha_pair_standby(const struct ha_pair *pair)
{
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (ha_lane_works(pair, slot) && pair->view[slot].st == HA_LANE_READY && pair->lane[slot].act == 0) {
            return slot;
        }
    }
    return HA_NO_SLOT;
}

struct ha_evidence ha_pair_evidence(const struct ha_pair *pair, int slot)
{
    const struct ha_view *view = &pair->view[slot];
    struct ha_evidence    peer = {.kind = view->proof, .word = view->rxpsn, .received = view->received};

    return peer;
}

int ha_pair_peer_stopped(const struct ha_pair *pair, int slot)
{
    return !ha_pair_same_gen(pair, slot) || pair->view[slot].st >= HA_LANE_FENCED;
}

int ha_pair_ledger(const struct ha_pair *pair, int slot, uint64_t *addr, uint32_t *key)
{
    const struct ha_view *view = &pair->view[slot];

    *addr = (uint64_t)view->received << 32 | view->k;
    *key  = view->rxpsn;
    return view->st < HA_LANE_FENCED && view->offer == HA_PROOF_LEDGER;
}

unsigned ha_pair_bad_proof(int error)
{
    switch (error) {
    case HA_EPROOF_WINDOW:
        return HA_FAIL_PROOF_WINDOW;
    case HA_EPROOF_ORDER:
        return HA_FAIL_PROOF_ORDER;
    default:
        return HA_FAIL_PROOF_ACKED;
    }
}

/* ---- fencing, closing, failing ---- */

void ha_lane_set_proof(struct ha_lane *lane, unsigned kind, uint32_t word, uint32_t received)
{
    lane->proof    = (uint8_t)kind;
    lane->rxpsn    = ha_proof_has_word(kind) ? word : 0;
    lane->received = ha_proof_has_count(kind) ? received : 0;
    lane->k        = 0;
}

void ha_lane_fence(struct ha_pair *pair, int slot, unsigned cause, struct ha_out *out)
{
    struct ha_lane *lane = &pair->lane[slot];

    switch (lane->q) {
    case HA_QP_INIT:
        /* It never accepted and never sent a packet: nothing to settle or drain. */
        lane->q       = HA_QP_ERR;
        lane->st      = HA_LANE_FENCED;
        lane->drained = 1;
        ha_lane_set_proof(lane, HA_PROOF_EMPTY, 0, 0);
        break;
    case HA_QP_CONNECTING:
    case HA_QP_UP:
        lane->q = HA_QP_ERRING; /* the status stays: nothing may be proven yet */
        break;
    default:
        return;
    }
    lane->cause = (uint8_t)cause;
    ha_emit(out, HA_ACT_FENCE, slot, lane->gen, cause);
}

void ha_pair_fail(struct ha_pair *pair, unsigned why, uint64_t now, struct ha_out *out)
{
    if (ha_pair_failed(pair)) {
        return;
    }
    pair->flags |= HA_PAIR_FAILED;
    pair->fail     = (uint8_t)why;
    pair->drain_at = now + pair->cfg.drain_timeout;
    pair->deadline = now + pair->cfg.linger; /* the peer is told until then */
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        ha_lane_fence(pair, slot, HA_CAUSE_CLOSE, out);
    }
}

void ha_lane_close(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out)
{
    struct ha_lane *lane = &pair->lane[slot];

    if (lane->q != HA_QP_NONE) {
        ha_emit(out, HA_ACT_DESTROY_QP, slot, lane->gen, 0);
    }
    lane->st       = HA_LANE_CLOSED;
    lane->q        = HA_QP_NONE;
    lane->asked    = 0;
    lane->renew_at = now + pair->cfg.cooldown;
}
