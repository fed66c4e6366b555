/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_flush.h"

#include "hte_move.h"
#include "hte_op.h"
#include "hte_status.h"

#define SHARE 4 /* uncovered WRITEs: at most window / SHARE */

/* Everything up to seq is in the target's memory. */
static void covered(struct hte_conn *conn, uint64_t seq)
{
    struct hte_link_ring *link, *next;
    struct hte_op        *op;

    for (link = conn->posted.next; link != &conn->posted; link = next) {
        next = link->next;
        op   = HTE_OBJECT_OF(link, struct hte_op, link);
        if (op->seq > seq) {
            return;
        }
        if (op->state.is_write && op->state.step != HTE_SLICE_SEEN) {
            hte_op_event(op, HTE_SLICE_FLUSHED, HTE_OK);
        }
    }
}

static void on_flush(void *request, ucs_status_t status, void *arg)
{
    struct hte_flush *flush = arg;
    struct hte_conn  *conn  = flush->conn;

    flush->is_out = false;
    --conn->flushes_out;
    --conn->pending;
    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        hte_conn_succeeded(conn);
        covered(conn, flush->seq);
    } else {
        hte_conn_break(conn, hte_error_of_ucs(status));
    }
}

static struct hte_flush *free_flush(struct hte_conn *conn)
{
    unsigned i;

    for (i = 0; i < HTE_FLUSHES_MAX; ++i) {
        if (!conn->flush[i].is_out) {
            return &conn->flush[i];
        }
    }
    return NULL;
}

static void post_rma(struct hte_conn *conn, struct hte_flush *flush)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_flush,
        .user_data    = flush,
    };
    ucs_status_ptr_t request;

    flush->is_out = true;
    flush->seq    = conn->seq;
    ++conn->flushes_out;
    ++conn->pending;
    request = ucp_ep_flush_nbx(conn->ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        on_flush(NULL, UCS_PTR_STATUS(request), flush);
    }
}

static void post_flush(struct hte_conn *conn)
{
    struct hte_flush *flush = conn->by_letters ? NULL : free_flush(conn);

    if (conn->flushes_out >= HTE_FLUSHES_MAX) {
        return;
    }
    conn->uncovered = 0;
    hte_ring_remove(&conn->dirty_link);
    atomic_fetch_add_explicit(&conn->lane->flushes, 1, memory_order_relaxed);
    if (conn->by_letters) {
        hte_move_flush(conn);
    } else {
        post_rma(conn, flush);
    }
}

static bool is_due(const struct hte_conn *conn)
{
    struct hte_lane *lane    = conn->lane;
    enum hte_outlook outlook = lane->hooks->outlook(lane, conn->segment);

    if (outlook == HTE_OUTLOOK_DRY || (outlook == HTE_OUTLOOK_STUCK && conn->flushes_out == 0)) {
        return true;
    }
    return conn->uncovered * SHARE >= lane->window;
}

void hte_conns_flush(struct hte_lane *lane)
{
    struct hte_link_ring *link, *next;
    struct hte_conn      *conn;

    for (link = lane->dirty.next; link != &lane->dirty; link = next) {
        next = link->next;
        conn = HTE_OBJECT_OF(link, struct hte_conn, dirty_link);
        if (conn->step != HTE_CONN_UP) {
            conn->uncovered = 0;
            hte_ring_remove(&conn->dirty_link);
        } else if (is_due(conn)) {
            post_flush(conn);
        }
    }
}

void hte_conns_warm(struct hte_lane *lane, struct hte_segment *segment, struct hte_view *view)
{
    struct hte_conn *conn;
    unsigned         rail;

    for (rail = 0; rail < lane->n_rails; ++rail) {
        conn = hte_conn_get(lane, segment, view, rail, rail % view->rails, false);
        if (conn == NULL || !hte_conn_is_usable(conn, view) || conn->is_warm) {
            continue;
        }
        if (conn->near != NULL) {
            hte_conn_succeeded(conn); /* it was tried */
        } else {
            post_flush(conn);
        }
    }
}
