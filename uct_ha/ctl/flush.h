/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FLUSH_H_
#define UCT_HA_FLUSH_H_

#include "ctl/ctl.h"

/* At the end of everything that happens under the lock: send what is due to the peers, set the
 * timer, and wake the user if progress has to come. */
void uct_ha_flush_locked(struct uct_ha_ctl *ctl);

#endif
