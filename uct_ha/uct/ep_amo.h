/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EP_AMO_H_
#define UCT_HA_EP_AMO_H_

/* Atomics of an endpoint, by message or by the card of the memory's owner: slots of uct_iface_ops_t. */

#include "abi/uct_ha_abi.h"

ucs_status_t uct_ha_ep_atomic32_post(uct_ep_h ep, unsigned op, uint32_t value, uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_atomic64_post(uct_ep_h ep, unsigned op, uint64_t value, uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_atomic32_fetch(uct_ep_h ep, unsigned op, uint32_t value, uint32_t *result, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic64_fetch(uct_ep_h ep, unsigned op, uint64_t value, uint64_t *result, uint64_t remote_addr,
                                      uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
                                      uct_rkey_t rkey, uint32_t *result, uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
                                      uct_rkey_t rkey, uint64_t *result, uct_completion_t *comp);

#endif
