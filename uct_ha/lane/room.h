/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ROOM_H_
#define UCT_HA_ROOM_H_

/*
 * Room in an interface's completion queues, one per rail for all its lanes. A
 * queue that overruns is lost, so every completion that may come has a place:
 *
 *   reserved   receives that are posted, and the marker of each lane: they may
 *              all come at once, when a rail is lost
 *   sends      posted and not polled: counted one by one. As long as the device
 *              allows, the queue holds the full log of every lane; where it does
 *              not (Soft-RoCE ends at 32767), sends share what is left and wait
 *              in their logs for it
 *
 * A lane that is gone keeps its places until its queue pair has been destroyed
 * and the queue was seen empty after that: not every device takes completions of
 * a destroyed queue pair back.
 *
 * Owned by progress, but for uct_ha_room_later().
 */

#include "uct/iface.h"

/* Places for a new lane of a slot with all of its ring, or for more receives: the
 * latter at most in half of what the device allows. 0, -ENOSPC, or -EAGAIN: when lanes that
 * are gone will have been destroyed. */
int  uct_ha_room_add_lane(struct uct_ha_conn *conn, int slot);
int  uct_ha_room_add_receives(struct uct_ha_iface *iface, int slot, unsigned receives);

/* A lane that never came to life gives back what uct_ha_room_add_lane() took. */
void uct_ha_room_undo_lane(struct uct_ha_conn *conn, int slot);

/* The lane is no longer looked up: what it has under way keeps its places. */
void uct_ha_room_park(struct uct_ha_lane *lane);

/* Its queue pair is destroyed. Any thread. */
void uct_ha_room_later(struct uct_ha_lane *lane);

/* Places of destroyed lanes are free once the queue is empty; progress, no lock
 * held: it may deliver messages. */
void uct_ha_room_reclaim(struct uct_ha_iface *iface);

/* For an operation and its mark. */
static inline int uct_ha_room_for_send(const struct uct_ha_iface *iface, int slot)
{
    return iface->cq_sends[slot] + 1 < iface->cq_sends_max[slot];
}

static inline void uct_ha_room_sent(struct uct_ha_lane *lane)
{
    lane->iface->cq_sends[lane->slot]++;
    lane->sends++;
}

static inline void uct_ha_room_polled(struct uct_ha_lane *lane, unsigned sends)
{
    lane->iface->cq_sends[lane->slot] -= sends;
    lane->sends -= sends;
}

#endif
