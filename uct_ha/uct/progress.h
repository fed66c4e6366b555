/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PROGRESS_H_
#define UCT_HA_PROGRESS_H_

/* What progress does: poll, then what the control plane has left to it, then what waits. No
 * lock is held when it is called. */

#include "uct/iface.h"

unsigned uct_ha_progress(uct_iface_h tl_iface);

#endif
