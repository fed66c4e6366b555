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

#include "hte_batch.h"
#include "hte_flow.h"
#include "hte_lane.h"
#include "hte_list.h"

/* An order from outside: connect to a segment. The caller watches the connections' is_warm. */
struct hte_warm {
    struct hte_link_ring link;
    struct hte_segment  *segment; /* reference */
    struct hte_view     *view;    /* reference */
};

/*
 * The window bounds what UCX has of a thread for one target, as in a plain loop of ucp_put_nbx(): a WRITE whose local memory UCX has let go of
 * makes room for the next. Else the window would have to be larger than all that transports keep on the way; TCP's
 * sockets alone take more than 128 slices, and run dry then, again and again. What waits for its
 * confirmation is bounded too, with what is posted or to be posted again, by so many windows. Targets share twice that: see
 * hte_flow.h.
 */
#define HTE_WINDOWS 4

/* AWAKE, asleep with room for more slices, asleep with a target that has no room for what waits. */
enum hte_rest { HTE_AWAKE, HTE_IDLE, HTE_FULL };

struct hte_worker {
    struct hte_engine     *engine;
    unsigned               index;
    pthread_t              thread;
    bool                   has_thread;
    int                    wake_fd;
    _Atomic int32_t        rest;        /* enum hte_rest */
    _Atomic bool           has_orders;  /* cancel, close, warm, stop: look at them */
    struct hte_lane        lane;

    struct hte_slice      *slices;      /* 2 * HTE_WINDOWS * settings.window of them */
    struct hte_link_ring   free, ready; /* slices; ready ones wait for their turn to be posted again */
    uint64_t               with_ucx;    /* slices that UCX has; all flows together */
    uint64_t               out;         /* slices cut and not over, likewise */
    unsigned               n_ready;
    struct hte_link_ring   active, stalled; /* flows with pieces to cut: with room, or not yet looked at; without */
    struct hte_flow        local;       /* of HTE_SEGMENT_LOCAL */
    bool                   is_sated;    /* the queue had nothing, when last looked at, that there is room for */
    _Atomic uint64_t       seen;        /* the queue's pushes then */

    pthread_mutex_t        lock;        /* guards warms */
    struct hte_link_ring   warms;

    uint64_t               next_tick, next_sweep, stop_at;
    uint32_t               turn, random;
    _Atomic uint64_t       slices_retried;
};

int hte_worker_open(struct hte_worker *worker, struct hte_engine *engine, unsigned index);
int hte_worker_start(struct hte_worker *worker);
/* Ends the thread: engine->is_stopping must be set. */
void hte_worker_join(struct hte_worker *worker);
void hte_worker_close(struct hte_worker *worker);
void hte_worker_wake(struct hte_worker *worker);
void hte_worker_order(struct hte_worker *worker); /* has_orders, and wake */

/* ---- slices: hte_post.c ---- */

/* Cut pieces and post their slices while there is room. Returns how many were cut. */
unsigned hte_post_pieces(struct hte_worker *worker);
unsigned hte_post_ready(struct hte_worker *worker);
/* What the lane tells. */
extern const struct hte_lane_hooks hte_post_hooks;
/* Whether one that is to be posted again can be. */
bool hte_slice_has_window(struct hte_worker *worker, const struct hte_slice *slice);
/* Pieces whose requests were canceled: taken ones, and slices that wait for a retry. */
void hte_post_cancel(struct hte_worker *worker);

#endif
