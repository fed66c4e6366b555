/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_BAD_H_
#define UCT_HA_BAD_H_

/*
 * A rail that is bad, though not dead: it answers, many times slower than it used to, or not always. Work leaves it for
 * the other one, and does not go back while it is bad. The control lock is held.
 */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* In each round of heartbeats, after it was found out what has moved. */
void uct_ha_bad_sample_locked(struct uct_ha_peer *peer);

/* Leave the rail that is worse than the other one. */
void uct_ha_bad_judge_locked(struct uct_ha_peer *peer);

#endif
