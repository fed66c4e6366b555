/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "hte_letter.h"
#include "hte_status.h"
#include "hte_way.h"

#define BACKOFF_NS     2000000ull /* after the first breakdown; doubles */
#define BACKOFF_MAX_NS 1000000000ull
#define LOOK_NS        50000000ull
#define COPIED_MAX     (16u << 20) /* bytes of one connection that nobody takes */

static struct hte_link_ring *bucket_of(struct hte_lane *lane, const struct hte_segment *segment)
{
    return &lane->buckets[segment->slot % HTE_CONN_BUCKETS];
}

/* The lower half of a number counts. */
static struct hte_link_ring *opening_bucket(struct hte_lane *lane, uint64_t id)
{
    return &lane->openings[id % HTE_CONN_BUCKETS];
}

static bool is_of(const struct hte_conn *conn, const struct hte_segment *segment, const struct hte_view *view,
                  bool is_gpu)
{
    return conn->segment == segment && conn->incarnation == view->incarnation && conn->is_gpu == is_gpu;
}

struct hte_conn *hte_conn_find(struct hte_lane *lane, const struct hte_segment *segment, const struct hte_view *view,
                               unsigned rail, unsigned remote_rail, bool is_gpu)
{
    struct hte_link_ring *link, *bucket = bucket_of(lane, segment);
    struct hte_conn      *conn;

    for (link = bucket->next; link != bucket; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, bucket_link);
        if (conn->rail == rail && conn->remote_rail == remote_rail && is_of(conn, segment, view, is_gpu)) {
            return conn;
        }
    }
    return NULL;
}

struct hte_conn *hte_conn_of_opening(struct hte_lane *lane, uint64_t id)
{
    struct hte_link_ring *link, *bucket = opening_bucket(lane, id);
    struct hte_conn      *conn;

    for (link = bucket->next; link != bucket; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, opening_link);
        if (conn->id == id) {
            return conn->by_letters && conn->step == HTE_CONN_UP ? conn : NULL;
        }
    }
    return NULL;
}

static struct hte_conn *create(struct hte_lane *lane, struct hte_segment *segment, const struct hte_view *view,
                               unsigned rail, unsigned remote_rail, bool is_gpu)
{
    struct hte_conn *conn = calloc(1, sizeof(*conn));
    unsigned         i;

    if (conn == NULL) {
        return NULL;
    }
    atomic_fetch_add(&segment->refs, 1);
    conn->lane        = lane;
    conn->segment     = segment;
    conn->incarnation = view->incarnation;
    conn->rail        = rail;
    conn->remote_rail = remote_rail;
    conn->is_gpu      = is_gpu;
    snprintf(conn->remote_device, sizeof(conn->remote_device), "%s", view->descriptor->devices[remote_rail].name);
    for (i = 0; i < HTE_FLUSHES_MAX; ++i) {
        conn->flush[i].conn = conn;
    }
    hte_ring_init(&conn->opening_link);
    hte_ring_init(&conn->near_link);
    hte_ring_init(&conn->dirty_link);
    hte_ring_init(&conn->broken_link);
    hte_ring_init(&conn->posted);
    hte_ring_init(&conn->orphans);
    hte_ring_init(&conn->letters);
    hte_ring_append(bucket_of(lane, segment), &conn->bucket_link);
    pthread_mutex_lock(&lane->lock);
    hte_ring_append(&lane->conns, &conn->link);
    pthread_mutex_unlock(&lane->lock);
    return conn;
}

struct hte_conn *hte_conn_get(struct hte_lane *lane, struct hte_segment *segment, const struct hte_view *view,
                              unsigned rail, unsigned remote_rail, bool is_gpu)
{
    struct hte_conn *conn = hte_conn_find(lane, segment, view, rail, remote_rail, is_gpu);

    return conn != NULL ? conn : create(lane, segment, view, rail, remote_rail, is_gpu);
}

static bool is_waiting(const struct hte_conn *conn)
{
    return conn->step == HTE_CONN_IDLE && conn->lane->now < conn->retry_at;
}

uint32_t hte_conns_unusable(struct hte_lane *lane, const struct hte_segment *segment, const struct hte_view *view,
                            bool is_gpu)
{
    struct hte_link_ring *link, *bucket = bucket_of(lane, segment);
    struct hte_conn      *conn;
    uint32_t              mask = 0;

    for (link = bucket->next; link != bucket; link = link->next) {
        conn = HTE_OBJECT_OF(link, struct hte_conn, bucket_link);
        if (is_of(conn, segment, view, is_gpu) && (conn->step > HTE_CONN_UP || is_waiting(conn))) {
            mask |= 1u << conn->rail;
        }
    }
    return mask;
}

/* ---- opening and breaking ---- */

static void doubt(struct hte_conn *conn)
{
    conn->lane->hooks->doubt(conn->lane, conn->segment);
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    hte_conn_break(arg, hte_error_of_ucs(status));
}

/* Plain shared memory (UCX_TLS=sm) does not know error mode PEER: without it UCX does not notice a dead peer, and
 * hte_conns_doubt() has to. */
static ucs_status_t open_at(struct hte_conn *conn, const void *address)
{
    ucp_worker_h    ucp = conn->lane->rail[conn->rail].ucp;
    ucs_status_t    status;
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
        doubt(conn); /* that somebody is there: see remote/hte_refresh.c */
    }
    return status;
}

/* An engine of before letters does not understand them. */
static bool goes_by_letters(const struct hte_conn *conn, const struct hte_view *view, bool has_rma)
{
    if (view->descriptor->letters != HTE_LETTERS_VERSION || conn->lane->moves == HTE_MOVES_RMA || conn->is_gpu) {
        return false;
    }
    return conn->lane->moves == HTE_MOVES_LETTERS || !has_rma;
}

/* What others are told. `names`: transports that UCX chose, or why the connection is not near. */
static void say_way(struct hte_conn *conn, int way, const char *names, const char *why)
{
    static const char *const words[] = {[HTE_WAY_SAME_HOST] = "same host, without UCX",
                                        [HTE_WAY_RDMA]      = "by put and get of UCX, in hardware",
                                        [HTE_WAY_MESSAGES]  = "by messages",
                                        [HTE_WAY_EMULATED]  = "by put and get of UCX, emulated"};

    pthread_mutex_lock(&conn->lane->lock);
    conn->way = way;
    snprintf(conn->words, sizeof(conn->words), "%s%s%s%s%s", words[way], names[0] == '\0' ? "" : " over ", names,
             why[0] == '\0' ? "" : "; not by the same-host path: ", why);
    pthread_mutex_unlock(&conn->lane->lock);
}

/* Where UCX emulates put and get, it ends the process when the peer dies: that is asked for, or it is not done. */
static bool can_move_gpu(const struct hte_conn *conn)
{
    return conn->way == HTE_WAY_RDMA ? conn->lane->moves != HTE_MOVES_LETTERS : conn->lane->moves == HTE_MOVES_RMA;
}

static bool is_fit(const struct hte_conn *conn)
{
    if (conn->is_gpu && !can_move_gpu(conn)) {
        return false;
    }
    switch (conn->lane->require) {
    case HTE_REQUIRE_RDMA:
        return conn->way == HTE_WAY_RDMA;
    case HTE_REQUIRE_SAME_HOST:
        return conn->way == HTE_WAY_SAME_HOST;
    default:
        return true;
    }
}

/* What comes later for the opening before finds none. */
static void number(struct hte_conn *conn)
{
    conn->id    = conn->lane->nonce << 32 | ++conn->lane->last_conn;
    conn->guest = 0;
    hte_ring_remove(&conn->opening_link);
    hte_ring_append(opening_bucket(conn->lane, conn->id), &conn->opening_link);
}

static ucs_status_t open_endpoint(struct hte_conn *conn, const struct hte_view *view, const char *why)
{
    unsigned thread  = conn->lane->index % view->threads;
    void    *address = hte_blob_padded(&view->descriptor->workers[thread * view->rails + conn->remote_rail].address);
    char     names[96];
    bool     has_rma;
    ucs_status_t status;

    if (address == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = open_at(conn, address);
    free(address);
    if (status == UCS_OK) {
        has_rma          = hte_way_has_rma(conn->ep, names, sizeof(names));
        conn->by_letters = goes_by_letters(conn, view, has_rma);
        say_way(conn, conn->by_letters ? HTE_WAY_MESSAGES : has_rma ? HTE_WAY_RDMA : HTE_WAY_EMULATED, names, why);
        number(conn);
        if (conn->by_letters) {
            conn->flushes_out = 0; /* of the time before */
        }
    }
    return status;
}

static ucs_status_t open_any(struct hte_conn *conn, const struct hte_view *view)
{
    char why[128] = "";
    bool is_gone  = false;

    conn->near = conn->is_gpu ? NULL : hte_near_open(view, conn->lane->rails->host, &is_gone, why, sizeof(why));
    if (conn->near != NULL) {
        conn->by_letters = false;
        say_way(conn, HTE_WAY_SAME_HOST, "", "");
        return UCS_OK;
    }
    if (is_gone) {
        /* Nor may UCX try: its tcp ends this process by an assertion when the connection that ucp_ep_create() makes
         * over the loopback is reset before that returns, as that of a process which is just being killed is. */
        return UCS_ERR_CONNECTION_RESET;
    }
    return open_endpoint(conn, view, conn->lane->rails->host[0] == '\0' ? "" : why);
}

void hte_conn_strike(struct hte_conn *conn)
{
    uint64_t backoff = BACKOFF_NS << (conn->strikes < 20 ? conn->strikes : 20);

    doubt(conn); /* another process may have the name now */
    ++conn->strikes;
    conn->retry_at = conn->lane->now + (backoff < BACKOFF_MAX_NS ? backoff : BACKOFF_MAX_NS);
}

bool hte_conn_is_deserted(const struct hte_conn *conn)
{
    return (conn->step == HTE_CONN_IDLE || conn->step == HTE_CONN_LEFT) && conn->strikes > 0 &&
           atomic_load(&conn->segment->is_deserted);
}

/* Somebody looks whether the target is there at all: a moment well spent, as a transport may take many seconds for
 * that. */
static bool awaits_news(const struct hte_conn *conn)
{
    return conn->strikes > 0 && atomic_load(&conn->segment->is_refreshing) &&
           conn->lane->now < conn->retry_at + LOOK_NS;
}

bool hte_conn_is_hopeless(const struct hte_conn *conn)
{
    if (conn->step == HTE_CONN_LEFT || (conn->is_unfit && conn->step > HTE_CONN_UP)) {
        return true;
    }
    if (conn->is_unfit && conn->step == HTE_CONN_IDLE && conn->lane->now < conn->retry_at) {
        return true;
    }
    return conn->step == HTE_CONN_IDLE && conn->strikes > conn->lane->retry_count && conn->lane->now < conn->retry_at;
}

bool hte_conn_is_usable(struct hte_conn *conn, const struct hte_view *view)
{
    ucs_status_t status;

    if (conn->step != HTE_CONN_IDLE) {
        return conn->step == HTE_CONN_UP && conn->copied <= COPIED_MAX;
    }
    if (conn->lane->now < conn->retry_at || awaits_news(conn)) {
        return false;
    }
    status = open_any(conn, view);
    if (status != UCS_OK) {
        conn->error = hte_error_of_ucs(status);
        hte_conn_strike(conn);
        return false;
    }
    if (conn->strikes > 0) {
        atomic_fetch_add_explicit(&conn->reconnects, 1, memory_order_relaxed);
    }
    conn->step     = HTE_CONN_UP;
    conn->is_unfit = !is_fit(conn);
    if (conn->is_unfit) {
        hte_conn_break(conn, conn->is_gpu ? HTE_ERR_NOT_IMPLEMENTED : HTE_ERR_ENDPOINT);
    }
    return !conn->is_unfit;
}

void hte_conn_break(struct hte_conn *conn, int error)
{
    if (conn->step == HTE_CONN_UP) {
        conn->step  = HTE_CONN_BROKEN;
        conn->error = error;
        atomic_fetch_add_explicit(&conn->lane->ep_errors, 1, memory_order_relaxed);
        hte_ring_append(&conn->lane->broken, &conn->broken_link);
    }
}

/* ---- the end ---- */

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

void hte_conn_close(struct hte_conn *conn, uint32_t flags)
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
    if (conn->near != NULL) {
        hte_near_close(conn->near);
        conn->near = NULL;
        return;
    }
    ++conn->pending;
    request = ucp_ep_close_nbx(conn->ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        conn->closing = request;
    } else {
        on_close(NULL, UCS_PTR_STATUS(request), conn);
    }
}

void hte_conn_destroy(struct hte_conn *conn)
{
    /* Who adds up the segment's connections, under the lock of each lane in turn, sees by conns_ended that one went
     * from the list to the sum meanwhile. */
    pthread_mutex_lock(&conn->lane->lock);
    hte_ring_remove(&conn->link);
    atomic_fetch_add(&conn->segment->past_transferred, atomic_load(&conn->transferred));
    atomic_fetch_add(&conn->segment->past_reconnects, atomic_load(&conn->reconnects));
    atomic_fetch_add(&conn->lane->conns_ended, 1);
    pthread_mutex_unlock(&conn->lane->lock);
    hte_ring_remove(&conn->bucket_link);
    hte_ring_remove(&conn->opening_link);
    hte_ring_remove(&conn->near_link);
    hte_ring_remove(&conn->dirty_link);
    hte_near_close(conn->near);
    hte_keys_put(conn->keys);
    hte_segment_put(conn->segment);
    free(conn);
}
