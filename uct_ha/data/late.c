/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/late.h"

#include "base/stats.h"

#include <errno.h>
#include <string.h>

/* The unpack function of a GET whose answer came to a bounce buffer. */
static void scatter(void *arg, const void *data, size_t length)
{
    const struct uct_ha_txop  *txop = arg;
    const struct uct_ha_piece *piece;
    const uint8_t             *from = data;

    (void)length;
    for (unsigned i = 0; i < txop->pieces; i++) {
        piece = &txop->more->piece[i];
        memcpy((void *)(uintptr_t)piece->addr, from, piece->length);
        from += piece->length;
    }
}

/* Memory that an operation with pieces uses. */
static struct uct_ha_mem *mem_of(const struct uct_ha_txop *txop, unsigned i)
{
    return uct_ha_txop_is_copy(txop) ? txop->desc->mem : txop->more->piece[i].mem;
}

/* Gather into `desc`. The first piece may be in it already: a message's header. */
static void use_copy(struct uct_ha_txop *txop, struct uct_ha_desc *desc)
{
    uint8_t                   *to = desc->data;
    const struct uct_ha_piece *piece;

    for (unsigned i = 0; i < txop->pieces; i++) {
        piece = &txop->more->piece[i];
        if (piece->addr != (uintptr_t)to) {
            memcpy(to, (const void *)(uintptr_t)piece->addr, piece->length);
        }
        to += piece->length;
    }
    uct_ha_txop_use(txop, desc, txop->core.length);
}

/* -ENOSPC: it has to be registered. The user's bytes do not change before the
 * operation ends, so the copy is as good as they are. */
static int bounce(struct uct_ha_flow *flow, struct uct_ha_txop *txop, int slot)
{
    struct uct_ha_lanes *lanes = flow->road.lanes;
    struct uct_ha_desc  *desc  = txop->desc;

    if (uct_ha_txop_is_copy(txop) || txop->core.length > lanes->pool.seg_size ||
        (txop->op == HA_READ && desc != NULL)) {
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
        txop->more->unpack     = scatter;
        txop->more->unpack_arg = txop; /* see uct_ha_txlog_grow() */
    } else {
        use_copy(txop, desc);
    }
    UCT_HA_STATS_ADD(bounced, 1);
    return 0;
}

static int reg(struct uct_ha_flow *flow, struct uct_ha_txop *txop, int slot)
{
    unsigned           rail_no = flow->road.lanes->rail_no[slot];
    struct uct_ha_mem *mem;
    int                status;

    for (unsigned i = 0; i < txop->pieces; i++) {
        mem = mem_of(txop, i);
        if (uct_ha_reg_is_on(mem, rail_no)) {
            continue;
        }
        status = uct_ha_reg_on(mem, rail_no);
        if (status != 0) {
            return status;
        }
        UCT_HA_STATS_ADD(late_mrs, 1);
    }
    return 0;
}

static int is_users_memory(const struct uct_ha_txop *txop)
{
    int users = 0;

    for (unsigned i = 0; i < txop->pieces; i++) {
        users |= txop->desc == NULL || mem_of(txop, i) != txop->desc->mem;
    }
    return users;
}

static int has_handles(const struct uct_ha_txop *txop)
{
    int handles = is_users_memory(txop);

    for (unsigned i = 0; i < txop->pieces; i++) {
        handles &= mem_of(txop, i) != NULL; /* of an endpoint before this one */
    }
    return handles;
}

int uct_ha_late(struct uct_ha_flow *flow, int slot)
{
    struct uct_ha_txop *txop = uct_ha_txlog_op(&flow->tx, flow->tx.log.post);
    const struct ha_op *op   = ha_log_op(&flow->tx.log, flow->tx.log.post);
    int                 status;

    if (is_users_memory(txop) && (!flow->is_held || !has_handles(txop))) {
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

/* In a copy: what is sent again is what it was, whatever becomes of the memory. What is too long for that, on both
 * rails. */
static void make_known(struct uct_ha_flow *flow, struct uct_ha_txop *txop)
{
    struct uct_ha_desc *desc = txop->desc;

    if (txop->core.length <= flow->road.lanes->pool.seg_size) {
        desc = desc != NULL ? desc : uct_ha_desc_alloc(uct_ha_flow_pool(flow));
        if (desc != NULL) {
            use_copy(txop, desc);
            return;
        }
    }
    for (int s = 0; s < flow->road.slots; s++) {
        (void)reg(flow, txop, s); /* if not, it fails when it has to move */
    }
}

/* The keys without the handle. */
static void keep_keys(const struct uct_ha_flow *flow, struct uct_ha_txop *txop)
{
    struct uct_ha_piece *piece;

    for (unsigned i = 0; i < txop->pieces; i++) {
        piece = &txop->more->piece[i];
        if (txop->desc != NULL && piece->mem == txop->desc->mem) {
            continue; /* ours, for ever */
        }
        piece->rails = 0;
        for (int s = 0; s < HA_SLOTS; s++) {
            unsigned rail_no = flow->road.lanes->rail_no[s];

            piece->rails |= (uint32_t)uct_ha_reg_is_on(piece->mem, rail_no) << s;
            piece->lkey[s] = piece->mem->lkey[rail_no];
        }
        piece->mem = NULL;
    }
}

void uct_ha_late_keep(struct uct_ha_flow *flow)
{
    for (uint32_t i = flow->tx.log.head; i != flow->tx.log.tail; i++) {
        struct uct_ha_txop *txop = uct_ha_txlog_op(&flow->tx, i);

        if (ha_log_op(&flow->tx.log, i)->state == HA_OP_DONE || !has_handles(txop)) {
            continue;
        }
        if (txop->op != HA_READ) {
            make_known(flow, txop);
        }
        keep_keys(flow, txop);
    }
}
