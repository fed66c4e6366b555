/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SHARED_H_
#define UCT_HA_SHARED_H_

/*
 * Receive buffers that all lanes of a slot share: where the device has shared receive queues, and proves by packet
 * number (a count needs to see the end of a lane's own receives). What a connection may send is bounded by its window
 * as with a ring of its own; but windows grow to their full length whatever there is, so that nobody has to be granted
 * credits all the time. Who has no receive left lets his peers' cards wait.
 *
 *   wanted   what all connections may send together: their windows and reserves
 *   soft     so many are posted at most, however many are wanted: not all send at once. When few are left the device
 *            says so (ha_srq_watch()), and there will be twice as many, until there are enough for all
 *   most     the queue takes no more
 *
 * As long as wanted <= soft no message ever finds the queue empty. Beyond that it may, between two doublings, or when
 * the program computes while more come than there are; then its sender's card waits and sends it again
 * (RNR_RETRY_COUNT). Peers hear when few are left (HA_CAP_SCARCE), so that they do not take the wait for a loss.
 *
 * Progress, but for what is said to be under the lock.
 */

#include "lane/road.h"

/* A queue for the lanes of this slot. Without one (it cannot be had, or is not wanted) each has a ring of its own. */
void uct_ha_shared_open(struct uct_ha_lanes *lanes, int slot);
void uct_ha_shared_close(struct uct_ha_lanes *lanes, int slot);

/* The interface closes: no job makes more of them any more. Without the lock. */
void uct_ha_shared_cancel(struct uct_ha_lanes *lanes);

/* The card is gone and the last lane with it: the queue is destroyed by a job. */
void uct_ha_shared_leave(struct uct_ha_lanes *lanes, int slot);

/* A connection may send so many messages more, or (negative) does not send any more. Under the lock. */
void uct_ha_shared_want(struct uct_ha_shared *shared, int32_t more);

/* Buffers that it would lack if so many more were wanted. */
uint32_t uct_ha_shared_lacks(const struct uct_ha_shared *shared, uint32_t more);

/* The device has said that few are left, and the program has not posted many again since; or there may be none without
 * a word: a message may have to wait until the program looks. Has the device asked again. Under the lock. */
int uct_ha_shared_is_scarce_locked(struct uct_ha_shared *shared);

/* Buffers that it lacks, from this list and from those at hand, and post them. 0, or -EAGAIN: there are too few. Under
 * the lock. */
int uct_ha_shared_fill_locked(struct uct_ha_lanes *lanes, int slot, struct uct_ha_desc **list);

#define UCT_HA_SHARED_CHAIN 32 /* a doorbell for so many is not seen any more */

/* Post what waits in the chain. */
void uct_ha_shared_flush(struct uct_ha_shared *shared);

/* Marks a place whose message waits to be delivered (`recv.next`). */
extern struct ha_recv uct_ha_place_is_held;

/* The device says that few are left. */
void uct_ha_shared_low_locked(struct uct_ha_lanes *lanes, int slot);

#endif
