/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_STANDBY_H_
#define UCT_HA_STANDBY_H_

/* Endpoints that have been without a standby for long are said, with the reason: the next failure of their
 * rail would stop them. So is its return. */

#include "ctl/ctl.h"

/* Look at all of them, at most once a second; the control lock is held. */
void uct_ha_standby_round_locked(struct uct_ha_ctl *ctl, uint64_t now);

#endif
