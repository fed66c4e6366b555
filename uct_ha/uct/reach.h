/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_REACH_H_
#define UCT_HA_REACH_H_

#include "abi/uct_ha_abi.h"

/* For UCX's table: can a peer with these addresses be reached? Says once why not. */
int uct_ha_reach(const uct_iface_h tl_iface, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr);

#endif
