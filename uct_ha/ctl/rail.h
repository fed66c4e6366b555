/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RAIL_H_
#define UCT_HA_RAIL_H_

#include "verbs/ha_rail.h"

/* An event of one of our rails; for uct_ha_watch_add(). */
void uct_ha_rail_event(void *ctl, int slot, const struct ha_rail_event *event, int kept);

#endif
