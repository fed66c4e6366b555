/* SPDX-License-Identifier: BSD-3-Clause */

/* The half of a reliable connection that asks: sends, takes acknowledgements, sends again. */

#include <string.h>

#include "sc_card.h"

#define ACK_EVERY    64        /* packets of a long message */
#define PSN_WINDOW   (1 << 22) /* far less than half of the packet numbers under way */
#define VENDOR_RETRY 0x81

static int wants_answer(const struct sc_sqe *sqe)
{
    return sqe->op == SC_OP_READ || sqe->op == SC_OP_FETCH_ADD || sqe->op == SC_OP_CMP_SWAP;
}

int sc_requester_idle(const struct sc_qp *qp)
{
    return qp->sq_head == qp->sq_tail && qp->answer_head == qp->answer_tail;
}

/* The oldest one. */
static void complete(struct sc_qp *qp, const struct sc_sqe *sqe, enum ibv_wc_status status)
{
    struct sc_cq  *cq = (struct sc_cq *)qp->base.send_cq;
    struct ibv_wc *wc;

    if (status == IBV_WC_SUCCESS && !(sqe->send_flags & IBV_SEND_SIGNALED) && !qp->init.sq_sig_all) {
        return;
    }
    wc             = sc_cq_next(cq);
    wc->wr_id      = sqe->wr_id;
    wc->status     = status;
    wc->opcode     = sqe->wc_opcode;
    wc->vendor_err = status == IBV_WC_RETRY_EXC_ERR ? VENDOR_RETRY : 0;
    wc->byte_len   = (uint32_t)sqe->length;
    wc->imm_data   = 0;
    wc->qp_num     = qp->base.qp_num;
    wc->src_qp     = 0;
    wc->wc_flags   = 0;
    wc->pkey_index = 0;
    wc->slid       = 0;
    wc->sl = wc->dlid_path_bits = 0;
    sc_cq_push_send(cq, status != IBV_WC_SUCCESS, qp->sq_head);
}

/* The oldest one failed, and with it the queue pair. */
static void fail(struct sc_qp *qp, enum ibv_wc_status status)
{
    if (qp->sq_head != qp->sq_tail) {
        complete(qp, sc_sqe_at(qp, qp->sq_head), status);
        qp->sq_head++;
    }
    sc_qp_error(qp);
}

/* Start anew from the oldest packet that has no acknowledgement. */
static void rewind_to_una(struct sc_qp *qp)
{
    qp->sq_next     = qp->sq_head;
    qp->reads       = 0;
    qp->next_packet = 0;
    if (qp->sq_head != qp->sq_tail) {
        qp->next_packet = (qp->una_psn - sc_sqe_at(qp, qp->sq_head)->psn) & SC_PSN_MASK;
    }
}

static void retire_head(struct sc_qp *qp)
{
    const struct sc_sqe *sqe      = sc_sqe_at(qp, qp->sq_head);
    int                  was_sent = (int)(qp->sq_next - qp->sq_head) > 0;

    if (wants_answer(sqe) && was_sent && qp->reads > 0) {
        qp->reads--;
    }
    complete(qp, sqe, IBV_WC_SUCCESS);
    qp->sq_head++;
    if (!was_sent) {
        qp->sq_next     = qp->sq_head;
        qp->next_packet = 0;
    }
}

/* Everything before `psn` has arrived. 0: an answer among it is missing. */
static int advance(struct sc_qp *qp, uint32_t psn)
{
    while (qp->sq_head != qp->sq_tail) {
        struct sc_sqe *sqe  = sc_sqe_at(qp, qp->sq_head);
        int32_t        left = sc_psn_diff((sqe->psn + sqe->packets) & SC_PSN_MASK, psn);

        if (wants_answer(sqe)) {
            return sc_psn_diff(qp->una_psn, psn) >= 0;
        }
        if (left > 0) {
            if (sc_psn_diff(psn, qp->una_psn) > 0) {
                qp->una_psn = psn;
            }
            if (qp->sq_next == qp->sq_head) { /* sent before we went back */
                uint32_t there = (qp->una_psn - sqe->psn) & SC_PSN_MASK;

                qp->next_packet = there > qp->next_packet ? there : qp->next_packet;
            }
            return 1;
        }
        qp->una_psn = (sqe->psn + sqe->packets) & SC_PSN_MASK;
        retire_head(qp);
    }
    return 1;
}

unsigned sc_requester_retries(const struct sc_qp *qp)
{
    return qp->attr.retry_cnt - (qp->kind->slow_retry && qp->attr.retry_cnt > 0);
}

static uint64_t timeout_ns(const struct sc_qp *qp)
{
    if (qp->kind->slow_retry) {
        return 8192ull << (qp->attr.timeout > 16 ? qp->attr.timeout : 16);
    }
    return 4096ull << qp->attr.timeout;
}

static void moved_on(struct sc_qp *qp)
{
    qp->progress++;
    qp->gap_seen     = 0;
    qp->retries_left = qp->retries;
    qp->rnr_left     = qp->attr.rnr_retry;
}

static int is_patient_for_ever(const struct sc_qp *qp)
{
    return qp->kind->retry7_forever && qp->attr.retry_cnt == 7;
}

static void again(struct sc_qp *qp)
{
    if (qp->retries_left == 0 && !is_patient_for_ever(qp)) {
        fail(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    qp->retries_left -= qp->retries_left > 0;
    rewind_to_una(qp);
}

/* An answer is missing. All that come behind it say so; once is enough, the clock does the rest. */
static void gap(struct sc_qp *qp)
{
    if (!qp->gap_seen) {
        qp->gap_seen = 1;
        again(qp);
    }
}

static uint64_t rnr_ns(unsigned timer)
{
    static const uint32_t hundredths_ms[32] = {
        /* of the InfiniBand specification */
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };

    return hundredths_ms[timer & 31] * 10000ull;
}

static void not_ready(struct sc_qp *qp, unsigned timer)
{
    if (qp->attr.rnr_retry != 7) {
        if (qp->rnr_left == 0) {
            fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
            return;
        }
        qp->rnr_left--;
    }
    qp->rnr_until = sc_now() + rnr_ns(timer);
    qp->progress++;
    rewind_to_una(qp);
}

static void take_ack(struct sc_qp *qp, const struct sc_packet *packet)
{
    uint32_t una   = qp->una_psn;
    int      whole = advance(qp, packet->syndrome == SC_SYN_ACK ? (packet->psn + 1) & SC_PSN_MASK : packet->psn);

    if (qp->una_psn != una) {
        moved_on(qp);
    }
    switch (packet->syndrome) {
    case SC_SYN_RNR:
        not_ready(qp, packet->timer);
        return;
    case SC_SYN_SEQUENCE:
        again(qp);
        return;
    case SC_SYN_INVALID:
        fail(qp, IBV_WC_REM_INV_REQ_ERR);
        return;
    case SC_SYN_ACCESS:
        fail(qp, IBV_WC_REM_ACCESS_ERR);
        return;
    case SC_SYN_FAILED:
        fail(qp, IBV_WC_REM_OP_ERR);
        return;
    default:
        break;
    }
    if (!whole) {
        gap(qp);
    }
}

static enum ibv_wc_status no_own_memory(const struct sc_qp *qp)
{
    return qp->kind->own_memory != 0 ? (enum ibv_wc_status)qp->kind->own_memory : IBV_WC_LOC_PROT_ERR;
}

/* The answer to the oldest request, or a part of it. */
static void take_answer(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    struct sc_sqe *sqe;
    uint32_t       part;

    if (!advance(qp, packet->psn)) {
        gap(qp);
        return;
    }
    sqe = sc_sqe_at(qp, qp->sq_head);
    if (qp->sq_head == qp->sq_tail || !wants_answer(sqe) || qp->una_psn != packet->psn) {
        return;
    }
    part = (packet->psn - sqe->psn) & SC_PSN_MASK;
    if (packet->op == SC_OP_ATOMIC_RESP) {
        payload = (const uint8_t *)&packet->operand;
    }
    if (sc_scatter(qp->base.pd, sqe->sge, sqe->num_sge, (uint64_t)part * qp->mtu, payload,
                   packet->op == SC_OP_ATOMIC_RESP ? 8 : packet->bytes) < 0) {
        fail(qp, no_own_memory(qp));
        return;
    }
    qp->una_psn = (qp->una_psn + 1) & SC_PSN_MASK;
    moved_on(qp);
    if (part + 1 == sqe->packets) {
        sqe->finished = 1;
        retire_head(qp);
    }
}

void sc_requester_answer(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    if (qp->state != IBV_QPS_RTS || qp->sq_head == qp->sq_tail || sc_psn_diff(packet->psn, qp->una_psn) < 0 ||
        sc_psn_diff(packet->psn, qp->post_psn) >= 0) {
        return;
    }
    if (packet->op == SC_OP_ACK) {
        take_ack(qp, packet);
    } else {
        take_answer(qp, packet, payload);
    }
    sc_requester_pump(qp);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* `bytes` of the message at `offset`, in one piece: where they are, or else copied to `buffer`. */
static const void *piece(struct sc_qp *qp, struct sc_sqe *sqe, uint64_t offset, uint32_t bytes, uint8_t *buffer)
{
    const void *at;

    if (sqe->inlined) {
        return (const uint8_t *)sqe->sge + offset;
    }
    if (bytes == 0) {
        return buffer;
    }
    if (sqe->num_sge == 1) {
        at = sc_memory_local(qp->base.pd, sqe->sge->lkey, sqe->sge->addr + offset, bytes, 0);
    } else {
        at = sc_gather(qp->base.pd, sqe->sge, sqe->num_sge, offset, buffer, bytes) == 0 ? buffer : NULL;
    }
    if (at == NULL) {
        sqe->status = no_own_memory(qp);
    }
    return at;
}

static void step_over(struct sc_qp *qp, const struct sc_sqe *sqe)
{
    qp->next_packet++;
    if (wants_answer(sqe) || qp->next_packet >= sqe->packets) {
        qp->reads += (unsigned)wants_answer(sqe);
        qp->sq_next++;
        qp->next_packet = 0;
    }
}

static int send_data(struct sc_qp *qp, struct sc_sqe *sqe)
{
    uint8_t          buffer[SC_MTU_MAX];
    uint64_t         offset = (uint64_t)qp->next_packet * qp->mtu;
    uint32_t         bytes  = (uint32_t)(sqe->length - offset < qp->mtu ? sqe->length - offset : qp->mtu);
    unsigned         at = qp->sq_next, packet_number = qp->next_packet;
    int              last    = packet_number + 1 == sqe->packets;
    const void      *payload = piece(qp, sqe, offset, bytes, buffer);
    struct sc_packet packet  = {
         .bytes   = bytes,
         .op      = sqe->op,
         .sport   = (uint16_t)qp->sport,
         .dport   = (uint16_t)qp->dport,
         .flags   = (uint8_t)((packet_number == 0 ? SC_FIRST : 0) | (last ? SC_LAST : 0) |
                           (sqe->imm_given && last ? SC_IMM : 0) |
                           (last || packet_number % ACK_EVERY == ACK_EVERY - 1 ? SC_ACK_REQ : 0) |
                           (sqe->send_flags & IBV_SEND_SOLICITED && last ? SC_SOLICITED : 0)),
         .src_qpn = qp->base.qp_num,
         .dst_qpn = qp->attr.dest_qp_num,
         .psn     = (sqe->psn + packet_number) & SC_PSN_MASK,
         .imm     = sqe->imm,
         .rkey    = sqe->rkey,
         .raddr   = sqe->raddr + offset,
         .length  = sqe->length - offset,
    };

    if (payload == NULL) {
        return 0;
    }
    step_over(qp, sqe); /* before: within one process the acknowledgement comes at once */
    if (!sc_net_send(qp, &packet, payload)) {
        qp->sq_next     = at;
        qp->next_packet = packet_number;
        return 0;
    }
    return 1;
}

static int send_request(struct sc_qp *qp, struct sc_sqe *sqe)
{
    uint64_t         offset = (uint64_t)qp->next_packet * qp->mtu;
    unsigned         at = qp->sq_next, packet_number = qp->next_packet;
    struct sc_packet packet = {
        .op      = sqe->op,
        .flags   = SC_FIRST | SC_LAST,
        .sport   = (uint16_t)qp->sport,
        .dport   = (uint16_t)qp->dport,
        .src_qpn = qp->base.qp_num,
        .dst_qpn = qp->attr.dest_qp_num,
        .psn     = (sqe->psn + packet_number) & SC_PSN_MASK,
        .rkey    = sqe->rkey,
        .raddr   = sqe->raddr + offset,
        .length  = sqe->length - offset,
        .operand = sqe->operand,
        .swap    = sqe->swap,
    };

    if (qp->reads >= qp->attr.max_rd_atomic) {
        return 0;
    }
    step_over(qp, sqe);
    if (!sc_net_send(qp, &packet, NULL)) {
        qp->sq_next     = at;
        qp->next_packet = packet_number;
        qp->reads--;
        return 0;
    }
    return 1;
}

/* One packet of the next request. 0: not now. */
static int send_next(struct sc_qp *qp)
{
    struct sc_sqe *sqe = sc_sqe_at(qp, qp->sq_next);

    if (sc_psn_diff((sqe->psn + qp->next_packet) & SC_PSN_MASK, qp->una_psn) > PSN_WINDOW ||
        ((sqe->send_flags & IBV_SEND_FENCE) && qp->reads > 0)) {
        return 0;
    }
    if (sqe->status != IBV_WC_SUCCESS) {
        if (qp->sq_head == qp->sq_next) {
            fail(qp, (enum ibv_wc_status)sqe->status);
        }
        return 0;
    }
    if (wants_answer(sqe)) {
        return send_request(qp, sqe);
    }
    return send_data(qp, sqe) || sqe->status != IBV_WC_SUCCESS; /* once more, to fail */
}

/* Soft-RoCE: its net device refuses the packet, and that is the end of the queue pair. */
static int own_port_kills(const struct sc_qp *qp)
{
    return qp->kind->port_kills != 0 && qp->state == IBV_QPS_RTS && qp->sport != SC_NO_PORT &&
           (__atomic_load_n(&sc.fabric->port[qp->sport].trouble, __ATOMIC_RELAXED) & SC_PORT_DOWN);
}

void sc_requester_pump(struct sc_qp *qp)
{
    if (qp->pumping) {
        return;
    }
    qp->pumping = 1;
    if (qp->sq_next != qp->sq_tail && own_port_kills(qp)) {
        fail(qp, (enum ibv_wc_status)qp->kind->port_kills);
    }
    while (qp->state == IBV_QPS_RTS && qp->sq_next != qp->sq_tail && qp->rnr_until == 0 && send_next(qp)) {
    }
    qp->pumping = 0;
    if (!sc_requester_idle(qp)) {
        sc_nic_busy(qp);
    }
}

void sc_requester_tick(struct sc_qp *qp, uint64_t now)
{
    if (qp->state != IBV_QPS_RTS || qp->sq_head == qp->sq_tail) {
        return;
    }
    if (qp->rnr_until != 0) {
        if (now >= qp->rnr_until) {
            qp->rnr_until = 0;
            sc_requester_pump(qp);
        }
    } else if (qp->progress != qp->progress_seen || qp->since == 0) {
        qp->progress_seen = qp->progress;
        qp->since         = now;
    } else if (qp->attr.timeout != 0 && now - qp->since >= timeout_ns(qp)) {
        qp->since = now;
        again(qp);
        sc_requester_pump(qp);
    }
}
