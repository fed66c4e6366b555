/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PORT_H_
#define UCT_HA_PORT_H_

/* The UD port of a rail that carries control packets. The control lock is held. */

#include "ctl/ctl.h"

/* Have it brought up again, empty: a job does it. */
void uct_ha_port_recycle_locked(struct uct_ha_ctl *ctl, int slot);

/* The card is gone: a job lets it go. */
void uct_ha_port_leave_locked(struct uct_ha_ctl *ctl, int slot);

/* Is it there, and can it be used now? */
int uct_ha_port_works_locked(const struct uct_ha_ctl *ctl, int slot);

#endif
