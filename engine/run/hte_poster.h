/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_POSTER_H_
#define HTE_POSTER_H_

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
    struct hte_task     *done; /* of a pack, COMPLETED, and not told yet: n_done, one after the other */
    uint32_t             n_done;
    struct hte_link_ring ready;
    unsigned             n_ready;
    _Atomic uint64_t     slices_retried;
};

/* A slice that is with nobody waits for its turn. */
static inline void hte_poster_keep_ready(struct hte_poster *poster, struct hte_slice *slice)
{
    hte_ring_append(&poster->ready, &slice->op.link);
    ++poster->n_ready;
}

#endif
