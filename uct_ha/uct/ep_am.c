/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep_am.h"

#include "data/go.h"
#include "uct/ep.h"
#include "uct/iov.h"

#include <string.h>

static UCS_F_ALWAYS_INLINE struct uct_ha_out describe(uint8_t id, unsigned flags, size_t length)
{
    return (struct uct_ha_out){
        .op = HA_SEND_IMM, .kind = HA_OP_SEND, .flags = flags, .imm = id, .length = (uint32_t)length};
}

static UCS_F_ALWAYS_INLINE void am_short(struct uct_ha_flow *flow, int go, uint8_t id, uint64_t header,
                                         const void *payload, unsigned length)
{
    struct uct_ha_out out = describe(id, HA_OP_FLAG_QUIET, length + sizeof(header));

    uct_ha_tx_begin_out(flow, &out, UCT_HA_BYTES);
    if (ucs_likely(length <= sizeof(uint64_t))) {
        ha_words_store(out.bytes, header, uct_ha_tx_word(payload, length));
    } else {
        memcpy(out.bytes, &header, sizeof(header));
        uct_ha_tx_copy(out.bytes + sizeof(header), payload, length);
    }
    flow->tx.sent++;
    uct_ha_go_short(flow, go, &out, 1);
}

static UCS_F_NOINLINE ucs_status_t ask_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void *payload,
                                                unsigned length)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length + sizeof(header) > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    am_short(flow, go, id, header, payload, length);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    if (ucs_unlikely(!uct_ha_go_is_open(flow, 1) || length + sizeof(header) > flow->go.max_inline)) {
        return ask_am_short(tl_ep, id, header, payload, length);
    }
    am_short(flow, 1, id, header, payload, length);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id, const uct_iov_t *iov, size_t iovcnt)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status;
    int                 go     = uct_ha_go(flow, 1, &status);
    size_t              offset = 0;
    struct uct_ha_out   out    = describe(id, HA_OP_FLAG_QUIET, length);

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    uct_ha_tx_begin_out(flow, &out, UCT_HA_BYTES);
    for (size_t i = 0; i < iovcnt; i++) {
        memcpy(out.bytes + offset, iov[i].buffer, iov[i].length * iov[i].count);
        offset += iov[i].length * iov[i].count;
    }
    flow->tx.sent++;
    uct_ha_go_short(flow, go, &out, length > 0);
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ssize_t am_bcopy(struct uct_ha_flow *flow, int go, uint8_t id, uct_pack_callback_t pack,
                                            void *arg, struct uct_ha_desc *desc)
{
    size_t            length = pack(desc->data, arg);
    struct uct_ha_out out    = describe(id, HA_OP_FLAG_QUIET, length);

    uct_ha_tx_begin_out(flow, &out, UCT_HA_COPY);
    out.txop->desc = desc;
    flow->tx.sent++;
    uct_ha_go_desc(flow, go, &out, desc);
    return (ssize_t)length;
}

static UCS_F_NOINLINE ssize_t ask_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void *arg)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go(flow, 1, &status);
    struct uct_ha_desc *desc;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    return ucs_unlikely(desc == NULL) ? UCS_ERR_NO_MEMORY : am_bcopy(flow, go, id, pack, arg, desc);
}

ssize_t uct_ha_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    (void)flags;
    if (ucs_unlikely(!uct_ha_go_is_open(flow, 1) || uct_ha_flow_pool(flow)->free == NULL)) {
        return ask_am_bcopy(tl_ep, id, pack, arg);
    }
    return am_bcopy(flow, 1, id, pack, arg, uct_ha_desc_alloc(uct_ha_flow_pool(flow)));
}

ucs_status_t uct_ha_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_flow *flow   = uct_ha_ep_flow(tl_ep);
    size_t              length = header_length + uct_ha_iov_length(iov, iovcnt);
    ucs_status_t        status;
    int                 go   = uct_ha_go(flow, 1, &status);
    struct uct_ha_desc *desc = NULL;
    struct uct_ha_out   out  = describe(id, 0, length);

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
    uct_ha_tx_begin_out(flow, &out, UCT_HA_PIECES);
    out.txop->more->comp = comp;
    uct_ha_txop_use(out.txop, desc, header_length);
    out.txop->pieces = (uint8_t)uct_ha_iov_fill(out.txop, 1, iov, iovcnt, length - header_length);
    flow->tx.sent++;
    uct_ha_go_pieces(flow, go, &out, out.txop->pieces);
    return UCS_INPROGRESS;
}
