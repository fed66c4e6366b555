/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TIMER_H_
#define UCT_HA_TIMER_H_

#include "ctl/ctl.h"

/* Set the timer to what is due next; the control lock is held. */
void uct_ha_timer_set_locked(struct uct_ha_ctl *ctl);

#endif
