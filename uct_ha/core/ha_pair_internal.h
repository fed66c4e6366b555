/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PAIR_INTERNAL_H_
#define HA_PAIR_INTERNAL_H_

/* Shared by ha_pair.c (events), ha_pair_rule.c (transitions) and ha_pair_msg.c
 * (snapshot, merge, retransmission). Nobody else includes this. */

#include "ha_pair.h"

/* Bits of ha_lane.asked: actions emitted whose answer is still to come. */
#define HA_ASKED_CREATE  0x1u
#define HA_ASKED_RESOLVE 0x2u
#define HA_ASKED_CLOSE   0x4u

struct ha_out {
    struct ha_action *actions;
    int               count;
};

/* What was visible before a call; compared with what is visible after it. */
struct ha_before {
    struct ha_record record;
    int              tx_slot, rx_slot;
};

static inline void ha_emit(struct ha_out *out, enum ha_action_kind kind, int slot,
                           uint32_t gen, uint32_t value)
{
    struct ha_action *action;

    if (out->count < HA_ACTIONS_MAX) {
        action        = &out->actions[out->count++];
        action->kind  = kind;
        action->slot  = slot;
        action->gen   = gen;
        action->value = value;
    }
}

static inline int ha_pair_same_gen(const struct ha_pair *pair, int slot)
{
    return pair->view[slot].gen == pair->lane[slot].gen;
}

/* Position of a lane: ordered by generation, then by status. */
static inline uint64_t ha_rank(uint32_t gen, unsigned st)
{
    return ((uint64_t)gen << 8) | st;
}

/* ---- ha_pair.c ---- */

/* 1 if this side could post on the lane, whatever the peer says. */
int ha_lane_works(const struct ha_pair *pair, int slot);

/* Begin to fence; does nothing when that has begun already. */
void ha_lane_fence(struct ha_pair *pair, int slot, unsigned cause, struct ha_out *out);

void ha_lane_close(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out);

void ha_pair_fail(struct ha_pair *pair, unsigned why, uint64_t now, struct ha_out *out);

/* ---- ha_pair_msg.c ---- */

/* Take the peer's snapshot in: maximum of everything. Returns 1 when the peer
 * is more than one generation ahead (nothing was merged then). */
int ha_pair_merge(struct ha_pair *pair, const struct ha_record *record);

/* 1 when the sender of `record` does not know our present state. */
int ha_pair_echo_behind(const struct ha_pair *pair, const struct ha_record *record);

void ha_pair_before(const struct ha_pair *pair, struct ha_before *before);

/* Compare with `before`: sends, tells about changed lanes, keeps `dirty`, the
 * deadline and the retransmission timer. `answer`: send even without a change. */
void ha_pair_after(struct ha_pair *pair, const struct ha_before *before, int answer,
                   uint64_t now, struct ha_out *out);

/* HA_EV_HOLD. */
void ha_pair_hold(struct ha_pair *pair, int slot, uint64_t wait, uint64_t now);

/* HA_EV_TIMER: send again when it is time to. */
void ha_pair_retransmit(struct ha_pair *pair, uint64_t now, struct ha_out *out);

#endif
