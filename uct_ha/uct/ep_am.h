/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EP_AM_H_
#define UCT_HA_EP_AM_H_

/* Messages of an endpoint: slots of uct_iface_ops_t, see UCX's uct/api/tl.h for their contracts. */

#include "abi/uct_ha_abi.h"

ucs_status_t uct_ha_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload, unsigned length);
ucs_status_t uct_ha_ep_am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt);
ssize_t      uct_ha_ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
ucs_status_t uct_ha_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t iovcnt, unsigned flags, uct_completion_t *comp);

#endif
