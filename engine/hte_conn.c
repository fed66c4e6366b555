/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "hte_engine.h"
#include "hte_orphan.h"
#include "hte_status.h"

#define BACKOFF_NS     2000000ull   /* after the first breakdown; doubles */
#define BACKOFF_MAX_NS 1000000000ull
#define LOOK_NS        50000000ull

static struct hte_link_ring *bucket_of(struct hte_worker *worker, const struct hte_segment *segment)
{
    return &worker->buckets[segment->slot % HTE_CONN_BUCKETS];
}

static bool is_of(const struct hte_conn *conn, const struct hte_segment *segment, const struct hte_view *view)
{
    return conn->segment == segment && conn->incarnation == view->incarnation;
}

static struct hte_conn *find(struct hte_worker *worker, const struct hte_segment *segment, const struct hte_view *view,
                             unsigned rail, unsigned remote_rail)
{
    struct hte_link_ring *link, *bucket = bucket_of(worker, segment);
    struct hte_conn *conn;

    for (link = bucket->next; link != bucket; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, bucket_link);
        if (conn->rail == rail && conn->remote_rail == remote_rail && is_of(conn, segment, view)) {
            return conn;
        }
    }
    return NULL;
}

static struct hte_conn *create(struct hte_worker *worker, struct hte_segment *segment, const struct hte_view *view,
                               unsigned rail, unsigned remote_rail)
{
    struct hte_conn *conn = calloc(1, sizeof(*conn));
    unsigned i;

    if (conn == NULL) {
        return NULL;
    }
    atomic_fetch_add(&segment->refs, 1);
    conn->worker      = worker;
    conn->segment     = segment;
    conn->incarnation = view->incarnation;
    conn->rail        = rail;
    conn->remote_rail = remote_rail;
    snprintf(conn->remote_device, sizeof(conn->remote_device), "%s", view->descriptor->devices[remote_rail].name);
    for (i = 0; i < HTE_FLUSHES_MAX; ++i) {
        conn->flush[i].conn = conn;
    }
    hte_ring_init(&conn->dirty_link);
    hte_ring_init(&conn->broken_link);
    hte_ring_init(&conn->posted);
    hte_ring_init(&conn->orphans);
    hte_ring_append(bucket_of(worker, segment), &conn->bucket_link);
    pthread_mutex_lock(&worker->lock);
    hte_ring_append(&worker->conns, &conn->link);
    pthread_mutex_unlock(&worker->lock);
    return conn;
}

struct hte_conn *hte_conn_get(struct hte_worker *worker, struct hte_segment *segment, const struct hte_view *view,
                              unsigned rail, unsigned remote_rail)
{
    struct hte_conn *conn = find(worker, segment, view, rail, remote_rail);

    return conn != NULL ? conn : create(worker, segment, view, rail, remote_rail);
}

static bool is_waiting(const struct hte_conn *conn)
{
    return conn->step == HTE_CONN_IDLE && conn->worker->now < conn->retry_at;
}

uint32_t hte_conns_unusable(struct hte_worker *worker, const struct hte_segment *segment, const struct hte_view *view)
{
    struct hte_link_ring *link, *bucket = bucket_of(worker, segment);
    struct hte_conn *conn;
    uint32_t mask = 0;

    for (link = bucket->next; link != bucket; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, bucket_link);
        if (is_of(conn, segment, view) && (conn->step > HTE_CONN_UP || is_waiting(conn))) {
            mask |= 1u << conn->rail;
        }
    }
    return mask;
}

/* ---- keys ---- */

void hte_keys_put(struct hte_keys *keys)
{
    uint32_t i;

    if (keys == NULL || --keys->users > 0) {
        return;
    }
    for (i = 0; i < keys->view->descriptor->num_buffers; ++i) {
        if (keys->rkeys[i] != NULL) {
            ucp_rkey_destroy(keys->rkeys[i]);
        }
    }
    hte_view_put(keys->view);
    free(keys);
}

static struct hte_keys *keys_of(struct hte_conn *conn, struct hte_view *view)
{
    struct hte_keys *keys = conn->keys;

    if (keys != NULL && keys->view->serial == view->serial) {
        return keys;
    }
    keys = calloc(1, sizeof(*keys) + view->descriptor->num_buffers * sizeof(keys->rkeys[0]));
    if (keys == NULL) {
        return NULL;
    }
    atomic_fetch_add(&view->refs, 1);
    keys->view  = view;
    keys->users = 1;
    hte_keys_put(conn->keys);
    conn->keys = keys;
    return keys;
}

static ucs_status_t unpack(struct hte_conn *conn, struct hte_keys *keys, uint32_t buffer)
{
    ucs_status_t status;
    void *key;

    if (keys->rkeys[buffer] != NULL) {
        return UCS_OK;
    }
    key = hte_blob_padded(&keys->view->descriptor->buffers[buffer].keys[conn->remote_rail]);
    if (key == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_ep_rkey_unpack(conn->ep, key, &keys->rkeys[buffer]);
    free(key);
    return status;
}

/* ---- opening and breaking ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    hte_conn_break(arg, hte_error_of_ucs(status));
}

/* Plain shared memory (UCX_TLS=sm) does not know error mode PEER: without it UCX does not notice a dead peer, and
 * hte_conns_doubt() has to. */
static ucs_status_t open_at(struct hte_conn *conn, const void *address)
{
    ucp_worker_h ucp = conn->worker->rail[conn->rail].ucp;
    ucs_status_t status;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address         = address,
        .err_mode        = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler.cb  = on_error,
        .err_handler.arg = conn,
    };
    if (!conn->is_unguarded) {
        status = ucp_ep_create(ucp, &params, &conn->ep);
        if (status != UCS_ERR_UNREACHABLE) {
            return status;
        }
    }
    params.err_mode    = UCP_ERR_HANDLING_MODE_NONE;
    status             = ucp_ep_create(ucp, &params, &conn->ep);
    conn->is_unguarded = status == UCS_OK;
    if (conn->is_unguarded) {
        hte_refresh_order(&conn->worker->engine->refresh, conn->segment); /* that somebody is there: see hte_refresh.c */
    }
    return status;
}

static ucs_status_t open_endpoint(struct hte_conn *conn, const struct hte_view *view)
{
    unsigned thread = conn->worker->index % view->threads;
    void *address   = hte_blob_padded(&view->descriptor->workers[thread * view->rails + conn->remote_rail].address);
    ucs_status_t status;

    if (address == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = open_at(conn, address);
    free(address);
    return status;
}

void hte_conn_strike(struct hte_conn *conn)
{
    uint64_t backoff = BACKOFF_NS << (conn->strikes < 20 ? conn->strikes : 20);

    hte_refresh_order(&conn->worker->engine->refresh, conn->segment); /* another process may have the name now */
    ++conn->strikes;
    conn->retry_at = conn->worker->now + (backoff < BACKOFF_MAX_NS ? backoff : BACKOFF_MAX_NS);
}

bool hte_conn_is_deserted(const struct hte_conn *conn)
{
    return (conn->step == HTE_CONN_IDLE || conn->step == HTE_CONN_LEFT) && conn->strikes > 0 &&
           atomic_load(&conn->segment->is_deserted);
}

/* Somebody looks whether the target is there at all: a moment well spent, as a transport may take many seconds for that. */
static bool awaits_news(const struct hte_conn *conn)
{
    return conn->strikes > 0 && atomic_load(&conn->segment->is_refreshing) &&
           conn->worker->now < conn->retry_at + LOOK_NS;
}

bool hte_conn_is_hopeless(const struct hte_conn *conn)
{
    if (conn->step == HTE_CONN_LEFT) {
        return true;
    }
    return conn->step == HTE_CONN_IDLE && conn->strikes > conn->worker->engine->settings.retry_count &&
           conn->worker->now < conn->retry_at;
}

bool hte_conn_is_usable(struct hte_conn *conn, const struct hte_view *view)
{
    ucs_status_t status;

    if (conn->step != HTE_CONN_IDLE) {
        return conn->step == HTE_CONN_UP;
    }
    if (conn->worker->now < conn->retry_at || awaits_news(conn)) {
        return false;
    }
    status = open_endpoint(conn, view);
    if (status != UCS_OK) {
        conn->error = hte_error_of_ucs(status);
        hte_conn_strike(conn);
        return false;
    }
    if (conn->strikes > 0) {
        atomic_fetch_add_explicit(&conn->reconnects, 1, memory_order_relaxed);
    }
    conn->step = HTE_CONN_UP;
    return true;
}

void hte_conn_break(struct hte_conn *conn, int error)
{
    if (conn->step == HTE_CONN_UP) {
        conn->step  = HTE_CONN_BROKEN;
        conn->error = error;
        atomic_fetch_add_explicit(&conn->worker->ep_errors, 1, memory_order_relaxed);
        hte_ring_append(&conn->worker->broken, &conn->broken_link);
    }
}

/* ---- posting ---- */

/* UCX is through with a request of a slice. The slice may be SENT, and stay in `posted` for its flush. */
static void on_slice(void *request, ucs_status_t status, void *arg)
{
    struct hte_slice *slice = arg;
    struct hte_conn *conn;

    if (hte_orphan_end(request)) {
        return; /* the slice may be another one by now */
    }
    conn = slice->conn;
    --conn->pending;
    if (request != NULL) {
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        hte_slice_event(conn->worker, slice, HTE_SLICE_LOCAL, HTE_OK);
    } else {
        hte_slice_fail(conn->worker, slice, conn->step == HTE_CONN_UP ? hte_error_of_ucs(status) : conn->error);
    }
}

static ucs_status_ptr_t put_or_get(struct hte_conn *conn, struct hte_slice *slice)
{
    ucp_rkey_h rkey             = slice->keys->rkeys[slice->buffer];
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_slice,
        .user_data    = slice,
    };
    if (slice->state.is_write) {
        return ucp_put_nbx(conn->ep, slice->local, slice->length, slice->remote, rkey, &param);
    }
    return ucp_get_nbx(conn->ep, slice->local, slice->length, slice->remote, rkey, &param);
}

static void note_uncovered(struct hte_conn *conn, const struct hte_slice *slice)
{
    conn->uncovered += slice->units;
    if (hte_ring_is_empty(&conn->dirty_link)) {
        hte_ring_append(&conn->worker->dirty, &conn->dirty_link);
    }
}

void hte_conn_post(struct hte_conn *conn, struct hte_slice *slice, struct hte_view *view)
{
    struct hte_keys *keys = keys_of(conn, view);
    ucs_status_t status   = keys == NULL ? UCS_ERR_NO_MEMORY : unpack(conn, keys, slice->buffer);
    ucs_status_ptr_t request;

    slice->conn = conn;
    slice->keys = keys;
    slice->seq  = ++conn->seq;
    hte_ring_append(&conn->posted, &slice->link);
    ++conn->pending;
    if (keys != NULL) {
        ++keys->users;
    }
    if (status != UCS_OK) {
        on_slice(NULL, status, slice);
        return;
    }
    if (slice->state.is_write) {
        note_uncovered(conn, slice);
    }
    request = put_or_get(conn, slice);
    if (UCS_PTR_IS_PTR(request)) {
        slice->request = request;
    } else {
        on_slice(NULL, UCS_PTR_STATUS(request), slice);
    }
}
