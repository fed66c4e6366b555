/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_IFACE_SETUP_H_
#define UCT_HA_IFACE_SETUP_H_

/*
 * An interface comes to life: sizes that fit the devices, completion queues,
 * the control plane, the event descriptor; and all of that again in reverse.
 */

#include "mem/duo.h"
#include "uct/iface.h"

/* Everything behind the base class, on the rails of a domain: config is filled in, the rest is
 * zero. `headroom`: bytes before a received message that its user wants. A failed setup leaves nothing behind. */
ucs_status_t uct_ha_iface_setup(struct uct_ha_iface *iface, const struct uct_ha_duo *duo, size_t headroom);
void         uct_ha_iface_teardown(struct uct_ha_iface *iface);

#endif
