/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FENCE_H_
#define UCT_HA_FENCE_H_

/*
 * Stopping a queue pair. The device command runs on a job thread: a card that hangs keeps
 * its caller for as long as it likes (mlx5 waits a minute for its firmware), and that must
 * not be the thread that answers heartbeats on the other rail, nor one that holds the
 * control lock.
 *
 *             begin                       the device has stopped it
 *   running ────────▶ fenced, fencing ─┬──────────────────────────────▶ fenced, fence_fails = 0
 *                            ▲         │ it refuses
 *                            └─────────┴─── again, by the timer, UCT_HA_FENCE_TRIES times
 *
 * From begin on nothing is posted; until it is stopped it may execute what the peer sends,
 * so nothing is proved. lanes->stopped() is called then, and after each refusal.
 */

#include "lane/road.h"

#define UCT_HA_FENCE_TRIES 5 /* refusals to stop a queue pair before that is given up */

/* The device has not stopped the queue pair yet, or has refused to, and did not stop it by
 * itself: it may still execute what the peer sends, and send what is posted. */
static inline int uct_ha_lane_may_run(const struct uct_ha_lane *lane)
{
    return (lane->fencing || lane->fence_fails > 0) && lane->connected &&
           !__atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE);
}

/* Also for one that is being fenced already: once more. The control lock is held. */
void uct_ha_fence_begin_locked(struct uct_ha_lane *lane);

/* The interface closes: none of its lanes is being fenced any more. Without the lock. */
void uct_ha_fence_cancel(struct uct_ha_lanes *lanes);

#endif
