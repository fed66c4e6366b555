/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep_am.h"

#include "data/tx.h"
#include "uct/ep.h"
#include "uct/iov.h"

#include <string.h>

/* Short messages live in the log itself and go out inline. */
static inline struct uct_ha_txop *begin_short(struct uct_ha_flow *flow, uint8_t id, size_t length)
{
    struct uct_ha_txop *txop = uct_ha_tx_append_flags(flow, HA_OP_SEND, HA_SEND_IMM, length, HA_OP_FLAG_QUIET);

    flow->tx.sent++;
    txop->imm    = id;
    txop->pieces = 0;
    return txop;
}

ucs_status_t uct_ha_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status = uct_ha_tx_check(flow, 1);
    struct uct_ha_txop *txop;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length + sizeof(header) > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    txop = begin_short(flow, id, length + sizeof(header));
    memcpy(txop->bytes, &header, sizeof(header));
    memcpy(txop->bytes + sizeof(header), payload, length);
    uct_ha_tx_commit(flow);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status = uct_ha_tx_check(flow, 1);
    struct uct_ha_txop *txop;
    size_t              offset = 0;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    txop = begin_short(flow, id, length);
    for (size_t i = 0; i < iovcnt; i++) {
        memcpy(txop->bytes + offset, iov[i].buffer, iov[i].length * iov[i].count);
        offset += iov[i].length * iov[i].count;
    }
    uct_ha_tx_commit(flow);
    return UCS_OK;
}

ssize_t uct_ha_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status = uct_ha_tx_check(flow, 1);
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
    txop   = uct_ha_tx_append_flags(flow, HA_OP_SEND, HA_SEND_IMM, length, HA_OP_FLAG_QUIET);
    flow->tx.sent++;
    txop->imm = id;
    uct_ha_txop_use(txop, desc, (uint32_t)length, flow->road.lanes->rail_no);
    uct_ha_tx_commit(flow);
    return (ssize_t)length;
}

ucs_status_t uct_ha_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = header_length + uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status = uct_ha_tx_check(flow, 1);
    struct uct_ha_desc *desc   = NULL;
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
    txop = uct_ha_tx_append(flow, HA_OP_SEND, HA_SEND_IMM, length);
    flow->tx.sent++;
    txop->imm  = id;
    txop->comp = comp;
    uct_ha_txop_use(txop, desc, header_length, flow->road.lanes->rail_no);
    txop->pieces = (uint8_t)uct_ha_iov_fill(txop, 1, iov, iovcnt, flow->road.lanes->rail_no);
    uct_ha_tx_commit(flow);
    return UCS_INPROGRESS;
}
