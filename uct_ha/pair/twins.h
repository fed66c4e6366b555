/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TWINS_H_
#define UCT_HA_TWINS_H_

/*
 * Two interfaces of this process, each with the other's rail as its standby: UCX uses both rails, and has mostly two
 * connections to each peer. Counted here, process-wide and atomically, since each has a control lock of its own.
 */

#include "lane/lanes.h"

/* A connection of an interface begins. 1 when it is beyond UCX_HA_RC_STANDBYS, and the interface has a twin. */
int uct_ha_twins_join(const struct uct_ha_lanes *lanes);

/* ... ends. */
void uct_ha_twins_leave(const struct uct_ha_lanes *lanes);

#endif
