/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_CONNS_H_
#define HTE_CONNS_H_

/* All connections of a lane: what the thread's loop does with them from time to time, and the end. */

#include "hte_conn.h"

void hte_conns_mend(struct hte_lane *lane);
void hte_conns_expire(struct hte_lane *lane, uint64_t timeout);
void hte_conns_cancel(struct hte_lane *lane); /* what is posted of canceled requests */
void hte_conns_doubt(struct hte_lane *lane);  /* look whether the peer still lives when it takes long */
void hte_conns_sweep(struct hte_lane *lane);  /* connections of closed segments, or gone processes */
void hte_conns_break_all(struct hte_lane *lane, int error);
bool hte_conns_are_idle(const struct hte_lane *lane); /* UCX has no request of ours */

void hte_conns_close(struct hte_lane *lane);   /* politely; nothing may be posted */
void hte_conns_release(struct hte_lane *lane); /* UCX's worker is about to be destroyed: keys, requests to close */
void hte_conns_abandon(struct hte_lane *lane); /* UCX's worker is gone, and its requests with it */
void hte_conns_destroy(struct hte_lane *lane);

/* From any thread: how many of the connections to the segment work; a broken one's error. */
unsigned hte_conns_count_warm(struct hte_lane *lane, const struct hte_segment *segment, int *error);

#endif
