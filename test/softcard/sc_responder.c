/* SPDX-License-Identifier: BSD-3-Clause */

/* The half of a reliable connection that executes and answers. */

#include <string.h>

#include "sc_card.h"

static struct sc_answer *answer_at(const struct sc_qp *qp, unsigned index)
{
    return &qp->said->answer[SC_ANSWERS - 1 - index % SC_ANSWERS];
}

static struct sc_answer *add_answer(struct sc_qp *qp, uint8_t op, uint8_t syndrome, uint32_t psn)
{
    struct sc_answer *answer;

    if (qp->answer_tail - qp->answer_head >= SC_ANSWERS) {
        return NULL;
    }
    if (qp->answer_head == qp->answer_tail) {
        qp->answer_head = qp->answer_tail = 0;
    }
    answer  = answer_at(qp, qp->answer_tail++);
    *answer = (struct sc_answer){.op = op, .syndrome = syndrome, .psn = psn, .packets = 1};
    return answer;
}

static void want_ack(struct sc_qp *qp)
{
    if (!qp->ack_due) {
        qp->ack_due  = 1;
        qp->ack_next = sc.ack_list;
        sc.ack_list  = qp;
    }
}

/* Not done, and why. */
static void refuse(struct sc_qp *qp, enum sc_syndrome syndrome)
{
    (void)add_answer(qp, SC_OP_ACK, (uint8_t)syndrome, qp->epsn);
    sc_responder_pump(qp);
}

static void refuse_and_die(struct sc_qp *qp, enum sc_syndrome syndrome, enum ibv_event_type event)
{
    refuse(qp, syndrome);
    sc_qp_error(qp);
    sc_qp_event(qp, event);
}

static void complete_recv(struct sc_qp *qp, const struct sc_packet *packet, enum ibv_wc_status status,
                          enum ibv_wc_opcode opcode, uint64_t length)
{
    struct sc_cq  *cq = (struct sc_cq *)qp->base.recv_cq;
    struct ibv_wc *wc = sc_cq_next(cq);

    qp->have_rqe   = 0;
    wc->wr_id      = qp->rqe.wr_id;
    wc->status     = status;
    wc->opcode     = opcode;
    wc->vendor_err = 0;
    wc->byte_len   = (uint32_t)length;
    wc->imm_data   = packet->imm;
    wc->qp_num     = qp->base.qp_num;
    wc->src_qp     = packet->src_qpn;
    wc->wc_flags   = packet->flags & SC_IMM ? IBV_WC_WITH_IMM : 0;
    wc->pkey_index = 0;
    wc->slid       = (uint16_t)(packet->sport + 1);
    wc->sl = wc->dlid_path_bits = 0;
    sc_cq_push(cq, packet->flags & SC_SOLICITED || status != IBV_WC_SUCCESS);
}

static int have_receive(struct sc_qp *qp)
{
    if (qp->have_rqe || sc_rq_take(qp)) {
        return 1;
    }
    qp->nak_sent = 1; /* what follows is out of order, and known to be */
    refuse(qp, SC_SYN_RNR);
    return 0;
}

static void executed(struct sc_qp *qp, const struct sc_packet *packet, uint32_t packets)
{
    qp->nak_sent = 0;
    qp->epsn     = (qp->epsn + packets) & SC_PSN_MASK;
    if (packet->flags & SC_ACK_REQ) {
        want_ack(qp);
    }
}

static void does_not_fit(struct sc_qp *qp, const struct sc_packet *packet, int no_memory)
{
    enum ibv_wc_status status = no_memory ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR;

    complete_recv(qp, packet, qp->kind->long_message ? IBV_WC_LOC_QP_OP_ERR : status, IBV_WC_RECV, 0);
    refuse(qp, no_memory || qp->kind->long_message ? SC_SYN_FAILED : SC_SYN_INVALID);
    sc_qp_error(qp);
}

static int permits(struct sc_qp *qp, int access)
{
    return (qp->attr.qp_access_flags & (unsigned)access) != 0;
}

/* The memory is not there for him; or nobody may, over this queue pair. */
static void refuse_access(struct sc_qp *qp, int access)
{
    if (!permits(qp, access) && qp->kind->no_access) {
        refuse_and_die(qp, SC_SYN_INVALID, IBV_EVENT_QP_REQ_ERR);
    } else {
        refuse_and_die(qp, SC_SYN_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
    }
}

static void execute_send(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    int64_t placed;

    if (packet->flags & SC_FIRST) {
        if (!have_receive(qp)) {
            return;
        }
        qp->offset     = 0;
        qp->in_message = 1;
    } else if (!qp->in_message) {
        refuse_and_die(qp, SC_SYN_INVALID, IBV_EVENT_QP_REQ_ERR);
        return;
    }
    placed = sc_scatter(qp->base.pd, qp->rqe.sge, qp->rqe.num_sge, qp->offset, payload, packet->bytes);
    if (placed != (int64_t)packet->bytes) {
        does_not_fit(qp, packet, placed < 0);
        return;
    }
    qp->offset += packet->bytes;
    executed(qp, packet, 1);
    if (packet->flags & SC_LAST) {
        qp->in_message = 0;
        complete_recv(qp, packet, IBV_WC_SUCCESS, IBV_WC_RECV, qp->offset);
    }
}

static void execute_write(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    uint8_t *to = sc_memory_remote(qp->base.pd, packet->rkey, packet->raddr,
                                   packet->flags & SC_FIRST ? packet->length : packet->bytes, IBV_ACCESS_REMOTE_WRITE);

    if (packet->bytes > 0 && (to == NULL || !permits(qp, IBV_ACCESS_REMOTE_WRITE))) {
        refuse_access(qp, IBV_ACCESS_REMOTE_WRITE);
        return;
    }
    if ((packet->flags & SC_IMM) && !have_receive(qp)) {
        return;
    }
    if (packet->bytes > 0) {
        memcpy(to, payload, packet->bytes);
    }
    qp->offset = (packet->flags & SC_FIRST ? 0 : qp->offset) + packet->bytes;
    executed(qp, packet, 1);
    if (packet->flags & SC_IMM) {
        complete_recv(qp, packet, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, qp->offset);
    }
}

static int read_is_allowed(struct sc_qp *qp, const struct sc_packet *packet)
{
    return packet->length == 0 ||
           (permits(qp, IBV_ACCESS_REMOTE_READ) &&
            sc_memory_remote(qp->base.pd, packet->rkey, packet->raddr, packet->length, IBV_ACCESS_REMOTE_READ) != NULL);
}

static uint32_t packets_of(const struct sc_qp *qp, uint64_t length)
{
    return length == 0 ? 1 : (uint32_t)((length + qp->mtu - 1) / qp->mtu);
}

/* 0: no room for another answer; the request counts as lost. */
static int answer_read(struct sc_qp *qp, const struct sc_packet *packet)
{
    struct sc_answer *answer = add_answer(qp, SC_OP_READ_RESP, SC_SYN_ACK, packet->psn);

    if (answer == NULL) {
        return 0;
    }
    answer->packets = packets_of(qp, packet->length);
    answer->rkey    = packet->rkey;
    answer->raddr   = packet->raddr;
    answer->length  = packet->length;
    return 1;
}

static void execute_read(struct sc_qp *qp, const struct sc_packet *packet)
{
    if (!read_is_allowed(qp, packet)) {
        refuse_access(qp, IBV_ACCESS_REMOTE_READ);
    } else if (answer_read(qp, packet)) {
        executed(qp, packet, packets_of(qp, packet->length));
        sc_responder_pump(qp);
    }
}

static void answer_atomic(struct sc_qp *qp, uint32_t psn, uint64_t value)
{
    struct sc_answer *answer = add_answer(qp, SC_OP_ATOMIC_RESP, SC_SYN_ACK, psn);

    if (answer != NULL) {
        answer->value = value;
        sc_responder_pump(qp);
    }
}

static void execute_atomic(struct sc_qp *qp, const struct sc_packet *packet)
{
    uint64_t *word = sc_memory_remote(qp->base.pd, packet->rkey, packet->raddr, 8, IBV_ACCESS_REMOTE_ATOMIC);
    uint64_t  old;

    if (word == NULL || !(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC)) {
        refuse_and_die(qp, SC_SYN_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
        return;
    }
    if (packet->raddr % 8 != 0) {
        refuse_and_die(qp, SC_SYN_INVALID, IBV_EVENT_QP_REQ_ERR);
        return;
    }
    if (packet->op == SC_OP_FETCH_ADD) {
        old = __atomic_fetch_add(word, packet->operand, __ATOMIC_SEQ_CST);
    } else {
        old = packet->operand;
        (void)__atomic_compare_exchange_n(word, &old, packet->swap, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    qp->said->atomic[qp->atomic_next++ % (2 * SC_RD_MAX)] = (struct sc_atomic_done){packet->psn, old};
    executed(qp, packet, 1);
    answer_atomic(qp, packet->psn, old);
}

/* Executed before: say so again, and read again; nothing else. */
static void repeat(struct sc_qp *qp, const struct sc_packet *packet)
{
    if (packet->op == SC_OP_SEND || packet->op == SC_OP_WRITE) {
        want_ack(qp);
        return;
    }
    while (qp->answer_tail != qp->answer_head &&
           sc_psn_diff(answer_at(qp, qp->answer_tail - 1)->psn, packet->psn) >= 0) {
        qp->answer_tail--; /* they will be asked for again */
    }
    if (qp->answer_tail != qp->answer_head) { /* the one before: no farther than to here */
        struct sc_answer *before = answer_at(qp, qp->answer_tail - 1);
        uint32_t          here   = (packet->psn - before->psn) & SC_PSN_MASK;

        before->packets = here < before->packets ? here : before->packets;
    }
    if (packet->op == SC_OP_READ) {
        if (read_is_allowed(qp, packet) && answer_read(qp, packet)) {
            sc_responder_pump(qp);
        }
        return;
    }
    for (unsigned i = 0; i < 2 * SC_RD_MAX && i < qp->atomic_next; i++) {
        if (qp->said->atomic[i].psn == packet->psn) {
            answer_atomic(qp, packet->psn, qp->said->atomic[i].value);
            return;
        }
    }
}

void sc_responder_request(struct sc_qp *qp, const struct sc_packet *packet, const uint8_t *payload)
{
    int32_t ahead = sc_psn_diff(packet->psn, qp->epsn);

    if (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) {
        return;
    }
    if (ahead > 0) {
        if (!qp->nak_sent) {
            qp->nak_sent = 1;
            refuse(qp, SC_SYN_SEQUENCE);
        }
        return;
    }
    if (ahead < 0) {
        repeat(qp, packet);
        return;
    }
    switch (packet->op) {
    case SC_OP_SEND:
        execute_send(qp, packet, payload);
        break;
    case SC_OP_WRITE:
        execute_write(qp, packet, payload);
        break;
    case SC_OP_READ:
        execute_read(qp, packet);
        break;
    default:
        execute_atomic(qp, packet);
        break;
    }
}

/* Acknowledgements that became due since the last time: one for each queue pair. */
void sc_responder_acks(void)
{
    struct sc_qp *qp;

    while ((qp = sc.ack_list) != NULL) {
        sc.ack_list = qp->ack_next;
        qp->ack_due = 0;
        if (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS) {
            (void)add_answer(qp, SC_OP_ACK, SC_SYN_ACK, (qp->epsn - 1) & SC_PSN_MASK);
            sc_responder_pump(qp);
        }
    }
}

/* One packet of the oldest answer. 0: no room. */
static int say(struct sc_qp *qp, struct sc_answer *answer)
{
    struct sc_packet packet = {
        .op       = answer->op,
        .syndrome = answer->syndrome,
        .timer    = qp->attr.min_rnr_timer,
        .sport    = (uint16_t)qp->sport,
        .dport    = (uint16_t)qp->dport,
        .src_qpn  = qp->base.qp_num,
        .dst_qpn  = qp->attr.dest_qp_num,
        .psn      = (answer->psn + answer->sent) & SC_PSN_MASK,
        .operand  = answer->value,
    };
    uint64_t    offset  = (uint64_t)answer->sent * qp->mtu;
    const void *payload = NULL;

    if (answer->op == SC_OP_READ_RESP && answer->length > 0) {
        packet.bytes = (uint32_t)(answer->length - offset < qp->mtu ? answer->length - offset : qp->mtu);
        payload      = sc_memory_remote(qp->base.pd, answer->rkey, answer->raddr + offset, packet.bytes,
                                        IBV_ACCESS_REMOTE_READ);
        if (payload == NULL) { /* not any more */
            packet.op       = SC_OP_ACK;
            packet.syndrome = SC_SYN_ACCESS;
            packet.bytes    = 0;
        }
    }
    answer->sent++; /* before: within one process the next request comes at once */
    if (!sc_net_send(qp, &packet, payload)) {
        answer->sent--;
        return 0;
    }
    return 1;
}

void sc_responder_pump(struct sc_qp *qp)
{
    if (qp->answering) {
        return;
    }
    qp->answering = 1;
    while (qp->answer_head != qp->answer_tail) {
        struct sc_answer *answer = answer_at(qp, qp->answer_head);

        if (answer->sent >= answer->packets) {
            qp->answer_head++;
        } else if (!say(qp, answer)) {
            sc_nic_busy(qp);
            break;
        }
    }
    qp->answering = 0;
}
