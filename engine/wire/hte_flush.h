/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_FLUSH_H_
#define HTE_FLUSH_H_

/*
 * Flushes: what confirms WRITEs. Not one per slice: one is posted when the thread has nothing more to post, or
 * window/4 WRITEs are uncovered; several may be under way. Each remembers the sequence number of the last operation
 * posted before it.
 */

#include "hte_conn.h"

void hte_conns_flush(struct hte_lane *lane);
/* Opens the connections to a segment, and has something go through each. */
void hte_conns_warm(struct hte_lane *lane, struct hte_segment *segment, struct hte_view *view);

#endif
