/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RING_H_
#define UCT_HA_RING_H_

/*
 * Receive buffers of a connection. Where lanes share their receives (lane/shared.h), the ring of a
 * slot has none, and its count is what the connection may use of them. Else one ring per slot, from the interface's
 * buffers, kept over the generations of its lane. Every lane that lives has all
 * of its ring posted, the standby too: a failover posts and registers nothing.
 *
 * What was consumed is posted again in chains, by one doorbell: no longer than a quarter
 * of the window, and the peer hears only of messages whose receives are posted again
 * (road->rx_round less rx_left are not). So a peer that has used up its credits has been
 * told of half a window at least, or is owed that and gets a message of its own.
 *
 * The window is how many messages the peer may be ahead of us. A connection
 * begins with a small one (RX_QUEUE_INIT); it doubles each time the peer was
 * seen to fill it over and over, up to RX_QUEUE_LEN, as long as the buffers that the interface has
 * taken for that stay below RX_MEM; where that takes none, because those that lanes share are enough, at once. A ring
 * of its own grows beyond 128 only by an eighth of what is left at most: the first few would leave nothing to the
 * others. The peer learns of a larger window as if messages had been consumed. It never shrinks while the connection
 * lives.
 *
 * Messages that come before their turn are remembered in the lane (lane->held), which has room for a window and the
 * reserve, whatever it shares.
 *
 * Progress only.
 */

#include "lane/road.h"

/* Buffers that the present window lacks in this slot. */
uint32_t uct_ha_ring_lacks(const struct uct_ha_road *road, int slot);

/* Buffers for the present window from this list, and from those at hand: nothing is registered. 0,
 * -EAGAIN: too few, or -ENOMEM. */
int uct_ha_ring_fill(struct uct_ha_road *road, int slot, struct uct_ha_desc **list);

/* Post what a lane does not have yet of its ring. 0 or what the device answered. */
int uct_ha_ring_post(struct uct_ha_lane *lane);

static inline struct uct_ha_place *uct_ha_ring_place(const struct uct_ha_lane *lane, uint32_t index)
{
    return &lane->place0[index];
}

/* One buffer has been consumed: it waits in the lane's chain. */
static inline void uct_ha_ring_free(struct uct_ha_place *place, struct uct_ha_chain *chain)
{
    uct_ha_chain_add(chain, &place->recv);
}

/* Room for so many messages that come before their turn; those that are there stay. 0 or -ENOMEM. */
int uct_ha_ring_hold_more(struct uct_ha_lane *lane, uint32_t count);

/* Messages that will not be delivered any more: their receives, if they are shared, are of use to other lanes. */
void uct_ha_ring_drop_held(struct uct_ha_lane *lane);

/* Post the chains. A lane that is stopped needs none. */
void uct_ha_ring_repost(struct uct_ha_road *road);

/* Half of the window is owed to the peer, once more: larger it, perhaps. Nothing is in a chain.
 * Returns by how many messages it grew. */
unsigned uct_ha_ring_grow(struct uct_ha_road *road);

/* The connection ends: its buffers go with the lanes that may still write there,
 * or back at once. */
void uct_ha_ring_leave(struct uct_ha_road *road, int slot, struct uct_ha_lane *lane);

/* The lane's queue pair is destroyed: what uct_ha_ring_leave() left with it goes
 * back. Any thread. */
void uct_ha_ring_return(struct uct_ha_lane *lane);

#endif
