/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EP_RMA_H_
#define UCT_HA_EP_RMA_H_

/* PUT and GET of an endpoint: slots of uct_iface_ops_t. */

#include "abi/uct_ha_abi.h"

ucs_status_t uct_ha_ep_put_short(uct_ep_h ep, const void *buffer, unsigned length, uint64_t remote_addr,
                                 uct_rkey_t rkey);
ssize_t uct_ha_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void *arg, uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt, uint64_t remote_addr,
                                 uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_ha_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack, void *arg, size_t length,
                                 uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_ha_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt, uint64_t remote_addr,
                                 uct_rkey_t rkey, uct_completion_t *comp);

#endif
