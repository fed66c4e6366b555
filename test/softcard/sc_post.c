/* SPDX-License-Identifier: BSD-3-Clause */

/* Posting sends. */

#include <errno.h>
#include <string.h>

#include "sc_card.h"

struct sc_counts softcard_counts __attribute__((visibility("default")));

static const struct {
    uint8_t op, imm, wc_opcode, known;
} kinds[] = {
    [IBV_WR_RDMA_WRITE]           = {SC_OP_WRITE, 0, IBV_WC_RDMA_WRITE, 1},
    [IBV_WR_RDMA_WRITE_WITH_IMM]  = {SC_OP_WRITE, 1, IBV_WC_RDMA_WRITE, 1},
    [IBV_WR_SEND]                 = {SC_OP_SEND, 0, IBV_WC_SEND, 1},
    [IBV_WR_SEND_WITH_IMM]        = {SC_OP_SEND, 1, IBV_WC_SEND, 1},
    [IBV_WR_RDMA_READ]            = {SC_OP_READ, 0, IBV_WC_RDMA_READ, 1},
    [IBV_WR_ATOMIC_CMP_AND_SWP]   = {SC_OP_CMP_SWAP, 0, IBV_WC_COMP_SWAP, 1},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {SC_OP_FETCH_ADD, 0, IBV_WC_FETCH_ADD, 1},
};

static int is_atomic(uint8_t op)
{
    return op == SC_OP_FETCH_ADD || op == SC_OP_CMP_SWAP;
}

/* Not by memcpy(): the processor looks ahead by instruction, and that one writes to receive buffers in turn. */
static void copy_words(uint8_t *to, const uint8_t *from, size_t length)
{
    for (; length >= 16; length -= 16, to += 16, from += 16) {
        memcpy(to, from, 16);
    }
    if (length >= 8) {
        memcpy(to, from, 8);
        length -= 8, to += 8, from += 8;
    }
    while (length-- > 0) {
        *to++ = *from++;
    }
}

/* Bytes of the card's own from now on: the caller may change his. */
static int take_inline(struct sc_qp *qp, struct sc_sqe *sqe, const struct ibv_send_wr *wr)
{
    uint8_t *to = (uint8_t *)sqe->sge;

    if (sqe->length > qp->init.cap.max_inline_data || sqe->op > SC_OP_WRITE) {
        return EINVAL;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        copy_words(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        to += wr->sg_list[i].length;
    }
    return 0;
}

static void take_remote(struct sc_sqe *sqe, const struct ibv_send_wr *wr)
{
    if (is_atomic(sqe->op)) {
        sqe->raddr   = wr->wr.atomic.remote_addr;
        sqe->rkey    = wr->wr.atomic.rkey;
        sqe->operand = wr->wr.atomic.compare_add;
        sqe->swap    = wr->wr.atomic.swap;
    } else {
        sqe->raddr = wr->wr.rdma.remote_addr;
        sqe->rkey  = wr->wr.rdma.rkey;
    }
}

static int fill(struct sc_qp *qp, struct sc_sqe *sqe, const struct ibv_send_wr *wr)
{
    sqe->wr_id      = wr->wr_id;
    sqe->op         = kinds[wr->opcode].op;
    sqe->imm_given  = kinds[wr->opcode].imm;
    sqe->wc_opcode  = kinds[wr->opcode].wc_opcode;
    sqe->imm        = wr->imm_data;
    sqe->send_flags = (uint8_t)wr->send_flags;
    sqe->num_sge    = (uint8_t)wr->num_sge;
    sqe->finished   = 0;
    sqe->status     = IBV_WC_SUCCESS;
    sqe->inlined    = (wr->send_flags & IBV_SEND_INLINE) != 0;
    sqe->length     = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        if (!sqe->inlined) {
            sqe->sge[i] = wr->sg_list[i];
        }
        sqe->length += wr->sg_list[i].length;
    }
    take_remote(sqe, wr);
    sqe->psn     = qp->post_psn;
    sqe->packets = is_atomic(sqe->op) || sqe->length == 0 ? 1 : (uint32_t)((sqe->length + qp->mtu - 1) / qp->mtu);
    if (is_atomic(sqe->op) && (sqe->length != 8 || (qp->kind->odd_atomic && sqe->raddr % 8 != 0))) {
        return EINVAL;
    }
    return sqe->inlined ? take_inline(qp, sqe, wr) : 0;
}

/* Under the lock. */
int sc_post_one(struct sc_qp *qp, const struct ibv_send_wr *wr)
{
    struct sc_sqe *sqe;
    int            status;

    if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) || wr->num_sge < 0 ||
        (unsigned)wr->num_sge > qp->init.cap.max_send_sge || wr->opcode >= sizeof(kinds) / sizeof(*kinds) ||
        !kinds[wr->opcode].known) {
        return EINVAL;
    }
    if (qp->base.qp_type == IBV_QPT_UD) {
        return sc_ud_send(qp, wr);
    }
    if (qp->sq_tail - qp->sq_polled >= qp->sq_depth) {
        return ENOMEM;
    }
    if (qp->sq_head == qp->sq_tail) {
        qp->sq_base = qp->sq_tail;
    }
    sqe    = sc_sqe_at(qp, qp->sq_tail);
    status = fill(qp, sqe, wr);
    if (status == 0) {
        if (qp->state == IBV_QPS_RTS) {
            qp->post_psn = (qp->post_psn + sqe->packets) & SC_PSN_MASK;
        }
        qp->sq_tail++;
        softcard_counts.sends++;
        sc.packets_at_post = softcard_counts.packets;
        softcard_counts.signaled += (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    }
    return status;
}

int sc_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct sc_qp *qp     = (struct sc_qp *)base;
    int           status = sc_fault_verb(SC_VERB_POST_SEND);

    if (status != 0) {
        *bad = wr;
        return status;
    }
    sc_lock(&sc.lock);
    softcard_counts.send_doorbells++;
    for (; wr != NULL; wr = wr->next) {
        status = sc_post_one(qp, wr);
        if (status != 0) {
            *bad = wr;
            break;
        }
    }
    sc_post_ring(qp);
    sc_unlock(&sc.lock);
    return status;
}

/* What was posted goes its way. */
void sc_post_ring(struct sc_qp *qp)
{
    if (qp->state == IBV_QPS_ERR) {
        sc_qp_flush(qp);
    } else if (qp->base.qp_type == IBV_QPT_RC) {
        sc_requester_pump(qp);
    }
}
