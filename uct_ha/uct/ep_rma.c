/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep_rma.h"

#include "data/go.h"
#include "uct/ep.h"
#include "uct/iov.h"

#include <string.h>

static UCS_F_ALWAYS_INLINE struct uct_ha_out describe(enum ha_op_kind kind, unsigned flags, size_t length,
                                                      uint64_t remote_addr, uct_rkey_t rkey)
{
    return (struct uct_ha_out){.op          = kind == HA_OP_WRITE ? HA_WRITE : HA_READ,
                               .kind        = kind,
                               .flags       = flags,
                               .imm         = UCT_HA_IMM_PUT,
                               .length      = (uint32_t)length,
                               .remote_addr = remote_addr,
                               .rkey        = rkey};
}

/* A peer that proves by count has to notice each PUT: these go the long way, which reads the entry. */
static UCS_F_ALWAYS_INLINE void begin_put(struct uct_ha_flow *flow, int go, struct uct_ha_out *out,
                                          enum uct_ha_form form)
{
    uct_ha_tx_begin_out(flow, out, form);
    if (!go) {
        out->txop->op = flow->put_op;
    }
}

static UCS_F_ALWAYS_INLINE void put_short(struct uct_ha_flow *flow, int go, const void *buffer, unsigned length,
                                          uint64_t remote_addr, uct_rkey_t rkey)
{
    struct uct_ha_out out = describe(HA_OP_WRITE, HA_OP_FLAG_QUIET, length, remote_addr, rkey);

    begin_put(flow, go, &out, UCT_HA_BYTES);
    uct_ha_tx_copy(out.bytes, buffer, length);
    uct_ha_go_short(flow, go, &out, length > 0);
}

static UCS_F_NOINLINE ucs_status_t ask_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length,
                                                 uint64_t remote_addr, uct_rkey_t rkey)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go_rma(flow, flow->put_counts, &status);

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(length > flow->road.lanes->max_inline)) {
        return UCS_ERR_INVALID_PARAM;
    }
    put_short(flow, go, buffer, length, remote_addr, rkey);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length, uint64_t remote_addr,
                                 uct_rkey_t rkey)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    if (ucs_unlikely(!uct_ha_go_is_open(flow, 0) || length - 1 >= flow->go.max_inline)) {
        return ask_put_short(tl_ep, buffer, length, remote_addr, rkey);
    }
    put_short(flow, 1, buffer, length, remote_addr, rkey);
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ssize_t put_bcopy(struct uct_ha_flow *flow, int go, uct_pack_callback_t pack, void *arg,
                                             uint64_t remote_addr, uct_rkey_t rkey, struct uct_ha_desc *desc)
{
    size_t            length = pack(desc->data, arg);
    struct uct_ha_out out    = describe(HA_OP_WRITE, HA_OP_FLAG_QUIET, length, remote_addr, rkey);

    begin_put(flow, go, &out, UCT_HA_COPY);
    out.txop->desc = desc;
    uct_ha_go_desc(flow, go, &out, desc);
    return (ssize_t)length;
}

static UCS_F_NOINLINE ssize_t ask_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack, void *arg, uint64_t remote_addr,
                                            uct_rkey_t rkey)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    ucs_status_t        status;
    int                 go = uct_ha_go_rma(flow, flow->put_counts, &status);
    struct uct_ha_desc *desc;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    return ucs_unlikely(desc == NULL) ? UCS_ERR_NO_MEMORY : put_bcopy(flow, go, pack, arg, remote_addr, rkey, desc);
}

ssize_t uct_ha_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack, void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    if (ucs_unlikely(!uct_ha_go_is_open(flow, 0) || uct_ha_flow_pool(flow)->free == NULL)) {
        return ask_put_bcopy(tl_ep, pack, arg, remote_addr, rkey);
    }
    return put_bcopy(flow, 1, pack, arg, remote_addr, rkey, uct_ha_desc_alloc(uct_ha_flow_pool(flow)));
}

/* GETs under way bring as much as they may. */
static ucs_status_t no_gets(struct uct_ha_flow *flow)
{
    flow->amo_refused = 0;
    return UCS_ERR_NO_RESOURCE;
}

/* Both directions of zero copy: the user's memory is used until `comp`. Where it may go the short way: almost always
 * one piece, and not a long one. */
static UCS_F_ALWAYS_INLINE void zcopy_one(struct uct_ha_flow *flow, enum ha_op_kind kind, const uct_iov_t *iov,
                                          uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp)
{
    struct uct_ha_out out = describe(kind, 0, iov->length, remote_addr, rkey);

    uct_ha_tx_begin_out(flow, &out, UCT_HA_PIECES);
    if (kind == HA_OP_READ) {
        flow->flows->gets_left -= out.length;
    }
    out.txop->more->comp = comp;
    uct_ha_piece_set(&out.txop->more->piece[0], iov->buffer, out.length, uct_ha_mem(iov->memh));
    uct_ha_go_light(flow, &out, 1);
}

static inline int is_one(const struct uct_ha_flow *flow, const uct_iov_t *iov, size_t iovcnt)
{
    return ucs_likely(iovcnt == 1 && iov->count == 1 && iov->memh != UCT_MEM_HANDLE_NULL &&
                      (iov->length - 1) >> flow->go.zcopy_shift == 0 && uct_ha_go_is_open(flow, 0));
}

static UCS_F_NOINLINE ucs_status_t ask_zcopy(struct uct_ha_flow *flow, enum ha_op_kind kind, const uct_iov_t *iov,
                                             size_t iovcnt, uint64_t remote_addr, uct_rkey_t rkey,
                                             uct_completion_t *comp)
{
    size_t            length = uct_ha_iov_length(iov, iovcnt);
    int               put    = kind == HA_OP_WRITE;
    struct uct_ha_out out    = describe(kind, 0, length, remote_addr, rkey);
    ucs_status_t      status;
    int               go = uct_ha_go_rma(flow, put && flow->put_counts, &status);

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(!put && flow->flows->gets_left <= 0)) {
        return no_gets(flow);
    }
    if (ucs_unlikely(length > flow->road.lanes->max_zcopy ||
                     !uct_ha_iov_is_valid(iov, iovcnt, flow->road.lanes->max_sge))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (ucs_unlikely(length == 0)) {
        return UCS_OK;
    }
    if (ucs_unlikely(length > UCT_HA_LONG_OP && length > __atomic_load_n(&flow->tx.longest, __ATOMIC_RELAXED))) {
        __atomic_store_n(&flow->tx.longest, (uint32_t)length, __ATOMIC_RELAXED);
    }
    begin_put(flow, go || !put, &out, UCT_HA_PIECES);
    flow->flows->gets_left -= put ? 0 : (int64_t)length;
    out.txop->more->comp = comp;
    out.txop->pieces     = (uint8_t)uct_ha_iov_fill(out.txop, 0, iov, iovcnt, length);
    uct_ha_go_pieces(flow, go, &out, out.txop->pieces);
    return UCS_INPROGRESS;
}

ucs_status_t uct_ha_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt, uint64_t remote_addr,
                                 uct_rkey_t rkey, uct_completion_t *comp)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    if (ucs_unlikely(!is_one(flow, iov, iovcnt))) {
        return ask_zcopy(flow, HA_OP_WRITE, iov, iovcnt, remote_addr, rkey, comp);
    }
    zcopy_one(flow, HA_OP_WRITE, iov, remote_addr, rkey, comp);
    return UCS_INPROGRESS;
}

ucs_status_t uct_ha_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt, uint64_t remote_addr,
                                 uct_rkey_t rkey, uct_completion_t *comp)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);

    if (ucs_unlikely(!is_one(flow, iov, iovcnt) || flow->flows->gets_left <= 0)) {
        return ask_zcopy(flow, HA_OP_READ, iov, iovcnt, remote_addr, rkey, comp);
    }
    zcopy_one(flow, HA_OP_READ, iov, remote_addr, rkey, comp);
    return UCS_INPROGRESS;
}

static UCS_F_ALWAYS_INLINE ucs_status_t get_bcopy(struct uct_ha_flow *flow, int go, uct_unpack_callback_t unpack,
                                                  void *arg, size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                                                  uct_completion_t *comp, struct uct_ha_desc *desc)
{
    struct uct_ha_out out = describe(HA_OP_READ, 0, length, remote_addr, rkey);

    uct_ha_tx_begin_out(flow, &out, UCT_HA_PIECES);
    flow->flows->gets_left -= (int64_t)length;
    out.txop->more->comp       = comp;
    out.txop->more->unpack     = unpack;
    out.txop->more->unpack_arg = arg;
    uct_ha_txop_use(out.txop, desc, length);
    uct_ha_go_desc(flow, go, &out, desc);
    return UCS_INPROGRESS;
}

static UCS_F_NOINLINE ucs_status_t ask_get_bcopy(struct uct_ha_flow *flow, uct_unpack_callback_t unpack, void *arg,
                                                 size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                                                 uct_completion_t *comp)
{
    ucs_status_t        status;
    int                 go = uct_ha_go_rma(flow, 0, &status);
    struct uct_ha_desc *desc;

    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }
    if (ucs_unlikely(flow->flows->gets_left <= 0)) {
        return no_gets(flow);
    }
    if (ucs_unlikely(length > uct_ha_flow_pool(flow)->seg_size)) {
        return UCS_ERR_INVALID_PARAM;
    }
    desc = uct_ha_desc_alloc(uct_ha_flow_pool(flow));
    return ucs_unlikely(desc == NULL) ? UCS_ERR_NO_MEMORY
                                      : get_bcopy(flow, go, unpack, arg, length, remote_addr, rkey, comp, desc);
}

ucs_status_t uct_ha_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack, void *arg, size_t length,
                                 uint64_t remote_addr, uct_rkey_t rkey, uct_completion_t *comp)
{
    struct uct_ha_flow      *flow = uct_ha_ep_flow(tl_ep);
    struct uct_ha_desc_pool *pool = uct_ha_flow_pool(flow);

    if (ucs_unlikely(!uct_ha_go_is_open(flow, 0) || pool->free == NULL || length > pool->seg_size ||
                     flow->flows->gets_left <= 0)) {
        return ask_get_bcopy(flow, unpack, arg, length, remote_addr, rkey, comp);
    }
    return get_bcopy(flow, 1, unpack, arg, length, remote_addr, rkey, comp, uct_ha_desc_alloc(pool));
}
