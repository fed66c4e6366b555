/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LEAVE_H_
#define UCT_HA_LEAVE_H_

#include "uct/iface.h"

/* The interface is to close: tell every peer that we leave, wait (bounded) until none needs us
 * any more. No lock is held. */
void uct_ha_leave(struct uct_ha_iface *iface);

#endif
