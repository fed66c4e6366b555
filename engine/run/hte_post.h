/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_POST_H_
#define HTE_POST_H_

/*
 * A poster: what one thread posts with, and with what comes back. Slices that failed, or whose connection is not
 * usable now, are READY and wait for their turn.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hte_flow.h"
#include "hte_route.h"
#include "hte_run.h"
#include "job/hte_batch.h"
#include "wire/hte_lane.h"

struct hte_poster {
    struct hte_run      *run;
    struct hte_lane      lane;
    struct hte_flows     flows;
    struct hte_router    router;
    struct hte_link_ring ready;
    unsigned             n_ready;
    _Atomic uint64_t     slices_retried;
};

int hte_poster_open(struct hte_poster *poster, struct hte_run *run, unsigned index);

/* A slice that has just been cut: it is posted, or becomes READY, or ends. */
void hte_post_slice(struct hte_poster *poster, struct hte_slice *slice);
/* READY ones whose time has come. Returns how many. */
unsigned hte_post_ready(struct hte_poster *poster);
/* When the next of them can be posted; UINT64_MAX: when something else makes room. */
uint64_t hte_post_due(struct hte_poster *poster);

/* Canceled, or stopped: nothing more of it is posted. Its task, or one of the pack's that is not over. */
static inline bool hte_post_is_unwanted(const struct hte_poster *poster, const struct hte_piece *piece,
                                        const struct hte_task *task)
{
    return piece->state.step == HTE_PIECE_STOPPED || atomic_load_explicit(&task->is_canceled, memory_order_relaxed) ||
           atomic_load_explicit(&poster->run->is_stopping, memory_order_relaxed);
}

/* A slice that is with nobody waits for its turn. */
void hte_post_keep_ready(struct hte_poster *poster, struct hte_slice *slice);
/* The status of a request that ends with this error. */
int hte_post_code_of(int error);

/* The piece is FINAL. */
void hte_post_piece_over(struct hte_poster *poster, struct hte_piece *piece);

#endif
