/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_QUEUE_H_
#define HTE_QUEUE_H_

/* The queue between the callers and the worker threads: pieces that no thread has taken yet. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hte_flow.h"

struct hte_queue {
    pthread_mutex_t      lock;
    struct hte_link_ring waiting[HTE_PRIORITIES]; /* lines; they and their pieces are guarded by lock */
    struct hte_line      local[HTE_PRIORITIES];
    _Atomic uint64_t     count;  /* pieces */
    _Atomic uint64_t     pushes; /* changes when pieces come */
};

void hte_queue_init(struct hte_queue *queue);
void hte_queue_cleanup(struct hte_queue *queue);
/* Moves all pieces of `pieces`, which are for one target, to the end of its line. Whether that was empty. */
bool hte_queue_push(struct hte_queue *queue, unsigned priority, struct hte_segment *segment,
                    struct hte_link_ring *pieces, uint64_t count);
/* Takes pieces of max operations, about, that the thread has room for, of the highest priority that has some; appends
 * them to `taken`, and notes the pushes in flows->seen. More than a thread can post soon would wait there while other
 * threads idle. */
void hte_queue_take(struct hte_queue *queue, struct hte_flows *flows, unsigned max, struct hte_link_ring *taken);
/* Takes those that were canceled, however many. */
void hte_queue_take_canceled(struct hte_queue *queue, struct hte_link_ring *taken);

#endif
