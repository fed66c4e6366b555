/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_EP_H_
#define UCT_HA_EP_H_

/*
 * The endpoint that UCX holds: a handle on a connection. Destroying it leaves
 * the connection to finish what is under way and to serve its peer.
 */

#include "uct/iface.h"

struct uct_ha_ep {
    uct_base_ep_t       super;
    struct uct_ha_conn *conn;
};

static inline struct uct_ha_conn *uct_ha_ep_conn(uct_ep_h tl_ep)
{
    return ucs_container_of((uct_base_ep_t *)(void *)tl_ep, struct uct_ha_ep, super)->conn;
}

/* Slots of uct_iface_ops_t; see UCX's uct/api/tl.h for their contracts. */
ucs_status_t uct_ha_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void         uct_ha_ep_destroy(uct_ep_h ep);
ucs_status_t uct_ha_ep_check(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_ha_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_ha_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t uct_ha_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags);
void         uct_ha_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void *arg);
ucs_status_t uct_ha_ep_invalidate(uct_ep_h ep, unsigned flags);

/* uct/ep_am.c */
ucs_status_t uct_ha_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                                unsigned length);
ucs_status_t uct_ha_ep_am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt);
ssize_t      uct_ha_ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg,
                                unsigned flags);
ucs_status_t uct_ha_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t iovcnt, unsigned flags,
                                uct_completion_t *comp);

/* uct/ep_rma.c */
ucs_status_t uct_ha_ep_put_short(uct_ep_h ep, const void *buffer, unsigned length,
                                 uint64_t remote_addr, uct_rkey_t rkey);
ssize_t      uct_ha_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack, void *arg,
                                 uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                                 uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_ha_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack, void *arg,
                                 size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                                 uct_completion_t *comp);
ucs_status_t uct_ha_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                                 uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp);

/* uct/ep_amo.c */
ucs_status_t uct_ha_ep_atomic32_post(uct_ep_h ep, unsigned op, uint32_t value,
                                     uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_atomic64_post(uct_ep_h ep, unsigned op, uint64_t value,
                                     uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_ha_ep_atomic32_fetch(uct_ep_h ep, unsigned op, uint32_t value, uint32_t *result,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic64_fetch(uct_ep_h ep, unsigned op, uint64_t value, uint64_t *result,
                                      uint64_t remote_addr, uct_rkey_t rkey,
                                      uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap,
                                      uint64_t remote_addr, uct_rkey_t rkey, uint32_t *result,
                                      uct_completion_t *comp);
ucs_status_t uct_ha_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap,
                                      uint64_t remote_addr, uct_rkey_t rkey, uint64_t *result,
                                      uct_completion_t *comp);

/* Are there at most `max` pieces, all of registered memory? Asked before an
 * operation is begun. */
int uct_ha_ep_iov_is_valid(const uct_iov_t *iov, size_t iovcnt, unsigned max);

/* Pieces of a valid gather list, from `first` on; returns the count used. */
unsigned uct_ha_ep_fill_pieces(const struct uct_ha_conn *conn, struct uct_ha_txop *txop,
                               unsigned first, const uct_iov_t *iov, size_t iovcnt);

#endif
