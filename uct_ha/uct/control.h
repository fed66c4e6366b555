/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CONTROL_H_
#define UCT_HA_CONTROL_H_

#include "uct/iface.h"

/* Progress: everything that the control plane has left to it, for nobody else may do that. Without the
 * lock. Returns connections served. */
unsigned uct_ha_control(struct uct_ha_iface *iface);

#endif
