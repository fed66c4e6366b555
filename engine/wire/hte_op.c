/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_op.h"

#include "hte_keys.h"

static void account_end(struct hte_lane *lane, const struct hte_op *op, bool is_done)
{
    unsigned              index = op->conn->rail;
    struct hte_rail      *rail  = &lane->rails->rail[index];
    struct hte_lane_rail *mine  = &lane->rail[index];

    mine->inflight -= op->length;
    atomic_fetch_sub_explicit(&rail->inflight, op->length, memory_order_relaxed);
    if (is_done) {
        hte_rate_add(&mine->rate, op->length, lane->now);
        atomic_fetch_add_explicit(&rail->transferred, op->length, memory_order_relaxed);
        atomic_fetch_add_explicit(&op->conn->transferred, op->length, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&rail->errors, op->units, memory_order_relaxed);
    }
}

/* The rail that it had failed on is charged, once it went through on another. */
static void succeeded(struct hte_lane *lane, struct hte_op *op)
{
    int bad_rail = op->state.bad_rail;

    if (bad_rail >= 0 && bad_rail != (int)op->conn->rail) {
        hte_rail_charge(lane->rails, (unsigned)bad_rail, lane->now);
    }
    hte_conn_succeeded(op->conn);
}

void hte_op_event(struct hte_op *op, enum hte_slice_event event, int error)
{
    struct hte_lane      *lane         = op->conn->lane;
    bool                  was_with_ucx = hte_slice_is_with_ucx(&op->state);
    enum hte_slice_action action       = hte_slice_on(&op->state, event, (int)op->conn->rail);

    if (was_with_ucx && !hte_slice_is_with_ucx(&op->state)) {
        lane->hooks->let_go(lane, op);
    }
    if (action == HTE_SLICE_NOTHING || action == HTE_SLICE_ILLEGAL) {
        return;
    }
    hte_ring_remove(&op->link);
    if (op->by_letters && op->token != HTE_TOKEN_NONE) {
        hte_tokens_give_back(&lane->tokens, op->token); /* what still comes for it is for nobody */
        if (op->state.is_write && action != HTE_SLICE_COMPLETE) {
            atomic_fetch_add(&lane->rails->epoch, 1); /* and what is still on its way to the target */
        }
    }
    hte_keys_put(op->keys);
    op->keys = NULL;
    account_end(lane, op, action == HTE_SLICE_COMPLETE);
    if (action == HTE_SLICE_COMPLETE) {
        succeeded(lane, op);
    }
    lane->hooks->over(lane, op, action, error);
}

void hte_op_fail(struct hte_op *op, int error)
{
    if (op->is_expired) {
        hte_op_event(op, HTE_SLICE_EXPIRE, HTE_ERR_TIMEOUT);
    } else {
        hte_op_event(op, HTE_SLICE_FAIL, error);
    }
}
