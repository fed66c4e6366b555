/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_REFRESH_H_
#define HTE_REFRESH_H_

/*
 * The thread that fetches descriptors anew after trouble with a connection: the target may have unregistered memory, or
 * another process may have its name. Worker threads order it and go on; what comes shows in the segment's view.
 */

#include <pthread.h>
#include <stdbool.h>

#include "base/hte_list.h"
#include "hte_segment.h"
#include "meta/hte_meta.h"

struct hte_refresh {
    struct hte_segments *segments; /* NULL: not initialized */
    struct hte_meta     *meta;
    pthread_mutex_t      lock; /* guards the list and is_stopping */
    pthread_cond_t       has_work;
    struct hte_link_ring orders; /* segments, references */
    bool                 is_stopping, has_thread;
    pthread_t            thread;
};

int hte_refresh_init(struct hte_refresh *refresh, struct hte_segments *segments, struct hte_meta *meta);
/* After it orders are not taken. What is being fetched is waited for. */
void hte_refresh_stop(struct hte_refresh *refresh);
void hte_refresh_cleanup(struct hte_refresh *refresh);

/* From any thread; does not block. Nothing happens when one is under way, or has just been made. */
void hte_refresh_order(struct hte_refresh *refresh, struct hte_segment *segment);
/* Likewise, but only whether its process is there: a descriptor may take seconds, of one that stands still. */
void hte_refresh_look(struct hte_refresh *refresh, struct hte_segment *segment);

#endif
