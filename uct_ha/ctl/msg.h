/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MSG_H_
#define UCT_HA_MSG_H_

/* Control packets coming in. The control lock is held. */

#include "ctl/ctl.h"

/* All that the control port of this rail has. */
void uct_ha_msg_receive_locked(struct uct_ha_ctl *ctl, int slot);

/* One that came by TCP; for uct_ha_tcp_open(). Returns whether it was for this instance. */
int uct_ha_msg_tcp(void *ctl, const void *data, size_t length);

#endif
