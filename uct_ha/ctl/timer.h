/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TIMER_H_
#define UCT_HA_TIMER_H_

#include "ctl/ctl.h"

struct uct_ha_conn;

/* When the connection wants the timer, UINT64_MAX: not at all. The control lock is held. */
uint64_t uct_ha_timer_due(const struct uct_ha_conn *conn);

/* Set the timer to what is due next; the control lock is held. */
void uct_ha_timer_set_locked(struct uct_ha_ctl *ctl);

#endif
