/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_WORKER_H_
#define HTE_WORKER_H_

/*
 * A worker thread: the only one that touches its UCP workers (one per rail), endpoints, slices and the pieces it took. It
 * serves both roles: it posts own slices, and its UCP workers carry out what peers post, where the transport needs the target's help.
 *
 *   take pieces ─▶ cut, post ─▶ progress ─▶ mend broken connections ─▶ post retries ─▶ flush ─▶ ... ─▶ nothing to do: sleep
 *
 * Nothing is posted from inside UCX's callbacks; they only note what happened.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "core/hte_rail_state.h"
#include "core/hte_slice.h"
#include "hte_batch.h"
#include "hte_list.h"
#include "hte_rail.h"

struct hte_conn;
struct hte_keys;

/* One operation for UCX: a slice, or where there is one device and thus nothing to divide, a run of neighbouring ones. */
struct hte_slice {
    struct hte_link_ring   link;   /* worker's free or ready, or conn's posted */
    struct hte_slice_state state;
    struct hte_piece      *piece;
    char                  *local;
    uint64_t               remote, length;
    uint32_t               units;  /* slices in it, for window and counters */
    uint32_t               buffer; /* index in the view */
    uint32_t               preferred, available; /* rails near the local memory */
    bool                   is_expired;
    struct hte_conn       *conn;   /* while posted */
    struct hte_keys       *keys;   /* while posted */
    uint64_t               seq;    /* of the connection */
    uint64_t               posted_at, ready_at, failed_at;
    int32_t                error;  /* of the last failure */
};

struct hte_worker_rail {
    ucp_worker_h    ucp;
    ucp_address_t  *address;
    size_t          address_length;
    int             event_fd;
    uint64_t        inflight;
    struct hte_rate rate;
};

/* An order from outside: connect to a segment. The caller watches the connections' is_warm. */
struct hte_warm {
    struct hte_link_ring link;
    struct hte_segment  *segment; /* reference */
    struct hte_view     *view;    /* reference */
};

/*
 * The window bounds what UCX has of a thread, as in a plain loop of ucp_put_nbx(): a WRITE whose local memory UCX has let go of
 * makes room for the next. Else the window would have to be larger than all that transports keep on the way; TCP's
 * sockets alone take more than 128 slices, and run dry then, again and again. What waits for its
 * confirmation is bounded too, with what is posted or to be posted again, by so many windows.
 */
#define HTE_WINDOWS 4

/* AWAKE, asleep with room for more slices, asleep with a full window. */
enum hte_rest { HTE_AWAKE, HTE_IDLE, HTE_FULL };

#define HTE_CONN_BUCKETS 256

struct hte_worker {
    struct hte_engine     *engine;
    unsigned               index, n_rails;
    pthread_t              thread;
    bool                   has_thread;
    int                    wake_fd;
    _Atomic int32_t        rest;        /* enum hte_rest */
    _Atomic bool           has_orders;  /* cancel, close, warm, stop: look at them */
    struct hte_worker_rail rail[HTE_RAILS_MAX];

    struct hte_slice      *slices;      /* HTE_WINDOWS * settings.window of them */
    struct hte_link_ring   free, ready; /* slices; ready ones wait for their turn to be posted again */
    int64_t                room;        /* slices that UCX may still be given; retries may make it negative */
    uint64_t               spare;       /* slices that may still be cut; > 0: `free` is not empty */
    unsigned               n_ready;
    struct hte_link_ring   pieces;      /* taken, not cut to the end */
    struct hte_link_ring   dirty;       /* connections with WRITEs that no flush covers yet */
    struct hte_link_ring   broken;      /* connections to be torn down, or being so */

    pthread_mutex_t        lock;        /* guards conns (changes, and reads by others) and warms */
    struct hte_link_ring   conns;
    struct hte_link_ring   buckets[HTE_CONN_BUCKETS]; /* the same, by segment; of the thread only */
    struct hte_link_ring   warms;

    uint64_t               now, next_tick, next_sweep, stop_at;
    unsigned               flushes_out;
    uint32_t               turn, random;
    _Atomic uint64_t       posts, slices_posted, slices_retried, flushes, ep_errors;
};

int hte_worker_open(struct hte_worker *worker, struct hte_engine *engine, unsigned index);
int hte_worker_start(struct hte_worker *worker);
/* Ends the thread: engine->is_stopping must be set. */
void hte_worker_join(struct hte_worker *worker);
void hte_worker_close(struct hte_worker *worker);
void hte_worker_wake(struct hte_worker *worker);
void hte_worker_order(struct hte_worker *worker); /* has_orders, and wake */

uint64_t hte_now(void);

/* Whether it could cut and post a slice now. */
static inline bool hte_worker_has_room(const struct hte_worker *worker)
{
    return worker->room > 0 && worker->spare > 0;
}

/* ---- slices: hte_post.c ---- */

/* Cut pieces and post their slices while there is room. Returns how many were cut. */
unsigned hte_post_pieces(struct hte_worker *worker);
unsigned hte_post_ready(struct hte_worker *worker);
/* UCX or the connection is through with a posted slice. */
void hte_slice_event(struct hte_worker *worker, struct hte_slice *slice, enum hte_slice_event event, int error);
/* FAIL, or EXPIRE when it took too long. */
void hte_slice_fail(struct hte_worker *worker, struct hte_slice *slice, int error);
/* Pieces whose requests were canceled: taken ones, and slices that wait for a retry. */
void hte_post_cancel(struct hte_worker *worker);

#endif
