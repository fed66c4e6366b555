/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FALL_H_
#define UCT_HA_FALL_H_

/*
 * An own rail has failed: its lanes are lost, a few connections at a time.
 *
 *     rail down --> first 8 --> as many more as there is room for, each ms --> everybody has been told
 *                                  room: twice as much each time, up to 64 that are moving at once;
 *                                  for twice as many when all of them wait for peers that do not answer
 *
 * So the first of thousands works again as soon as if it were the only one, nobody holds the lock for long, and what
 * is asked of the peers is answered before it is asked again. A connection that is not told yet loses nothing: its lane
 * is dead already, and whoever notices that otherwise does not wait for this.
 *
 * All under the control lock.
 */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* The lanes of the slot are lost, for this reason; with HA_CAUSE_HEARTBEAT only suspected, and left by those whose work
 * stands still, as long as nobody answers by it. While one is under way a suspicion begins none. */
void uct_ha_fall_begin_locked(struct uct_ha_ctl *ctl, int slot, enum ha_cause cause);

/* A rail of this peer is silent while the other one answers: who works there leaves it, now. */
void uct_ha_fall_peer_locked(struct uct_ha_peer *peer, int slot);

/* Nothing leads to this peer by the rail, and no data comes by it: who works on the other one has no standby. */
void uct_ha_fall_standbys_locked(struct uct_ha_peer *peer, int slot);

/* The timer. */
void uct_ha_fall_run_locked(struct uct_ha_ctl *ctl, uint64_t now);

/* When it wants the timer; UINT64_MAX: not at all. */
uint64_t uct_ha_fall_due(const struct uct_ha_ctl *ctl);

#endif
