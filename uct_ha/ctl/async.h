/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ASYNC_H_
#define UCT_HA_ASYNC_H_

/* Handlers on UCX's async thread: from open to close the control plane lives by itself.
 * Without the control lock. */

#include "ctl/ctl.h"

ucs_status_t uct_ha_async_open(struct uct_ha_ctl *ctl);
void         uct_ha_async_close(struct uct_ha_ctl *ctl);

#endif
