/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LANE_H_
#define UCT_HA_LANE_H_

/*
 * The life of a lane: built with its receives posted, parked in ERR, destroyed. The control
 * lock is held, but for uct_ha_lane_finish().
 *
 *   begin ──▶ a job: completion queue, buffers, queue pair ──▶ lanes->built ──▶ complete
 */

#include "lane/road.h"

/* Have the lane of a slot built: road->next. 0 or a negative errno value. Progress. */
int uct_ha_lane_begin(struct uct_ha_road *road, int slot, uint32_t gen);

/* It is built: post its receives, it is road->lane from here on. 0, -EINPROGRESS: not yet, or a
 * negative errno value: it is gone. Progress. */
int uct_ha_lane_complete(struct uct_ha_road *road, int slot);

/* The interface closes: no lane is being built any more. Without the lock. */
void uct_ha_lane_cancel(struct uct_ha_lanes *lanes);

/* The queue pair rests in ERR before it is destroyed, so that its number does
 * not come back while old packets may be on the wire. */
void uct_ha_lane_park(struct uct_ha_road *road, int slot, uint64_t until);

/* Destroy the parked lanes whose time has come, on the job thread. */
void uct_ha_lane_reap(struct uct_ha_lanes *lanes, uint64_t now);

/* Queues of cards that are gone are let go once no lane uses them. Progress. */
void uct_ha_lane_leave_queues(struct uct_ha_lanes *lanes);

/* ... and there is one that is not yet. */
int uct_ha_lane_owes_leave(const struct uct_ha_lanes *lanes);

/* The connection ends: its lanes are parked and take their receives with them. */
void uct_ha_lane_leave(struct uct_ha_road *road);

/* The interface closes, and no job works on a lane any more that may be stopped halfway. */
void uct_ha_lane_rest(struct uct_ha_lanes *lanes);

/* The interface closes: what the job thread has not destroyed yet is destroyed now, which
 * may block; without the lock. */
void uct_ha_lane_finish(struct uct_ha_lanes *lanes);

#endif
