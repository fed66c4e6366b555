/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_TARGET_H_
#define HTE_TARGET_H_

/*
 * What is kept with each target of requests: the attachment of its segment.
 *
 *   lines   pieces that wait in the queue (hte_queue.h), which guards them
 *   flows   what each worker thread has of it (hte_flow.h), each of its thread only
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "remote/hte_segment.h"
#include "wire/hte_op.h"

struct hte_piece;

#define HTE_PRIORITIES 3

/* Pieces of one priority for one target. In the order of submission; lines take turns, so that a target that takes
 * nothing any more stops nobody but those behind it in its own. */
struct hte_line {
    struct hte_link_ring link; /* queue's waiting, while it has pieces */
    struct hte_link_ring pieces;
    struct hte_segment  *segment; /* that it is part of; NULL: HTE_SEGMENT_LOCAL */
};

/* A piece is cut into slices; each is one operation for UCX, at a time. Of a pack it has whole requests, which end with
 * it: see hte_packs.h. */
struct hte_slice {
    struct hte_op     op;
    struct hte_piece *piece;
    struct hte_task  *task;                 /* of the piece; of a pack: the first that is not over */
    uint32_t          count;                /* of a pack: so many, from `task` on, are not over; 0: it is of none */
    uint32_t          joined;               /* so many of these are in its operation: all, or each alone */
    uint8_t           joined_fails;         /* of a pack: so often they had failed when they went alone */
    struct hte_flow  *flow;                 /* of the piece's target */
    uint32_t          preferred, available; /* rails near the local memory */
    bool              has_looked;           /* whether the target is there, before its first try */
    uint64_t          ready_at, failed_at, waits_since;
};

struct hte_flow {
    struct hte_link_ring link;   /* worker's active or stalled, while it has pieces */
    struct hte_link_ring pieces; /* taken, not cut to the end */
    bool                 is_stalled;
    uint64_t             with_ucx; /* slices that UCX has */
    uint64_t             out;      /* slices cut and not over */
    struct hte_slice     reserve;  /* its only slice, when others have the whole pool */
};

struct hte_target {
    struct hte_line lines[HTE_PRIORITIES];
    struct hte_flow flows[]; /* per worker thread */
};

/* For hte_segments_init(). */
void *hte_target_create(struct hte_segment *segment, unsigned threads);

void hte_lines_init(struct hte_line *lines, struct hte_segment *segment); /* HTE_PRIORITIES of them */
void hte_flow_init(struct hte_flow *flow);

static inline struct hte_target *hte_target_of(const struct hte_segment *segment)
{
    return segment->attachment;
}

#endif
