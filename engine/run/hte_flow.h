/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FLOW_H_
#define HTE_FLOW_H_

/*
 * A flow: what one worker thread has of one target. Only the thread touches it; it is part of struct hte_target.
 *
 *            take                 no room                         nothing to cut
 *   (idle) ────────▶ ACTIVE ─────────────────▶ STALLED     both ────────────────▶ (idle)
 *                      ▲         room             │
 *                      └──────────────────────────┘
 *
 * Each has its share of the thread's slices (core/hte_share.h): a target that takes nothing any more keeps what it
 * has until slice_timeout, and the others go on.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hte_share.h"
#include "hte_target.h"
#include "local/hte_settings.h"

struct hte_piece;

/*
 * The window bounds what UCX has of a thread for one target, as in a plain loop of ucp_put_nbx(): a WRITE whose local
 * memory UCX has let go of makes room for the next. Else the window would have to be larger than all that transports
 * keep on the way; TCP's sockets alone take more than 128 slices, and run dry then, again and again. What waits for
 * its confirmation is bounded too, with what is posted or to be posted again, by so many windows. Targets share twice
 * that.
 */
#define HTE_WINDOWS 4

/* All flows of a thread, and the slices that they share. */
struct hte_flows {
    uint64_t             window, slice_size; /* of the settings */
    unsigned             index;              /* of the thread */
    struct hte_slice    *slices;             /* 2 * HTE_WINDOWS * window of them */
    struct hte_link_ring free;
    uint64_t             with_ucx;        /* slices that UCX has; all flows together */
    uint64_t             out;             /* slices cut and not over, likewise */
    struct hte_link_ring active, stalled; /* flows with pieces to cut: with room, or not yet looked at; without */
    struct hte_flow      local;           /* of HTE_SEGMENT_LOCAL */
    bool                 is_sated;        /* the queue had nothing, when last looked at, that there is room for */
    _Atomic uint64_t     seen;            /* the queue's pushes then */
};

int  hte_flows_open(struct hte_flows *flows, const struct hte_settings *settings, unsigned index);
void hte_flows_close(struct hte_flows *flows);

/* The flow of that target; NULL: HTE_SEGMENT_LOCAL. */
static inline struct hte_flow *hte_flow_of(struct hte_flows *flows, const struct hte_segment *segment)
{
    return segment == NULL ? &flows->local : &hte_target_of(segment)->flows[flows->index];
}

/* In slices: how many UCX may still be given; how many may still be cut; the lesser of the two. */
static inline uint64_t hte_flow_window(const struct hte_flows *flows, const struct hte_flow *flow)
{
    return hte_share(flows->window, flows->with_ucx, flow->with_ucx);
}

static inline uint64_t hte_flow_spare(const struct hte_flows *flows, const struct hte_flow *flow)
{
    return hte_share(HTE_WINDOWS * flows->window, flows->out, flow->out);
}

static inline uint64_t hte_flow_room(const struct hte_flows *flows, const struct hte_flow *flow)
{
    uint64_t window = hte_flow_window(flows, flow), spare = hte_flow_spare(flows, flow);

    return window < spare ? window : spare;
}

/* A slice to be cut, for hte_flow_count() when it is known how many units it has. */
struct hte_slice *hte_flow_take_slice(struct hte_flows *flows, struct hte_flow *flow);
void              hte_flow_put_slice(struct hte_flows *flows, struct hte_slice *slice);

static inline void hte_flow_count(struct hte_flows *flows, const struct hte_slice *slice)
{
    flows->out += slice->op.units;
    slice->flow->out += slice->op.units;
}

static inline void hte_flow_uncount(struct hte_flows *flows, const struct hte_slice *slice)
{
    flows->out -= slice->op.units;
    slice->flow->out -= slice->op.units;
}

/* UCX gets a slice, and has let go of it. */
static inline void hte_flow_give(struct hte_flows *flows, const struct hte_slice *slice)
{
    flows->with_ucx += slice->op.units;
    slice->flow->with_ucx += slice->op.units;
}

static inline void hte_flow_let_go(struct hte_flows *flows, const struct hte_slice *slice)
{
    flows->with_ucx -= slice->op.units;
    slice->flow->with_ucx -= slice->op.units;
    flows->is_sated = false;
}

/* A piece to cut; and nothing more is cut of it: out of its flow, or whatever list it is in. */
void hte_flows_add(struct hte_flows *flows, struct hte_piece *piece);
void hte_flows_remove(struct hte_flows *flows, struct hte_piece *piece);
/* Stalled flows that have room again become active. */
void hte_flows_resume(struct hte_flows *flows);
/* The first active flow that has room: those before it stall. NULL: none has. */
struct hte_flow *hte_flows_first(struct hte_flows *flows);

#endif
