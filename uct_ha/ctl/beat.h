/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_BEAT_H_
#define UCT_HA_BEAT_H_

/* Heartbeats, per peer and rail: which rail is silent while the other one answers, which is
 * slow, and which peer does not answer at all. The control lock is held. */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* The interface closes: its share of the budget is free. */
void uct_ha_beat_close(struct uct_ha_ctl *ctl);

/* A round: peers with work under way and no sign of life, those in doubt, and whose turn it is, as far as the
 * budget goes. The next one is to be so long after it. */
uint64_t uct_ha_beat_round_locked(struct uct_ha_ctl *ctl, uint64_t now);

/* A probe was answered by this rail. Other words prove only one direction. */
void uct_ha_beat_answered_locked(struct uct_ha_peer *peer, int slot, uint64_t now);

/* The peer does not answer any more: what still waits for it, waits in vain. */
void uct_ha_beat_lose_peer_locked(struct uct_ha_peer *peer);

/* Without heartbeats: ask whether it is there. 1 when it has not answered for DEAD_PEER. */
int uct_ha_beat_ask_locked(struct uct_ha_peer *peer, uint64_t now);

#endif
