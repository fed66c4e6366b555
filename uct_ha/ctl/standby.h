/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_STANDBY_H_
#define UCT_HA_STANDBY_H_

/* Endpoints that have been without a standby for long are said, with the reason: the next failure of their
 * rail would stop them. So is its return. */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* Look at all of them, at most once a second; the control lock is held. */
void uct_ha_standby_round_locked(struct uct_ha_ctl *ctl, uint64_t now);

/* A user connects to this peer: that there is no standby is said (HA-309), and refused where one is required. Returns
 * whether it is, after an error line. Where its second rail is not known yet, it is not, and the question stays open.
 */
int uct_ha_standby_refuses_locked(struct uct_ha_peer *peer);

/* A packet has said where its rails are: the question is asked again, and the endpoints end if it is refused now. */
void uct_ha_standby_learn_locked(struct uct_ha_peer *peer);

#endif
