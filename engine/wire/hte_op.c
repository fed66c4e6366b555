/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_op.h"

#include "hte_keys.h"
#include "hte_orphan.h"
#include "hte_status.h"

/* ---- its end ---- */

static void account_begin(struct hte_lane *lane, unsigned rail, uint64_t length)
{
    struct hte_lane_rail *mine = &lane->rail[rail];

    if (mine->inflight == 0) {
        hte_rate_begin(&mine->rate, lane->now);
    }
    mine->inflight += length;
    atomic_fetch_add_explicit(&lane->rails->rail[rail].inflight, length, memory_order_relaxed);
}

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

/* ---- posting ---- */

/* UCX is through with its request. A WRITE may be SENT, and stay in `posted` for its flush. */
static void on_op(void *request, ucs_status_t status, void *arg)
{
    struct hte_op   *op = arg;
    struct hte_conn *conn;

    if (hte_orphan_end(request)) {
        return; /* the memory may be another one's by now */
    }
    conn = op->conn;
    --conn->pending;
    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        hte_op_event(op, HTE_SLICE_LOCAL, HTE_OK);
    } else {
        hte_op_fail(op, conn->step == HTE_CONN_UP ? hte_error_of_ucs(status) : conn->error);
    }
}

static ucs_status_ptr_t put_or_get(struct hte_conn *conn, struct hte_op *op)
{
    ucp_rkey_h          rkey  = op->keys->rkeys[op->buffer];
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_op,
        .user_data    = op,
    };
    if (op->state.is_write) {
        return ucp_put_nbx(conn->ep, op->local, op->length, op->remote, rkey, &param);
    }
    return ucp_get_nbx(conn->ep, op->local, op->length, op->remote, rkey, &param);
}

static void note_uncovered(struct hte_conn *conn, const struct hte_op *op)
{
    conn->uncovered += op->units;
    if (hte_ring_is_empty(&conn->dirty_link)) {
        hte_ring_append(&conn->lane->dirty, &conn->dirty_link);
    }
}

static void begin(struct hte_op *op, struct hte_conn *conn)
{
    struct hte_lane *lane = conn->lane;

    hte_slice_on(&op->state, HTE_SLICE_POST, (int)conn->rail);
    op->posted_at = lane->now;
    account_begin(lane, conn->rail, op->length);
    atomic_fetch_add_explicit(&lane->posts, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&lane->slices_posted, op->units, memory_order_relaxed);
    op->conn = conn;
    op->seq  = ++conn->seq;
    hte_ring_append(&conn->posted, &op->link);
    ++conn->pending;
}

void hte_op_post(struct hte_op *op, struct hte_conn *conn, struct hte_view *view)
{
    struct hte_keys *keys   = hte_keys_of(&conn->keys, view);
    ucs_status_t     status = UCS_OK;
    ucs_status_ptr_t request;

    if (!hte_keys_has(keys, op->buffer)) {
        status = hte_keys_unpack(keys, conn->ep, conn->remote_rail, op->buffer);
    }
    begin(op, conn);
    op->keys = keys;
    if (keys != NULL) {
        ++keys->users;
    }
    if (status != UCS_OK) {
        on_op(NULL, status, op);
        return;
    }
    if (op->state.is_write) {
        note_uncovered(conn, op);
    }
    request = put_or_get(conn, op);
    if (UCS_PTR_IS_PTR(request)) {
        op->request = request;
    } else {
        on_op(NULL, UCS_PTR_STATUS(request), op);
    }
}
