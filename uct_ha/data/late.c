/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/late.h"

#include "base/stats.h"

#include <errno.h>
#include <string.h>

/* The unpack function of a GET whose answer came to a bounce buffer. */
static void scatter(void *arg, const void *data, size_t length)
{
    const struct uct_ha_txop *txop = arg;
    const uint8_t            *from = data;

    (void)length;
    for (unsigned i = 0; i < txop->pieces; i++) {
        memcpy((void *)(uintptr_t)txop->piece[i].addr, from, txop->piece[i].length);
        from += txop->piece[i].length;
    }
}

/* Gather into `desc`. The first piece may be in it already: a message's header. */
static void use_copy(const struct uct_ha_flow *flow, struct uct_ha_txop *txop, struct uct_ha_desc *desc)
{
    uint8_t *to = desc->data;

    for (unsigned i = 0; i < txop->pieces; i++) {
        if (txop->piece[i].addr != (uintptr_t)to) {
            memcpy(to, (const void *)(uintptr_t)txop->piece[i].addr, txop->piece[i].length);
        }
        to += txop->piece[i].length;
    }
    uct_ha_txop_use(txop, desc, txop->length, flow->road.lanes->rail_no);
}

/* -ENOSPC: it has to be registered. The user's bytes do not change before the
 * operation ends, so the copy is as good as they are. */
static int bounce(struct uct_ha_flow *flow, struct uct_ha_txop *txop, int slot)
{
    struct uct_ha_lanes *lanes = flow->road.lanes;
    struct uct_ha_desc  *desc  = txop->desc;

    if (txop->length > lanes->pool.seg_size || (txop->op == HA_READ && desc != NULL)) {
        return -ENOSPC;
    }
    if (desc == NULL && (desc = uct_ha_desc_alloc(&lanes->pool)) == NULL) {
        return -ENOSPC;
    }
    if (!uct_ha_reg_is_on(desc->mem, lanes->rail_no[slot])) {
        if (txop->desc == NULL) {
            uct_ha_desc_free(&lanes->pool, desc);
        }
        return -ENOSPC;
    }
    if (txop->op == HA_READ) {
        txop->desc = desc;
        txop->flags |= UCT_HA_TXOP_BOUNCED;
        txop->unpack     = scatter;
        txop->unpack_arg = txop;
    } else {
        use_copy(flow, txop, desc);
    }
    UCT_HA_STATS_ADD(bounced, 1);
    return 0;
}

static int reg(struct uct_ha_flow *flow, struct uct_ha_txop *txop, int slot)
{
    unsigned             rail_no = flow->road.lanes->rail_no[slot];
    struct uct_ha_piece *piece;
    int                  status;

    for (unsigned i = 0; i < txop->pieces; i++) {
        piece = &txop->piece[i];
        if (piece->rails & (1u << slot)) {
            continue;
        }
        if (!uct_ha_reg_is_on(piece->mem, rail_no)) {
            status = uct_ha_reg_on(piece->mem, rail_no);
            if (status != 0) {
                return status;
            }
            UCT_HA_STATS_ADD(late_mrs, 1);
        }
        piece->lkey[slot] = piece->mem->lkey[rail_no];
        piece->rails |= 1u << slot;
    }
    return 0;
}

static int is_users_memory(const struct uct_ha_txop *txop)
{
    int users = 0;

    for (unsigned i = 0; i < txop->pieces; i++) {
        users |= txop->desc == NULL || txop->piece[i].mem != txop->desc->mem;
    }
    return users;
}

int uct_ha_late(struct uct_ha_flow *flow, int slot)
{
    struct uct_ha_txop *txop = uct_ha_txlog_op(&flow->tx, flow->tx.log.post);
    const struct ha_op *op   = ha_log_op(&flow->tx.log, flow->tx.log.post);
    int                 status;

    if (flow->ep == NULL && is_users_memory(txop)) {
        return -EFAULT; /* with the endpoint he took it back */
    }
    if (op->posts > 0 && bounce(flow, txop, slot) == 0) {
        return 0;
    }
    status = reg(flow, txop, slot);
    if (status != 0 && bounce(flow, txop, slot) == 0) {
        return 0;
    }
    return status;
}

static int is_known(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop)
{
    uint32_t rails = ~0u;

    for (unsigned i = 0; i < txop->pieces; i++) {
        rails &= txop->piece[i].rails;
    }
    return (rails & 1u) && (flow->road.slots < HA_SLOTS || (rails & 2u));
}

static void keep(struct uct_ha_flow *flow, struct uct_ha_txop *txop)
{
    struct uct_ha_desc *desc = txop->desc;

    if (txop->length <= flow->road.lanes->pool.seg_size) {
        desc = desc != NULL ? desc : uct_ha_desc_alloc(uct_ha_flow_pool(flow));
        if (desc != NULL) {
            use_copy(flow, txop, desc);
            return;
        }
    }
    for (int s = 0; s < flow->road.slots; s++) {
        (void)reg(flow, txop, s); /* if not, it fails when it has to move */
    }
}

void uct_ha_late_keep(struct uct_ha_flow *flow)
{
    for (uint32_t i = flow->tx.log.head; i != flow->tx.log.tail; i++) {
        struct uct_ha_txop *txop = uct_ha_txlog_op(&flow->tx, i);

        if (ha_log_op(&flow->tx.log, i)->state != HA_OP_DONE && txop->op != HA_READ && !is_known(flow, txop) &&
            is_users_memory(txop)) {
            keep(flow, txop);
        }
    }
}
