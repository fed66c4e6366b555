/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_conn.h"

#include <stdlib.h>

#include "hte_engine.h"
#include "hte_orphan.h"
#include "hte_status.h"

#define DOUBT_NS    1000000000ull /* so long is no answer a reason to look for the peer's process */
#define FLUSH_SHARE 4 /* uncovered WRITEs: at most window / FLUSH_SHARE */

/* ---- flushing ---- */

/* Everything up to seq is in the target's memory. */
static void covered(struct hte_conn *conn, uint64_t seq)
{
    struct hte_link_ring *link, *next;
    struct hte_slice *slice;

    for (link = conn->posted.next; link != &conn->posted; link = next) {
        next  = link->next;
        slice = HTE_OBJECT_OF(link, struct hte_slice, link);
        if (slice->seq > seq) {
            return;
        }
        if (slice->state.is_write && slice->state.step != HTE_SLICE_SEEN) {
            hte_slice_event(conn->worker, slice, HTE_SLICE_FLUSHED, HTE_OK);
        }
    }
}

static void succeeded(struct hte_conn *conn)
{
    conn->strikes = 0;
    conn->is_warm = true;
}

static void on_flush(void *request, ucs_status_t status, void *arg)
{
    struct hte_flush *flush = arg;
    struct hte_conn *conn   = flush->conn;

    flush->is_out = false;
    --conn->flushes_out;
    --conn->pending;
    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        succeeded(conn);
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

static void post_flush(struct hte_conn *conn)
{
    struct hte_flush *flush = free_flush(conn);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_flush,
        .user_data    = flush,
    };
    ucs_status_ptr_t request;

    if (flush == NULL) {
        return;
    }
    flush->is_out   = true;
    flush->seq      = conn->seq;
    conn->uncovered = 0;
    hte_ring_remove(&conn->dirty_link);
    ++conn->flushes_out;
    ++conn->pending;
    atomic_fetch_add_explicit(&conn->worker->flushes, 1, memory_order_relaxed);
    request = ucp_ep_flush_nbx(conn->ep, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        on_flush(NULL, UCS_PTR_STATUS(request), flush);
    }
}

/* Nothing more will be posted soon, or nothing can be until WRITEs are confirmed. */
static bool is_dry(struct hte_worker *worker, const struct hte_conn *conn)
{
    const struct hte_flow *flow = hte_flow_of(worker, conn->segment);

    if (hte_flow_spare(worker, flow) == 0) {
        return conn->flushes_out == 0;
    }
    return !flow->is_stalled && hte_ring_is_empty(&worker->active);
}

void hte_conns_flush(struct hte_worker *worker)
{
    struct hte_link_ring *link, *next;
    struct hte_conn *conn;

    for (link = worker->dirty.next; link != &worker->dirty; link = next) {
        next = link->next;
        conn = HTE_OBJECT_OF(link, struct hte_conn, dirty_link);
        if (conn->step != HTE_CONN_UP) {
            conn->uncovered = 0;
            hte_ring_remove(&conn->dirty_link);
        } else if (is_dry(worker, conn) || conn->uncovered * FLUSH_SHARE >= worker->engine->settings.window) {
            post_flush(conn);
        }
    }
}

void hte_conns_warm(struct hte_worker *worker, struct hte_warm *warm)
{
    struct hte_conn *conn;
    unsigned rail;

    for (rail = 0; rail < worker->n_rails; ++rail) {
        conn = hte_conn_get(worker, warm->segment, warm->view, rail, rail % warm->view->rails);
        if (conn != NULL && hte_conn_is_usable(conn, warm->view) && !conn->is_warm) {
            post_flush(conn);
        }
    }
    hte_segment_put(warm->segment);
    hte_view_put(warm->view);
    free(warm);
}

/* ---- breaking down ---- */

static void on_close(void *request, ucs_status_t status, void *arg)
{
    struct hte_conn *conn = arg;

    (void)status;
    --conn->pending;
    conn->closing = NULL;
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void close_endpoint(struct hte_conn *conn, uint32_t flags)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .cb.send      = on_close,
        .user_data    = conn,
        .flags        = flags,
    };
    ucs_status_ptr_t request;

    hte_keys_put(conn->keys);
    conn->keys    = NULL;
    conn->is_warm = false;
    ++conn->pending;
    request = ucp_ep_close_nbx(conn->ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        conn->closing = request;
    } else {
        on_close(NULL, UCS_PTR_STATUS(request), conn);
    }
}

/* UCX has nothing of it any more: what is left are WRITEs that no flush confirmed. */
static void fail_the_rest(struct hte_conn *conn)
{
    struct hte_slice *slice;

    while (!hte_ring_is_empty(&conn->posted)) {
        slice = HTE_OBJECT_OF(conn->posted.next, struct hte_slice, link);
        hte_slice_fail(conn->worker, slice, conn->error);
    }
}

/* What UCX has of it, it will keep: nobody is there to answer. */
static void leave(struct hte_conn *conn)
{
    struct hte_slice *slice;

    conn->uncovered = 0;
    hte_ring_remove(&conn->dirty_link);
    hte_ring_remove(&conn->broken_link);
    hte_conn_strike(conn);
    conn->error = HTE_ERR_DEAD_PEER;
    conn->step  = HTE_CONN_LEFT;
    while (!hte_ring_is_empty(&conn->posted)) {
        slice = HTE_OBJECT_OF(conn->posted.next, struct hte_slice, link);
        if (hte_slice_is_with_ucx(&slice->state)) {
            hte_orphan_make(slice);
        }
        hte_slice_event(conn->worker, slice, HTE_SLICE_EXPIRE,
                        slice->is_expired ? HTE_ERR_TIMEOUT : HTE_ERR_DEAD_PEER);
    }
}

/* Another process has the segment's name. */
static bool is_replaced(const struct hte_conn *conn)
{
    struct hte_view *view = hte_segment_view(conn->segment);
    bool is_other         = view->incarnation != conn->incarnation;

    hte_view_put(view);
    return is_other;
}

/* Nobody is left who could answer, and UCX will not notice. A port that another process has now was given up by the first one; a
 * name in a store says less. */
static bool has_nobody(const struct hte_conn *conn)
{
    return conn->is_unguarded &&
           (atomic_load(&conn->segment->is_deserted) || (conn->segment->is_address && is_replaced(conn)));
}

static void mend(struct hte_conn *conn)
{
    if (conn->step == HTE_CONN_BROKEN) {
        conn->step = HTE_CONN_CLOSING;
        /* By force UCX closes only what was opened with error mode PEER; else it refuses, and the endpoint would be lost. */
        close_endpoint(conn, conn->is_unguarded ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
    }
    if (conn->pending == 0) {
        conn->uncovered = 0;
        hte_ring_remove(&conn->dirty_link);
        hte_ring_remove(&conn->broken_link);
        hte_conn_strike(conn);
        conn->step = HTE_CONN_IDLE;
        fail_the_rest(conn);
    } else if (has_nobody(conn)) {
        leave(conn);
    }
}

void hte_conns_mend(struct hte_worker *worker)
{
    struct hte_link_ring *link, *next;

    for (link = worker->broken.next; link != &worker->broken; link = next) {
        next = link->next;
        mend(HTE_OBJECT_OF(link, struct hte_conn, broken_link));
    }
}

void hte_conns_break_all(struct hte_worker *worker, int error)
{
    struct hte_link_ring *link;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        hte_conn_break(HTE_OBJECT_OF(link, struct hte_conn, link), error);
    }
}

void hte_conns_expire(struct hte_worker *worker, uint64_t timeout)
{
    struct hte_link_ring *link, *inner;
    struct hte_slice *slice;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        for (inner = conn->posted.next; inner != &conn->posted; inner = inner->next) {
            slice = HTE_OBJECT_OF(inner, struct hte_slice, link);
            if (worker->now - slice->posted_at < timeout) {
                break; /* in order of posting */
            }
            slice->is_expired = true;
            hte_conn_break(conn, HTE_ERR_TIMEOUT);
        }
    }
}

static bool takes_long(const struct hte_conn *conn)
{
    const struct hte_slice *oldest = HTE_OBJECT_OF(conn->posted.next, const struct hte_slice, link);

    return !hte_ring_is_empty(&conn->posted) && conn->worker->now - oldest->posted_at >= DOUBT_NS;
}

void hte_conns_doubt(struct hte_worker *worker)
{
    struct hte_link_ring *link;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->is_unguarded && takes_long(conn)) {
            hte_refresh_order(&worker->engine->refresh, conn->segment);
            if (has_nobody(conn)) {
                hte_conn_break(conn, HTE_ERR_DEAD_PEER);
            }
        }
    }
}

bool hte_conns_are_idle(const struct hte_worker *worker)
{
    const struct hte_link_ring *link;
    const struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, const struct hte_conn, link);
        if (conn->step == HTE_CONN_LEFT) {
            continue;
        }
        if (conn->pending > 0 || conn->step > HTE_CONN_UP || !hte_ring_is_empty(&conn->posted)) {
            return false;
        }
    }
    return true;
}

/* ---- the end ---- */

static void destroy(struct hte_conn *conn)
{
    pthread_mutex_lock(&conn->worker->lock);
    hte_ring_remove(&conn->link);
    pthread_mutex_unlock(&conn->worker->lock);
    hte_ring_remove(&conn->bucket_link);
    hte_ring_remove(&conn->dirty_link);
    hte_keys_put(conn->keys);
    hte_segment_put(conn->segment);
    free(conn);
}

static bool is_obsolete(const struct hte_conn *conn)
{
    return atomic_load(&conn->segment->is_closed) || is_replaced(conn);
}

/* Requests in the queue that were made before the close open a connection again, and the next sweep ends it. */
void hte_conns_sweep(struct hte_worker *worker)
{
    struct hte_link_ring *link, *next;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = next) {
        next = link->next;
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->pending > 0 || conn->step > HTE_CONN_UP || !hte_ring_is_empty(&conn->posted) ||
            !is_obsolete(conn)) {
            continue;
        }
        if (conn->step == HTE_CONN_IDLE) {
            destroy(conn);
        } else {
            conn->step = HTE_CONN_CLOSING; /* nothing is posted: it ends in IDLE, the next sweep destroys it */
            close_endpoint(conn, 0);
            hte_ring_append(&worker->broken, &conn->broken_link);
        }
    }
}

void hte_conns_close(struct hte_worker *worker)
{
    struct hte_link_ring *link;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->step == HTE_CONN_UP) {
            conn->step = HTE_CONN_CLOSING;
            close_endpoint(conn, 0);
            hte_ring_append(&worker->broken, &conn->broken_link);
        }
    }
}

void hte_conns_release(struct hte_worker *worker)
{
    struct hte_link_ring *link, *inner;
    struct hte_slice *slice;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        for (inner = conn->posted.next; inner != &conn->posted; inner = inner->next) {
            slice = HTE_OBJECT_OF(inner, struct hte_slice, link);
            hte_keys_put(slice->keys);
            slice->keys = NULL;
        }
        hte_orphans_release(conn);
        hte_keys_put(conn->keys);
        conn->keys = NULL;
        if (conn->closing != NULL) {
            /* UCX asserts that nobody waits for a close that ends with its worker, and does not say that it has. */
            ucp_request_free(conn->closing);
            conn->closing = NULL;
            --conn->pending;
        }
    }
}

void hte_conns_abandon(struct hte_worker *worker)
{
    struct hte_link_ring *link;
    struct hte_slice *slice;
    struct hte_conn *conn;

    for (link = worker->conns.next; link != &worker->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        while (!hte_ring_is_empty(&conn->posted)) {
            slice = HTE_OBJECT_OF(conn->posted.next, struct hte_slice, link);
            hte_slice_event(worker, slice, HTE_SLICE_EXPIRE, HTE_ERR_CANCELED);
        }
    }
}

void hte_conns_destroy(struct hte_worker *worker)
{
    while (!hte_ring_is_empty(&worker->conns)) {
        destroy(HTE_OBJECT_OF(worker->conns.next, struct hte_conn, link));
    }
}
