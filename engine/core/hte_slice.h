/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SLICE_H_
#define HTE_SLICE_H_

/*
 * Life of one slice. Pure: it decides, the worker thread does.
 *
 *                            READ: sent = COMPLETE
 *            ┌──────────┐  post  ┌────────┐  sent  ┌────────┐  flushed
 *   take ──▶ │  READY   │ ─────▶ │ POSTED │ ─────▶ │  SENT  │ ─────────▶ COMPLETE
 *            └──────────┘        └────────┘        └────────┘
 *               ▲   │ drop           │ flushed         │
 *               │   ▼                ▼                 │
 *               │ GIVE_UP        ┌────────┐  sent      │
 *               │                │  SEEN  │ ─────────▶ COMPLETE
 *               │                └────────┘            │
 *               └────────────── fail ◀─────────────────┘   (GIVE_UP when the tries are used up)
 *
 * What this process moved by itself is moved: POSTED ─▶ COMPLETE, in one step.
 *
 * READY   waits to be posted, for the first time or again; nothing of it is with UCX
 * POSTED  UCX has it and uses the local memory
 * SENT    a WRITE whose local memory is free again, not yet known to be in the target's memory
 * SEEN    a WRITE that a flush covers, whose own completion is still to come
 */

#include <stdbool.h>
#include <stdint.h>

enum hte_slice_step { HTE_SLICE_READY, HTE_SLICE_POSTED, HTE_SLICE_SENT, HTE_SLICE_SEEN, HTE_SLICE_OVER };

enum hte_slice_event {
    HTE_SLICE_POST,    /* handed to UCX */
    HTE_SLICE_LOCAL,   /* UCX's completion: READ is done, WRITE has left */
    HTE_SLICE_FLUSHED, /* everything posted up to it is in the target's memory */
    HTE_SLICE_MOVED,   /* this process has moved it to the target's memory, or from there */
    HTE_SLICE_FAIL,    /* its connection broke, or UCX refused it; UCX has let go of it */
    HTE_SLICE_EXPIRE,  /* as FAIL, because it took too long: no retry */
    HTE_SLICE_DROP     /* canceled before it was posted (again) */
};

enum hte_slice_action {
    HTE_SLICE_NOTHING,
    HTE_SLICE_COMPLETE,
    HTE_SLICE_RETRY,
    HTE_SLICE_GIVE_UP,
    HTE_SLICE_ILLEGAL /* this event cannot happen in this step: the caller has a defect; nothing changed */
};

struct hte_slice_state {
    uint8_t step; /* enum hte_slice_step */
    uint8_t is_write;
    uint8_t fails;     /* so far */
    uint8_t max_fails; /* more than that: give up */
    int16_t bad_rail;  /* the one it failed on last, -1: none */
};

void hte_slice_init(struct hte_slice_state *slice, bool is_write, unsigned max_fails);
/* UCX uses the local memory, and has a request for it. */
static inline bool hte_slice_is_with_ucx(const struct hte_slice_state *slice)
{
    return slice->step == HTE_SLICE_POSTED || slice->step == HTE_SLICE_SEEN;
}

/* `rail`: with FAIL, the one it was posted on. */
enum hte_slice_action hte_slice_on(struct hte_slice_state *slice, enum hte_slice_event event, int rail);

#endif
