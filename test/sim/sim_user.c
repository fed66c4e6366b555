/* SPDX-License-Identifier: BSD-3-Clause */

/* The user of one side: it submits, flushes, cancels, and lets go. */

#include "sim.h"

int sim_user_has_room(struct sim_side *side)
{
    uint32_t length = side->log.mask + 1;

    if (ha_log_room(&side->log) == 0 && length < SIM_LOG_SIZE) {
        ha_log_move(&side->log, side->log_ops[side->log.ops == side->log_ops[0]], 2 * length);
    }
    return ha_log_room(&side->log) > 0;
}

int sim_user_submit(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_op   *op   = &side->op[side->submitted];
    uint32_t         index;
    unsigned         flags = 0;

    (void)slot;
    if (p->world->lazy && !sim_chance(p->world, 10)) {
        return 0;
    }
    if (side->submitted == side->num_ops || !sim_user_has_room(side) || side->failed || side->flushing) {
        return 0;
    }
    if (op->fence) {
        flags |= HA_OP_FLAG_FENCE;
    }
    if (op->kind == HA_OP_WRITE && p->side[!x].counted) {
        flags |= HA_OP_FLAG_RECEIVE;
    }
    if (op->quiet) {
        flags |= HA_OP_FLAG_QUIET;
    }
    index                             = ha_log_append(&side->log, (enum ha_op_kind)op->kind, flags, op->length);
    side->op_of[index % SIM_LOG_SIZE] = side->submitted++;
    op->submitted                     = 1;
    return 1;
}

/* Is everything that was submitted before the flush out of the log? */
static int flush_is_over(const struct sim_side *side)
{
    return (int32_t)(side->log.head - side->flush_index) >= 0;
}

static int end_flush(struct sim_pair *p, int x)
{
    struct sim_side *side = &p->side[x];

    side->flushing = 0;
    p->world->cover[SIM_COVER_FLUSH_WAITED] += side->pair.epoch > side->flush_epoch && !side->failed;
    if (side->ended < side->flush_ops) {
        sim_violation(p, "I1 side %d: a flush ends, %u of the %u operations before it have ended", x, side->ended,
                      side->flush_ops);
    }
    return 1;
}

/* Begins one, sometimes, or ends the one under way. The user waits for it. */
int sim_user_flush(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];

    (void)slot;
    if (side->flushing) {
        return flush_is_over(side) && end_flush(p, x);
    }
    if (side->failed || ha_log_used(&side->log) == 0 || !sim_chance(p->world, 3)) {
        return 0;
    }
    side->flushing    = 1;
    side->flush_index = side->log.tail;
    side->flush_ops   = side->submitted;
    side->flush_epoch = side->pair.epoch;
    return 1;
}

/* The user lets go when it owes nothing. */
int sim_user_close(struct sim_pair *p, int x, int slot)
{
    static const struct ha_event event = {.kind = HA_EV_CLOSE};
    struct sim_side             *side  = &p->side[x];

    (void)slot;
    if (side->closed || side->flushing || side->ended != side->num_ops) {
        return 0;
    }
    side->closed = 1;
    p->world->cover[SIM_COVER_CLOSED_EARLY] += p->side[!x].ended != p->side[!x].num_ops;
    sim_trace(p, "side %d: its user lets go", x);
    sim_side_give(p, x, &event);
    return 1;
}

/* The user ends the endpoint while operations are outstanding. */
void sim_user_cancel(struct sim_pair *p, int x)
{
    struct ha_event event = {.kind = HA_EV_PEER_LOST, .value = HA_FAIL_CANCELED};

    if (p->side[x].closed || p->side[x].gone || p->side[x].dead) {
        return;
    }
    p->world->cover[SIM_COVER_CANCELED]++;
    sim_trace(p, "side %d: its user cancels", x);
    sim_side_give(p, x, &event);
}
