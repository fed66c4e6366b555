/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FLOW_H_
#define HTE_FLOW_H_

/*
 * A flow: what one worker thread has of one target. Only the thread touches it; it lives in the target's segment.
 *
 *            take                 no room                         nothing to cut
 *   (idle) ────────▶ ACTIVE ─────────────────▶ STALLED     both ────────────────▶ (idle)
 *                      ▲         room             │
 *                      └──────────────────────────┘
 *
 * Each has its share of the thread's slices (core/hte_share.h): a target that takes nothing any more keeps what it has until
 * slice_timeout, and the others go on.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/hte_slice.h"
#include "hte_list.h"

struct hte_conn;
struct hte_keys;
struct hte_piece;
struct hte_segment;
struct hte_worker;

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
    bool                   has_looked; /* whether the target is there, before its first try */
    struct hte_conn       *conn;   /* while posted */
    struct hte_keys       *keys;   /* while posted */
    void                  *request; /* UCX's, while UCX has it */
    uint64_t               seq;    /* of the connection */
    uint64_t               posted_at, ready_at, failed_at;
    int32_t                error;  /* of the last failure */
};

struct hte_flow {
    struct hte_link_ring link;     /* worker's active or stalled, while it has pieces */
    struct hte_link_ring pieces;   /* taken, not cut to the end */
    bool                 is_stalled;
    uint64_t             with_ucx; /* slices that UCX has */
    uint64_t             out;      /* slices cut and not over */
    struct hte_slice     reserve;  /* its only slice, when others have the whole pool */
};

void hte_flow_init(struct hte_flow *flow);
/* One per thread; free(3); NULL: no memory. */
struct hte_flow *hte_flows_create(unsigned count);

/* The thread's flow of that target; NULL: HTE_SEGMENT_LOCAL. */
struct hte_flow *hte_flow_of(struct hte_worker *worker, struct hte_segment *segment);
/* In slices: how many UCX may still be given; how many may still be cut; the lesser of the two. */
uint64_t hte_flow_window(const struct hte_worker *worker, const struct hte_flow *flow);
uint64_t hte_flow_spare(const struct hte_worker *worker, const struct hte_flow *flow);
uint64_t hte_flow_room(const struct hte_worker *worker, const struct hte_flow *flow);

struct hte_slice *hte_flow_take_slice(struct hte_worker *worker, struct hte_flow *flow);
void hte_flow_put_slice(struct hte_worker *worker, struct hte_flow *flow, struct hte_slice *slice);

/* The next piece to cut, of a flow that has room; from the queue when the thread has none. NULL: there is none now. */
struct hte_piece *hte_flows_next(struct hte_worker *worker);
/* Stalled flows that have room again become active. */
void hte_flows_resume(struct hte_worker *worker);
/* Nothing more is cut of it: out of its flow, or whatever list it is in. */
void hte_flow_remove(struct hte_worker *worker, struct hte_piece *piece);

#endif
