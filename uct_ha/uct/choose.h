/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CHOOSE_H_
#define UCT_HA_CHOOSE_H_

#include "uct/iface.h"

/* Choose the kind of proof for each rail of the interface (PROOF), and who executes atomics
 * (ATOMICS); UCS_OK, or an error that has been told. May test a device, see lane/selftest.h. */
ucs_status_t uct_ha_choose(struct uct_ha_iface *iface);

#endif
