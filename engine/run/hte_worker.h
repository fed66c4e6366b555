/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_WORKER_H_
#define HTE_WORKER_H_

/*
 * A worker thread: who has its helm touches its lane, flows, slices and the pieces it took. That is the thread; while
 * it sleeps, a submitter may stand in (hte_stand_in.h).
 *
 *   take pieces ─▶ cut, post ─▶ flush ─▶ progress ─▶ mend broken connections ─▶ post retries ─▶ ... ─▶ sleep
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hte_list.h"
#include "hte_post.h"
#include "hte_run.h"
#include "remote/hte_segment.h"

/* AWAKE, asleep with room for more slices, asleep with a target that has no room for what waits. */
enum hte_rest { HTE_AWAKE, HTE_IDLE, HTE_FULL };

struct hte_worker {
    struct hte_workers  *all; /* NULL: not opened */
    pthread_t            thread;
    bool                 has_thread;
    int                  wake_fd;
    pthread_mutex_t      helm;
    _Atomic int32_t      rest;       /* enum hte_rest */
    unsigned             busy_arms;  /* in a row */
    _Atomic bool         has_orders; /* cancel, close, warm, stop: look at them */
    struct hte_poster    poster;
    pthread_mutex_t      lock;  /* guards warms */
    struct hte_link_ring warms; /* orders to connect */
    uint64_t             next_tick, next_sweep, stop_at;
};

struct hte_workers {
    struct hte_run    *run;
    struct hte_worker *list; /* settings.threads of them */
    unsigned           count;
};

/* What UCX has of a thread, for those who look at it. */
static inline struct hte_lane *hte_workers_lane(const struct hte_workers *workers, unsigned index)
{
    return &workers->list[index].poster.lane;
}

/* No slice exists. */
static inline bool hte_worker_is_bare(const struct hte_worker *worker)
{
    return worker->poster.flows.out == 0;
}

void hte_worker_wake(struct hte_worker *worker);

int hte_workers_open(struct hte_workers *workers, struct hte_run *run);
int hte_workers_start(struct hte_workers *workers);
/* From now on the threads cancel everything, and end; what is with UCX then is given so long. */
void hte_workers_stop(struct hte_workers *workers, uint64_t timeout_ms);
void hte_workers_join(struct hte_workers *workers);
/* What is left of all requests ends. */
void hte_workers_close(struct hte_workers *workers);

/* Wakes threads that sleep, for `count` new pieces. is_new: also those that found no room for what the queue had,
 * unless they have seen it as it is now. */
void hte_workers_wake(struct hte_workers *workers, uint64_t count, bool is_new);
/* Has all look for what was canceled or closed. */
void hte_workers_order(struct hte_workers *workers);
/* Has all connect to the segment; and how many connections of how many there are, with the error of one that broke
 * meanwhile. */
int      hte_workers_warm(struct hte_workers *workers, struct hte_segment *segment);
unsigned hte_workers_count_warm(struct hte_workers *workers, const struct hte_segment *segment, int *error);

#endif
