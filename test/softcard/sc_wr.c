/* SPDX-License-Identifier: BSD-3-Clause */

/* Extended posting (ibv_wr_*): requests are collected, and posted when the caller says so. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

struct sc_wr_builder {
    struct ibv_send_wr wr;
    struct ibv_sge     sge[SC_SGE_MAX];
    int                open, status; /* one is being built */
    unsigned           tail_before;
    uint32_t           psn_before;
};

static struct sc_wr_builder *builder_of(struct ibv_qp_ex *ex)
{
    return ((struct sc_qp *)ex)->builder;
}

/* The one before is whole when the next one begins. */
static void finish(struct ibv_qp_ex *ex)
{
    struct sc_wr_builder *builder = builder_of(ex);

    if (builder->open) {
        int status = sc_post_one((struct sc_qp *)ex, &builder->wr);

        builder->status = builder->status != 0 ? builder->status : status;
        builder->open   = 0;
    }
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
    struct sc_wr_builder *builder = builder_of(ex);

    finish(ex);
    builder->wr = (struct ibv_send_wr){
        .wr_id = ex->wr_id, .opcode = opcode, .send_flags = ex->wr_flags, .sg_list = builder->sge};
    builder->open = 1;
    return &builder->wr;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct sc_wr_builder *builder = builder_of(ex);
    struct sc_qp         *qp      = (struct sc_qp *)ex;

    sc_lock(&sc.lock);
    builder->open = builder->status = 0;
    builder->tail_before            = qp->sq_tail;
    builder->psn_before             = qp->post_psn;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    struct sc_wr_builder *builder = builder_of(ex);
    struct sc_qp         *qp      = (struct sc_qp *)ex;

    builder->open = 0;
    qp->sq_tail   = builder->tail_before;
    qp->post_psn  = builder->psn_before;
    sc_unlock(&sc.lock);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    int status;

    finish(ex);
    status = builder_of(ex)->status;
    if (status != 0) {
        wr_abort(ex);
        return status;
    }
    softcard_counts.send_doorbells++;
    sc_post_ring((struct sc_qp *)ex);
    sc_unlock(&sc.lock);
    return 0;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    (void)begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static struct ibv_send_wr *rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
    struct ibv_send_wr *wr = begin(ex, opcode);

    wr->wr.rdma.rkey        = rkey;
    wr->wr.rdma.remote_addr = addr;
    return wr;
}

static void wr_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    (void)rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
    rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr)->imm_data = imm;
}

static void wr_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    (void)rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr, uint64_t operand,
                   uint64_t swap)
{
    struct ibv_send_wr *wr = begin(ex, opcode);

    wr->wr.atomic.rkey        = rkey;
    wr->wr.atomic.remote_addr = addr;
    wr->wr.atomic.compare_add = operand;
    wr->wr.atomic.swap        = swap;
}

static void wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
    atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct ibv_send_wr *wr = &builder_of(ex)->wr;

    wr->wr.ud.ah          = ah;
    wr->wr.ud.remote_qpn  = qpn;
    wr->wr.ud.remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_sge *list)
{
    struct sc_wr_builder *builder = builder_of(ex);

    if (num > SC_SGE_MAX) {
        builder->status = ENOMEM;
        return;
    }
    memcpy(builder->sge, list, num * sizeof(*list));
    builder->wr.num_sge = (int)num;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge sge = {addr, length, lkey};

    wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num, const struct ibv_data_buf *list)
{
    struct sc_wr_builder *builder = builder_of(ex);

    if (num > SC_SGE_MAX) {
        builder->status = ENOMEM;
        return;
    }
    for (size_t i = 0; i < num; i++) {
        builder->sge[i] = (struct ibv_sge){(uintptr_t)list[i].addr, (uint32_t)list[i].length, 0};
    }
    builder->wr.num_sge = (int)num;
    builder->wr.send_flags |= IBV_SEND_INLINE;
    finish(ex); /* now: the bytes may change */
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf data = {addr, length};

    wr_set_inline_data_list(ex, 1, &data);
}

int sc_wr_init(struct sc_qp *qp)
{
    struct ibv_qp_ex *ex = &qp->ex;

    qp->builder = calloc(1, sizeof(*qp->builder));
    if (qp->builder == NULL) {
        return ENOMEM;
    }
    ex->wr_start                = wr_start;
    ex->wr_complete             = wr_complete;
    ex->wr_abort                = wr_abort;
    ex->wr_send                 = wr_send;
    ex->wr_send_imm             = wr_send_imm;
    ex->wr_rdma_write           = wr_write;
    ex->wr_rdma_write_imm       = wr_write_imm;
    ex->wr_rdma_read            = wr_read;
    ex->wr_atomic_cmp_swp       = wr_cmp_swp;
    ex->wr_atomic_fetch_add     = wr_fetch_add;
    ex->wr_set_ud_addr          = wr_set_ud_addr;
    ex->wr_set_sge              = wr_set_sge;
    ex->wr_set_sge_list         = wr_set_sge_list;
    ex->wr_set_inline_data      = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    return 0;
}

void sc_wr_free(struct sc_qp *qp)
{
    free(qp->builder);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return ((struct sc_qp *)qp)->builder != NULL ? (struct ibv_qp_ex *)qp : NULL;
}
