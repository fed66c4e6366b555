/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "ha_log.h"

void ha_log_init(struct ha_log *log, struct ha_op *ops, uint32_t capacity)
{
    memset(log, 0, sizeof(*log));
    memset(ops, 0, capacity * sizeof(*ops));
    log->mask = capacity - 1;
    log->ops  = ops;
}

void ha_log_lane_start(struct ha_log *log, int slot, uint32_t gen, uint32_t psn)
{
    struct ha_log_lane *lane = &log->lane[slot];

    memset(lane, 0, sizeof(*lane));
    lane->gen   = gen;
    lane->una   = psn & HA_PSN_MASK;
    lane->nxt   = lane->una;
    lane->first = log->head;
}

void ha_log_reject(struct ha_log *log, uint32_t index)
{
    struct ha_op *op = ha_log_op(log, index);

    if (index - log->head >= ha_log_used(log) || op->state == HA_OP_DONE)
        return;
    op->state  = HA_OP_DONE;
    op->result = HA_RESULT_REJECTED;
    ha_log_skip_to_wait(log);
}

/* Is the proof possible? `una` is behind the last success, `nxt` behind the
 * last posting; all distances are forward. */
static int ha_log_check_proof(const struct ha_log_lane *lane, int empty, uint32_t proof)
{
    if (empty)
        return lane->acked ? HA_EPROOF_ACKED : 0;
    if (ha_psn_distance(lane->una, proof) <= ha_psn_distance(lane->una, lane->nxt))
        return 0;
    return ha_psn_distance(proof, lane->una) <= ha_psn_distance(lane->nxt, proof) ?
           HA_EPROOF_ACKED : HA_EPROOF_WINDOW;
}

/* An operation without success on a lane that is over. `executed` is what the
 * peer proved. */
static void ha_log_resolve_op(struct ha_op *op, int executed, struct ha_resolution *res)
{
    if (executed && op->kind == HA_OP_SEND)
        res->k++;
    if (!executed || op->kind == HA_OP_READ) {
        op->state = HA_OP_WAIT; /* a READ that ran is repeated: its data is not here */
        res->replayed++;
        return;
    }
    op->state = HA_OP_DONE;
    if (op->kind == HA_OP_FETCH) {
        op->result = HA_RESULT_UNKNOWN;
        res->unknown++;
    } else {
        op->result = HA_RESULT_PROVEN;
        res->retired++;
    }
}

int ha_log_resolve(struct ha_log *log, int slot, uint32_t gen, int empty,
                   uint32_t proof, struct ha_resolution *res)
{
    struct ha_log_lane *lane = &log->lane[slot];
    uint32_t reached;
    int rc;

    memset(res, 0, sizeof(*res));
    if (lane->gen != gen)
        return 0; /* that queue pair never sent: nothing of ours is on it */
    rc = ha_log_check_proof(lane, empty, proof);
    if (rc != 0)
        return rc;
    reached = empty ? 0 : ha_psn_distance(lane->una, proof);
    res->k  = lane->sends;
    for (uint32_t i = log->head; i != log->tail; i++) {
        struct ha_op *op = ha_log_op(log, i);
        uint32_t end;

        if (!ha_op_is_posted_on(op, slot, gen))
            continue;
        end = ha_psn_distance(lane->una, op->psn_first) + op->npsn;
        ha_log_resolve_op(op, !empty && end <= reached, res);
    }
    lane->una   = lane->nxt;
    lane->sends = res->k;
    log->post   = log->head;
    ha_log_skip_to_wait(log);
    return 0;
}

void ha_log_cancel(struct ha_log *log)
{
    for (uint32_t i = log->head; i != log->tail; i++) {
        struct ha_op *op = ha_log_op(log, i);

        if (op->state != HA_OP_DONE) {
            op->state  = HA_OP_DONE;
            op->result = HA_RESULT_CANCELED;
        }
    }
    log->post = log->tail;
}

int ha_log_posted_on(const struct ha_log *log, int slot, uint32_t gen)
{
    const struct ha_log_lane *lane = &log->lane[slot];

    if (lane->gen != gen || lane->una == lane->nxt)
        return 0;
    for (uint32_t i = log->head; i != log->tail; i++)
        if (ha_op_is_posted_on(ha_log_op(log, i), slot, gen))
            return 1;
    return 0;
}
