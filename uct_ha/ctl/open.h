/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_OPEN_H_
#define UCT_HA_OPEN_H_

/* The life of the control plane. Without the control lock. */

#include "ctl/ctl.h"

/* pairs and lanes are open. When it fails, stop and close it all the same. */
ucs_status_t uct_ha_ctl_open(struct uct_ha_ctl *ctl);

/* Nothing comes in any more, and no job of its own runs. */
void uct_ha_ctl_stop(struct uct_ha_ctl *ctl);

/* There are no connections any more. */
void uct_ha_ctl_close(struct uct_ha_ctl *ctl);

#endif
