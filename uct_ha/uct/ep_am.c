/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep_am.h"

#include "data/go.h"
#include "uct/ep.h"
#include "uct/iov.h"

#include <string.h>

ucs_status_t uct_ha_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);
    struct uct_ha_txop *txop;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length + sizeof(header) > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    txop = uct_ha_tx_begin(flow, HA_SEND_IMM, 0, id, length + sizeof(header));
    memcpy(txop->bytes, &header, sizeof(header));
    uct_ha_tx_copy(txop->bytes + sizeof(header), payload, length);
    flow->tx.sent++;
    uct_ha_go_short(flow, go, txop, HA_SEND_IMM, HA_OP_SEND, 1);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);
    struct uct_ha_txop *txop;
    size_t              offset = 0;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    txop = uct_ha_tx_begin(flow, HA_SEND_IMM, 0, id, length);
    for (size_t i = 0; i < iovcnt; i++) {
        memcpy(txop->bytes + offset, iov[i].buffer, iov[i].length * iov[i].count);
        offset += iov[i].length * iov[i].count;
    }
    flow->tx.sent++;
    uct_ha_go_short(flow, go, txop, HA_SEND_IMM, HA_OP_SEND, length > 0);
    return UCS_OK;
}

ssize_t uct_ha_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);
    struct uct_ha_desc *desc;
    struct uct_ha_txop *txop;
    size_t              length;

    (void)flags;
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    if (ucs_unlikely(desc == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    length = pack(desc->data, arg);
    txop   = uct_ha_tx_begin(flow, HA_SEND_IMM, 1, id, length);
    uct_ha_txop_use(txop, desc, length);
    flow->tx.sent++;
    uct_ha_go_pieces(flow, go, txop, HA_SEND_IMM, HA_OP_SEND, HA_OP_FLAG_QUIET, 1);
    return (ssize_t)length;
}

ucs_status_t uct_ha_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = header_length + uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status;
    int                 go   = uct_ha_go(flow, 1, &status);
    struct uct_ha_desc *desc = NULL;
    struct uct_ha_txop *txop;

    (void)flags;
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length > flow->road.lanes->pool.seg_size ||
                     !uct_ha_iov_is_valid(iov, iovcnt, flow->road.lanes->max_sge - 1))) {
        return UCS_ERR_INVALID_PARAM;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    if (ucs_unlikely(desc == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(desc->data, header, header_length);
    txop       = uct_ha_tx_begin(flow, HA_SEND_IMM, 1, id, length);
    txop->comp = comp;
    uct_ha_txop_use(txop, desc, header_length);
    txop->pieces = (uint8_t)uct_ha_iov_fill(txop, 1, iov, iovcnt, length - header_length);
    flow->tx.sent++;
    uct_ha_go_pieces(flow, go, txop, HA_SEND_IMM, HA_OP_SEND, 0, txop->pieces);
    return UCS_INPROGRESS;
}
