/* SPDX-License-Identifier: BSD-3-Clause */

/* Datagrams, and addresses. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

#define GRH_BYTES 40

struct sc_ah {
    struct ibv_ah base;
    unsigned      sport, dport;
    int           global;
};

/* Which port an address means: by the GID's last byte where there is one, else by LID. */
unsigned sc_av_port(const struct ibv_ah_attr *attr)
{
    unsigned number = attr->is_global ? attr->grh.dgid.raw[15] : attr->dlid;

    return number >= 1 && number <= SC_PORTS ? number - 1 : SC_NO_PORT;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct sc_ah *ah;
    int           status = sc_fault_verb(SC_VERB_CREATE_AH);

    if (status != 0) {
        errno = status;
        return NULL;
    }
    if (sc_context_port(sc_context_of(pd->context), attr->port_num) == SC_NO_PORT) {
        errno = EINVAL;
        return NULL;
    }
    ah = calloc(1, sizeof(*ah));
    if (ah != NULL) {
        sc_count(SC_OBJECT_AH, 1);
        ah->base.context = pd->context;
        ah->base.pd      = pd;
        ah->sport        = sc_context_port(sc_context_of(pd->context), attr->port_num);
        ah->dport        = sc_av_port(attr);
        ah->global       = attr->is_global;
    }
    return ah == NULL ? NULL : &ah->base;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    sc_count(SC_OBJECT_AH, -1);
    free(ah);
    return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *attr)
{
    (void)context, (void)grh;
    memset(attr, 0, sizeof(*attr));
    attr->dlid     = wc->slid;
    attr->port_num = port;
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;

    (void)ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);
    return ibv_create_ah(pd, &attr);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return EOPNOTSUPP;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return ibv_attach_mcast(qp, gid, lid);
}

static void complete_send(struct sc_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status, uint32_t length)
{
    struct sc_cq  *cq = (struct sc_cq *)qp->base.send_cq;
    struct ibv_wc *wc;

    if (status == IBV_WC_SUCCESS && !(wr->send_flags & IBV_SEND_SIGNALED) && !qp->init.sq_sig_all) {
        return;
    }
    wc = sc_cq_next(cq);
    memset(wc, 0, sizeof(*wc));
    wc->wr_id    = wr->wr_id;
    wc->status   = status;
    wc->opcode   = IBV_WC_SEND;
    wc->byte_len = length;
    wc->qp_num   = qp->base.qp_num;
    sc_cq_push(cq, status != IBV_WC_SUCCESS);
}

static int collect(struct sc_qp *qp, const struct ibv_send_wr *wr, uint8_t *buffer, uint32_t length)
{
    if (!(wr->send_flags & IBV_SEND_INLINE)) {
        return sc_gather(qp->base.pd, wr->sg_list, (unsigned)wr->num_sge, 0, buffer, length);
    }
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(buffer, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        buffer += wr->sg_list[i].length;
    }
    return 0;
}

/* It is on its way, or lost: either is success. One longer than the MTU is lost. */
int sc_ud_send(struct sc_qp *qp, const struct ibv_send_wr *wr)
{
    struct sc_ah    *ah = (struct sc_ah *)wr->wr.ud.ah;
    uint8_t          buffer[SC_MTU_MAX];
    struct sc_packet packet = {
        .op      = SC_OP_DATAGRAM,
        .src_qpn = qp->base.qp_num,
        .dst_qpn = wr->wr.ud.remote_qpn,
        .rkey    = wr->wr.ud.remote_qkey,
        .imm     = wr->imm_data,
        .flags   = (uint8_t)((wr->opcode == IBV_WR_SEND_WITH_IMM ? SC_IMM : 0) |
                           (wr->send_flags & IBV_SEND_SOLICITED ? SC_SOLICITED : 0)),
    };
    uint64_t length = 0;

    if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
        return EINVAL;
    }
    if (qp->state == IBV_QPS_ERR) {
        complete_send(qp, wr, IBV_WC_WR_FLUSH_ERR, 0);
        return 0;
    }
    for (int i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    packet.bytes = (uint32_t)length;
    packet.sport = (uint16_t)ah->sport;
    packet.dport = (uint16_t)ah->dport;
    packet.flags |= ah->global ? SC_GRH : 0;
    if (qp->kind->port_kills && (sc.fabric->port[ah->sport].trouble & SC_PORT_DOWN)) {
        complete_send(qp, wr, (enum ibv_wc_status)qp->kind->port_kills, 0);
        sc_qp_error(qp);
        return 0;
    }
    if (length <= SC_MTU_MAX) {
        if (collect(qp, wr, buffer, packet.bytes) != 0) {
            complete_send(qp, wr, IBV_WC_LOC_PROT_ERR, 0);
            sc_qp_error(qp);
            return 0;
        }
        (void)sc_net_send(qp, &packet, buffer);
        sc_net_unblock(qp); /* no room is a loss, not something to wait for */
    }
    complete_send(qp, wr, IBV_WC_SUCCESS, packet.bytes);
    return 0;
}

static void fill_grh(uint8_t *grh, const struct sc_packet *packet)
{
    memset(grh, 0, GRH_BYTES);
    grh[0] = 0x60;
    grh[8] = grh[24] = 0xfe;
    grh[9] = grh[25] = 0x80;
    grh[16] = grh[32] = 2;
    grh[23]           = (uint8_t)(packet->sport + 1);
    grh[39]           = (uint8_t)(packet->dport + 1);
}

void sc_ud_receive(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    struct sc_cq  *cq = (struct sc_cq *)qp->base.recv_cq;
    uint8_t        grh[GRH_BYTES];
    struct ibv_wc *wc;

    if (qp->base.qp_type != IBV_QPT_UD || packet->rkey != qp->attr.qkey ||
        (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) || !sc_rq_take(qp)) {
        return;
    }
    fill_grh(grh, packet);
    qp->have_rqe = 0;
    wc           = sc_cq_next(cq);
    memset(wc, 0, sizeof(*wc));
    wc->wr_id = qp->rqe.wr_id;
    if (sc_scatter(qp->base.pd, qp->rqe.sge, qp->rqe.num_sge, 0, grh, GRH_BYTES) != GRH_BYTES ||
        sc_scatter(qp->base.pd, qp->rqe.sge, qp->rqe.num_sge, GRH_BYTES, payload, packet->bytes) !=
            (int64_t)packet->bytes) {
        wc->status = IBV_WC_LOC_LEN_ERR;
    }
    wc->opcode   = IBV_WC_RECV;
    wc->byte_len = packet->bytes + GRH_BYTES;
    wc->imm_data = packet->imm;
    wc->qp_num   = qp->base.qp_num;
    wc->src_qp   = packet->src_qpn;
    wc->slid     = (uint16_t)(packet->sport + 1);
    wc->wc_flags = (packet->flags & SC_GRH ? IBV_WC_GRH : 0u) | (packet->flags & SC_IMM ? IBV_WC_WITH_IMM : 0u);
    sc_cq_push(cq, packet->flags & SC_SOLICITED || wc->status != IBV_WC_SUCCESS);
}
