/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EP_H_
#define UCT_HA_EP_H_

/*
 * The endpoint that UCX holds: the first part of a connection, so that an operation finds it in a line that it needs
 * anyway. Destroying it leaves the connection to finish what is under way and to serve its peer.
 */

#include "data/flow.h"

static inline struct uct_ha_flow *uct_ha_ep_flow(uct_ep_h tl_ep)
{
    return ucs_container_of((uct_base_ep_t *)(void *)tl_ep, struct uct_ha_flow, super);
}

/* Slots of uct_iface_ops_t; see UCX's uct/api/tl.h for their contracts. */
ucs_status_t uct_ha_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void         uct_ha_ep_destroy(uct_ep_h ep);
ucs_status_t uct_ha_ep_check(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_ha_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_ha_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t uct_ha_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags);
void         uct_ha_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void *arg);
ucs_status_t uct_ha_ep_invalidate(uct_ep_h ep);

int uct_ha_ep_leads_to(uct_ep_h ep, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr);

#endif
