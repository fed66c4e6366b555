/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FEED_H_
#define HTE_FEED_H_

/* How pieces come from the queue into a thread's flows. */

#include "hte_flow.h"
#include "hte_queue.h"
#include "job/hte_batch.h"

/* The next piece to cut, of a flow that has room; from the queue when the thread has none. NULL: there is none now. */
struct hte_piece *hte_feed_next(struct hte_flows *flows, struct hte_queue *queue);
/* There is nothing in the queue that the thread has not seen, and found no room for. */
bool hte_feed_has_seen_all(const struct hte_flows *flows, const struct hte_queue *queue);

#endif
