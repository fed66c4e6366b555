/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ACCEPT_H_
#define UCT_HA_ACCEPT_H_

/* Connections that peers ask for. Their packets come in on the async thread, the connections
 * are made in progress; the control lock is held. */

#include "uct/iface.h"

/* All that wait. */
void uct_ha_accept_all_locked(struct uct_ha_iface *iface);

/* One of them. */
void uct_ha_accept_locked(struct uct_ha_iface *iface, const struct uct_ha_accept *accept);

#endif
