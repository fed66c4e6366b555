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
 * so nothing is proved.
 */

#include "pair/conn.h"

/* Also for one that is being fenced already: once more. The control lock is held. */
void uct_ha_fence_begin_locked(struct uct_ha_lane *lane);

/* The interface closes: none of its lanes is being fenced any more. Without the lock. */
void uct_ha_fence_cancel(struct uct_ha_iface *iface);

#endif
