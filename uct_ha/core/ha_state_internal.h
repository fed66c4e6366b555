/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_STATE_INTERNAL_H_
#define HA_STATE_INTERNAL_H_

/* How a state is changed: shared by ha_pair.c (events), ha_pair_rule.c (transitions) and
 * ha_pair_msg.c (snapshot, merge, retransmission). Nobody else includes this. */

#include "ha_state.h"

/* Bits of ha_lane.asked: actions emitted whose answer is still to come. */
#define HA_ASKED_CREATE  0x1u
#define HA_ASKED_RESOLVE 0x2u
#define HA_ASKED_CLOSE   0x4u

struct ha_out {
    struct ha_action *actions;
    int               count;
};

static inline void ha_emit(struct ha_out *out, enum ha_action_kind kind, int slot, uint32_t gen, uint32_t value)
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

/* 1 if this side could post on the lane, whatever the peer says. */
int ha_lane_works(const struct ha_pair *pair, int slot);

/* What this side can prove about a lane that is fenced. */
void ha_lane_set_proof(struct ha_lane *lane, unsigned kind, uint32_t word, uint32_t received);

/* Begin to fence; does nothing when that has begun already. */
void ha_lane_fence(struct ha_pair *pair, int slot, unsigned cause, struct ha_out *out);

void ha_lane_close(struct ha_pair *pair, int slot, uint64_t now, struct ha_out *out);

void ha_pair_fail(struct ha_pair *pair, unsigned why, uint64_t now, struct ha_out *out);

#endif
