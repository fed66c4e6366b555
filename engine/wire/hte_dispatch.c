/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_dispatch.h"

#include "hte_keys.h"
#include "hte_move.h"
#include "hte_near_ops.h"
#include "hte_orphan.h"
#include "hte_status.h"

static void account_begin(struct hte_lane *lane, unsigned rail, uint64_t length)
{
    struct hte_lane_rail *mine = &lane->rail[rail];

    if (mine->inflight == 0) {
        hte_rate_begin(&mine->rate, lane->now);
    }
    mine->inflight += length;
    atomic_fetch_add_explicit(&lane->rails->rail[rail].inflight, length, memory_order_relaxed);
}

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
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        (op->is_local_gpu ? UCP_OP_ATTR_FIELD_MEMORY_TYPE : 0),
        .cb.send     = on_op,
        .user_data   = op,
        .memory_type = UCS_MEMORY_TYPE_CUDA,
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
    op->conn        = conn;
    op->seq         = ++conn->seq;
    op->by_letters  = conn->by_letters;
    op->canceled_at = 0;
    hte_ring_append(&conn->posted, &op->link);
}

static void post_rma(struct hte_op *op, struct hte_conn *conn, struct hte_view *view)
{
    struct hte_keys *keys   = hte_keys_of(&conn->keys, view);
    ucs_status_t     status = UCS_OK;
    ucs_status_ptr_t request;

    if (!hte_keys_has(keys, op->buffer)) {
        status = hte_keys_unpack(keys, conn->ep, conn->remote_rail, op->buffer);
    }
    ++conn->pending;
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

/* Moved by hte_near_run_all(). The keys are there for the view only. */
static void post_near(struct hte_op *op, struct hte_conn *conn, struct hte_view *view)
{
    atomic_fetch_add_explicit(&conn->lane->posts_near, 1, memory_order_relaxed);
    op->keys = hte_keys_of(&conn->keys, view);
    if (op->keys == NULL) {
        hte_op_fail(op, HTE_ERR_MEMORY);
        return;
    }
    ++op->keys->users;
    hte_near_note(conn);
}

void hte_dispatch(struct hte_op *op, struct hte_conn *conn, struct hte_view *view)
{
    begin(op, conn);
    if (conn->near != NULL) {
        post_near(op, conn, view);
    } else if (conn->by_letters) {
        atomic_fetch_add_explicit(&conn->lane->posts_letters, 1, memory_order_relaxed);
        if (op->state.is_write) {
            note_uncovered(conn, op);
        }
        hte_move_post(op, conn, view);
    } else {
        post_rma(op, conn, view);
    }
}
