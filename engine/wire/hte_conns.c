/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_conns.h"

#include "hte_move.h"
#include "hte_op.h"
#include "hte_orphan.h"

#define DOUBT_NS  1000000000ull /* so long is no answer a reason to look for the peer's process */
#define CANCEL_NS 500000000ull  /* so long what was posted may come to its end by itself after a cancel */

/* ---- breaking down ---- */

/* UCX has nothing of it any more: what is left are WRITEs that no flush confirmed. */
static void fail_the_rest(struct hte_conn *conn)
{
    struct hte_op *op;

    while (!hte_ring_is_empty(&conn->posted)) {
        op = HTE_OBJECT_OF(conn->posted.next, struct hte_op, link);
        hte_op_fail(op, conn->error);
    }
}

/* What UCX has of it, it will keep: nobody is there to answer. */
static void leave(struct hte_conn *conn)
{
    struct hte_op *op;

    conn->uncovered = 0;
    hte_ring_remove(&conn->dirty_link);
    hte_ring_remove(&conn->broken_link);
    hte_conn_strike(conn);
    conn->error = HTE_ERR_DEAD_PEER;
    conn->step  = HTE_CONN_LEFT;
    while (!hte_ring_is_empty(&conn->posted)) {
        op = HTE_OBJECT_OF(conn->posted.next, struct hte_op, link);
        if (!op->by_letters && hte_slice_is_with_ucx(&op->state)) {
            hte_orphan_make(op->request, op->keys, &conn->orphans, &conn->pending);
            op->keys = NULL;
        }
        hte_op_event(op, HTE_SLICE_EXPIRE, op->is_expired ? HTE_ERR_TIMEOUT : HTE_ERR_DEAD_PEER);
    }
}

/* Another process has the segment's name. */
static bool is_replaced(const struct hte_conn *conn)
{
    struct hte_view *view     = hte_segment_view(conn->segment);
    bool             is_other = view->incarnation != conn->incarnation;

    hte_view_put(view);
    return is_other;
}

/* Nobody is left who could answer, and UCX will not notice. A port that another process has now was given up by the
 * first one; a name in a store says less. */
static bool has_nobody(const struct hte_conn *conn)
{
    return conn->is_unguarded &&
           (atomic_load(&conn->segment->is_deserted) || (conn->segment->is_address && is_replaced(conn)));
}

static void mend(struct hte_conn *conn)
{
    if (conn->step == HTE_CONN_BROKEN) {
        conn->step = HTE_CONN_CLOSING;
        /* By force UCX closes only what was opened with error mode PEER; else it refuses, and the endpoint would be
         * lost. */
        hte_conn_close(conn, conn->is_unguarded ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
    }
    if (conn->by_letters) {
        fail_the_rest(conn); /* UCX has copies only */
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

void hte_conns_mend(struct hte_lane *lane)
{
    struct hte_link_ring *link, *next;

    for (link = lane->broken.next; link != &lane->broken; link = next) {
        next = link->next;
        mend(HTE_OBJECT_OF(link, struct hte_conn, broken_link));
    }
}

void hte_conns_break_all(struct hte_lane *lane, int error)
{
    struct hte_link_ring *link;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        hte_conn_break(HTE_OBJECT_OF(link, struct hte_conn, link), error);
    }
}

/* It ends now; or with its connection, when UCX has its memory and has to be made to give it back. */
static void give_up(struct hte_op *op, int error)
{
    if (op->by_letters) {
        hte_move_void(op);
        hte_op_event(op, HTE_SLICE_EXPIRE, error);
    } else {
        op->is_expired = error == HTE_ERR_TIMEOUT;
        hte_conn_break(op->conn, error);
    }
}

static void expire(struct hte_conn *conn, uint64_t timeout)
{
    struct hte_link_ring *link, *next;
    struct hte_op        *op;

    for (link = conn->posted.next; link != &conn->posted; link = next) {
        next = link->next;
        op   = HTE_OBJECT_OF(link, struct hte_op, link);
        if (conn->lane->now - op->posted_at < timeout) {
            break; /* in order of posting */
        }
        give_up(op, HTE_ERR_TIMEOUT);
    }
}

void hte_conns_expire(struct hte_lane *lane, uint64_t timeout)
{
    struct hte_link_ring *link;
    struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        expire(conn, timeout);
    }
}

static void cancel(struct hte_conn *conn)
{
    struct hte_lane      *lane = conn->lane;
    struct hte_link_ring *link, *next;
    struct hte_op        *op;

    for (link = conn->posted.next; link != &conn->posted; link = next) {
        next = link->next;
        op   = HTE_OBJECT_OF(link, struct hte_op, link);
        if (!lane->hooks->is_canceled(lane, op)) {
            continue;
        }
        if (op->canceled_at == 0) {
            op->canceled_at    = lane->now;
            lane->has_canceled = true;
        } else if (lane->now - op->canceled_at >= CANCEL_NS) {
            give_up(op, HTE_ERR_CANCELED);
        } else {
            lane->has_canceled = true;
        }
    }
}

void hte_conns_cancel(struct hte_lane *lane)
{
    struct hte_link_ring *link;

    lane->has_canceled = false;
    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        cancel(HTE_OBJECT_OF(link, struct hte_conn, link));
    }
}

static bool takes_long(const struct hte_conn *conn)
{
    const struct hte_op *oldest = HTE_OBJECT_OF(conn->posted.next, const struct hte_op, link);

    return !hte_ring_is_empty(&conn->posted) && conn->lane->now - oldest->posted_at >= DOUBT_NS;
}

/* UCX will notice, but hardware may try again for many seconds first, and a transport below with a second rail once
 * more. What was known before the first look does not count. */
static void doubt_rdma(struct hte_conn *conn)
{
    const struct hte_segment *segment = conn->segment;

    if (conn->doubts > 1 && atomic_load(&segment->is_deserted) && !atomic_load(&segment->is_refreshing)) {
        hte_conn_break(conn, HTE_ERR_DEAD_PEER);
    } else if ((conn->doubts & (conn->doubts - 1)) == 0) { /* less and less often */
        conn->lane->hooks->look(conn->lane, conn->segment);
    }
}

static void doubt(struct hte_conn *conn)
{
    /* Of one that UCX will not give back, after it broke, too: hte_conns_mend() waits for the answer. */
    if (!takes_long(conn) || (conn->step != HTE_CONN_UP && !conn->is_unguarded)) {
        conn->doubts = 0;
        return;
    }
    ++conn->doubts;
    if (conn->is_unguarded) {
        conn->lane->hooks->doubt(conn->lane, conn->segment);
        if (has_nobody(conn)) {
            hte_conn_break(conn, HTE_ERR_DEAD_PEER);
        }
    } else if (conn->way == HTE_WAY_RDMA) {
        doubt_rdma(conn);
    }
}

void hte_conns_doubt(struct hte_lane *lane)
{
    struct hte_link_ring *link;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        doubt(HTE_OBJECT_OF(link, struct hte_conn, link));
    }
}

bool hte_conns_are_idle(const struct hte_lane *lane)
{
    const struct hte_link_ring *link;
    const struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
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

static bool is_obsolete(const struct hte_conn *conn)
{
    return atomic_load(&conn->segment->is_closed) || is_replaced(conn);
}

/* Requests in the queue that were made before the close open a connection again, and the next sweep ends it. */
void hte_conns_sweep(struct hte_lane *lane)
{
    struct hte_link_ring *link, *next;
    struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = next) {
        next = link->next;
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->near != NULL) {
            hte_near_sweep(conn->near);
        }
        if (conn->pending > 0 || conn->step > HTE_CONN_UP || !hte_ring_is_empty(&conn->posted) || !is_obsolete(conn)) {
            continue;
        }
        if (conn->step == HTE_CONN_IDLE) {
            hte_conn_destroy(conn);
        } else {
            conn->step = HTE_CONN_CLOSING; /* nothing is posted: it ends in IDLE, the next sweep destroys it */
            hte_conn_close(conn, 0);
            hte_ring_append(&lane->broken, &conn->broken_link);
        }
    }
}

void hte_conns_close(struct hte_lane *lane)
{
    struct hte_link_ring *link;
    struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->step == HTE_CONN_UP) {
            conn->step = HTE_CONN_CLOSING;
            hte_conn_close(conn, 0);
            hte_ring_append(&lane->broken, &conn->broken_link);
        }
    }
}

void hte_conns_release(struct hte_lane *lane)
{
    struct hte_link_ring *link, *inner;
    struct hte_op        *op;
    struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        for (inner = conn->posted.next; inner != &conn->posted; inner = inner->next) {
            op = HTE_OBJECT_OF(inner, struct hte_op, link);
            hte_keys_put(op->keys);
            op->keys = NULL;
        }
        hte_orphans_release(&conn->orphans);
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

void hte_conns_abandon(struct hte_lane *lane)
{
    struct hte_link_ring *link;
    struct hte_op        *op;
    struct hte_conn      *conn;

    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        while (!hte_ring_is_empty(&conn->posted)) {
            op = HTE_OBJECT_OF(conn->posted.next, struct hte_op, link);
            hte_op_event(op, HTE_SLICE_EXPIRE, HTE_ERR_CANCELED);
        }
        hte_letters_free(&conn->letters);
    }
}

void hte_conns_destroy(struct hte_lane *lane)
{
    while (!hte_ring_is_empty(&lane->conns)) {
        hte_conn_destroy(HTE_OBJECT_OF(lane->conns.next, struct hte_conn, link));
    }
}

/* ---- for others ---- */

unsigned hte_conns_count_warm(struct hte_lane *lane, const struct hte_segment *segment, int *error)
{
    struct hte_link_ring *link;
    struct hte_conn      *conn;
    unsigned              count = 0;

    pthread_mutex_lock(&lane->lock);
    for (link = lane->conns.next; link != &lane->conns; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, link);
        if (conn->segment == segment && !is_replaced(conn)) {
            count += atomic_load(&conn->is_warm);
            if (atomic_load(&conn->strikes) > 0) {
                *error = atomic_load(&conn->error);
            }
        }
    }
    pthread_mutex_unlock(&lane->lock);
    return count;
}
