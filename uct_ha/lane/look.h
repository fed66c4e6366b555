/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LOOK_H_
#define UCT_HA_LOOK_H_

/*
 * Which completion queues progress looks at, each time. Of a slot whose lanes are all standbys
 * nothing is awaited: that one of them dies is an event of its rail, and what a peer sends there
 * before its epoch is known here would be held. So its queue is looked at now and then only,
 * as long as no lane of the interface is being stopped: then flushes, markers and counts are
 * awaited, and all queues are looked at.
 *
 * The control lock is held.
 */

#include "lane/lanes.h"

#define UCT_HA_LOOK_ALL (-1)

/* A connection begins or ends (`more` is 1 or -1) to send or deliver on lanes of this slot. */
void uct_ha_look_used_locked(struct uct_ha_lanes *lanes, int slot, int more);

/* A lane is stopped (1); it is parked (-1). */
void uct_ha_look_stopping_locked(struct uct_ha_lanes *lanes, int more);

/* The only slot to look at in each call of progress, or UCT_HA_LOOK_ALL. Without the lock. */
static inline int uct_ha_look(const struct uct_ha_lanes *lanes)
{
    return __atomic_load_n(&lanes->look, __ATOMIC_RELAXED);
}

#endif
