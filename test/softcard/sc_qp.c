/* SPDX-License-Identifier: BSD-3-Clause */

/* Queue pairs: their life and their states. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

#define LINE        64
#define LINES(size) (((size) + LINE - 1) / LINE * LINE)
#define LEAD        LINES(sizeof(struct sc_said)) /* of the memory, before the queue pair */

void sc_qp_event(struct sc_qp *qp, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type, .element.qp = &qp->base};

    sc_event_raise(qp->base.context, &event);
}

static void flush_one(struct sc_cq *cq, const struct sc_qp *qp, uint64_t wr_id, enum ibv_wc_opcode opcode, int is_send)
{
    struct ibv_wc *wc = sc_cq_next(cq);

    memset(wc, 0, sizeof(*wc));
    wc->wr_id      = wr_id;
    wc->status     = IBV_WC_WR_FLUSH_ERR;
    wc->opcode     = opcode;
    wc->vendor_err = qp->kind->flush_vendor;
    wc->qp_num     = qp->base.qp_num;
    if (is_send) {
        sc_cq_push_send(cq, 1, qp->sq_head);
    } else {
        sc_cq_push(cq, 1);
    }
}

/* Everything that was posted and has not completed. */
void sc_qp_flush(struct sc_qp *qp)
{
    struct sc_cq *send_cq = (struct sc_cq *)qp->base.send_cq, *recv_cq = (struct sc_cq *)qp->base.recv_cq;

    for (; qp->sq_head != qp->sq_tail; qp->sq_head++) {
        const struct sc_sqe *sqe = sc_sqe_at(qp, qp->sq_head);

        flush_one(send_cq, qp, sqe->wr_id, sqe->wc_opcode, 1);
    }
    qp->sq_next     = qp->sq_tail;
    qp->next_packet = 0;
    qp->una_psn     = qp->post_psn;
    qp->reads       = 0;
    if (qp->have_rqe) {
        qp->have_rqe = 0;
        flush_one(recv_cq, qp, qp->rqe.wr_id, IBV_WC_RECV, 0);
    }
    if (qp->base.srq == NULL) {
        for (; qp->rq.head != qp->rq.tail; qp->rq.head++) {
            flush_one(recv_cq, qp, sc_rqe_at(&qp->rq, qp->rq.head)->wr_id, IBV_WC_RECV, 0);
        }
    }
}

void sc_qp_error(struct sc_qp *qp)
{
    if (qp->state == IBV_QPS_ERR) {
        return;
    }
    qp->state       = IBV_QPS_ERR;
    qp->answer_head = qp->answer_tail;
    qp->in_message  = 0;
    sc_qp_flush(qp);
    if (qp->base.srq != NULL && qp->kind->last_wqe != SC_LAST_WQE_NONE) {
        sc_qp_event(qp, qp->kind->last_wqe == SC_LAST_WQE_FATAL ? IBV_EVENT_QP_FATAL : IBV_EVENT_QP_LAST_WQE_REACHED);
    }
}

static void forget_completions(struct sc_qp *qp)
{
    sc_cq_forget((struct sc_cq *)qp->base.send_cq, qp->base.qp_num);
    sc_cq_forget((struct sc_cq *)qp->base.recv_cq, qp->base.qp_num);
}

static void reset(struct sc_qp *qp)
{
    if (qp->kind->forgets == SC_FORGETS_RESET) {
        forget_completions(qp);
    }
    qp->sq_head = qp->sq_next = qp->sq_tail = qp->sq_polled = 0;
    qp->rq.head = qp->rq.tail = 0;
    qp->answer_head = qp->answer_tail = 0;
    qp->next_packet                   = 0;
    qp->reads                         = 0;
    qp->have_rqe = qp->in_message = qp->nak_sent = 0;
    qp->rnr_until                                = 0;
    qp->atomic_next                              = 0;
}

static int check_caps(const struct sc_personality *kind, const struct ibv_qp_init_attr *attr)
{
    const struct ibv_qp_cap *cap = &attr->cap;

    return (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD) || cap->max_send_wr > 32768 ||
           cap->max_recv_wr > 32768 || cap->max_send_sge > SC_SGE_MAX || cap->max_recv_sge > SC_SGE_MAX ||
           cap->max_inline_data > kind->max_inline || (attr->qp_type == IBV_QPT_RC && kind->no_rc);
}

static void *memory_of(struct sc_qp *qp)
{
    return (char *)qp - LEAD;
}

static struct sc_qp *alloc_qp(const struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_cap cap    = attr->cap;
    unsigned          depth  = cap.max_send_wr > 0 ? cap.max_send_wr : 1;
    unsigned          sges   = cap.max_send_sge > 0 ? cap.max_send_sge : 1;
    unsigned          inl    = cap.max_inline_data > 64 ? cap.max_inline_data : 64;
    size_t            pieces = sges * sizeof(struct ibv_sge);
    size_t            stride = LINES(sizeof(struct sc_sqe) + (pieces > inl ? pieces : inl));
    char             *memory = aligned_alloc(LINE, LEAD + LINES(sizeof(struct sc_qp)) + sc_pow2(depth) * stride);
    struct sc_qp     *qp     = (struct sc_qp *)(void *)(memory + LEAD);

    if (memory == NULL) {
        return NULL;
    }
    memset(qp, 0, sizeof(*qp));
    qp->said                     = (struct sc_said *)(void *)((char *)qp - sizeof(*qp->said));
    qp->sq                       = (uint8_t *)qp + LINES(sizeof(*qp));
    qp->sq_depth                 = depth;
    qp->sq_size                  = sc_pow2(depth);
    qp->sq_stride                = (unsigned)stride;
    qp->init                     = *attr;
    qp->init.cap.max_send_sge    = sges;
    qp->init.cap.max_inline_data = inl;
    return qp;
}

static int make_receives(struct sc_qp *qp)
{
    if (qp->base.srq != NULL) {
        qp->rqp = &((struct sc_srq *)qp->base.srq)->rq;
        return 0;
    }
    qp->rqp = &qp->rq;
    return sc_rq_init(&qp->rq, qp->init.cap.max_recv_wr, qp->init.cap.max_recv_sge);
}

static void free_qp(struct sc_qp *qp)
{
    sc_rq_free(&qp->rq);
    sc_wr_free(qp);
    free(memory_of(qp));
}

/* A number that has not been used for long, and says where it lives. */
static int enter(struct sc_qp *qp)
{
    for (unsigned i = 0; i < SC_QP_MAX; i++) {
        uint32_t low = ++sc.me->next_qpn % SC_QP_MAX;

        if (sc.qp[low] == NULL) {
            qp->base.qp_num = ((uint32_t)sc.place + 1) << 16 | low;
            sc.qp[low]      = qp;
            sc_count(SC_OBJECT_QP, 1);
            return 0;
        }
    }
    return ENOMEM;
}

struct ibv_qp *sc_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    const struct sc_personality *kind = sc_context_of(pd->context)->device->kind;
    struct sc_qp                *qp;
    int                          status = sc_fault_verb(SC_VERB_CREATE_QP);

    if (status != 0 || check_caps(kind, attr)) {
        errno = status != 0 ? status : EINVAL;
        return NULL;
    }
    qp = alloc_qp(attr);
    if (qp == NULL) {
        return NULL;
    }
    qp->base  = (struct ibv_qp){.context    = pd->context,
                                .qp_context = attr->qp_context,
                                .pd         = pd,
                                .send_cq    = attr->send_cq,
                                .recv_cq    = attr->recv_cq,
                                .srq        = attr->srq,
                                .state      = IBV_QPS_RESET,
                                .qp_type    = attr->qp_type};
    qp->kind  = kind;
    qp->state = IBV_QPS_RESET;
    qp->sport = qp->dport = SC_NO_PORT;
    status                = make_receives(qp);
    if (status == 0) {
        sc_lock(&sc.lock);
        status = enter(qp);
        sc_unlock(&sc.lock);
    }
    if (status != 0) {
        free_qp(qp);
        errno = status;
        return NULL;
    }
    attr->cap = qp->init.cap;
    return &qp->base;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return sc_qp_new(pd, attr);
}

struct ibv_qp *sc_qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp_init_attr plain = {.qp_context = attr->qp_context,
                                     .send_cq    = attr->send_cq,
                                     .recv_cq    = attr->recv_cq,
                                     .srq        = attr->srq,
                                     .cap        = attr->cap,
                                     .qp_type    = attr->qp_type,
                                     .sq_sig_all = attr->sq_sig_all};
    struct ibv_qp          *qp;

    if ((attr->comp_mask & ~(unsigned)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) ||
        !(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || sc_context_of(context)->device->kind->no_wr_api) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    qp = sc_qp_new(attr->pd, &plain);
    if (qp != NULL) {
        attr->cap = plain.cap;
        if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && sc_wr_init((struct sc_qp *)qp) != 0) {
            ibv_destroy_qp(qp);
            errno = ENOMEM;
            return NULL;
        }
    }
    return qp;
}

static void unlink_from(struct sc_qp *qp)
{
    struct sc_qp **link;

    for (link = &sc.busy; *link != NULL; link = &(*link)->busy_next) {
        if (*link == qp) {
            *link = qp->busy_next;
            break;
        }
    }
    for (link = &sc.ack_list; *link != NULL; link = &(*link)->ack_next) {
        if (*link == qp) {
            *link = qp->ack_next;
            break;
        }
    }
    __atomic_fetch_sub(&sc.blocked, qp->blocked, __ATOMIC_RELAXED);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
    struct sc_qp *qp = (struct sc_qp *)base;

    sc_lock(&sc.lock);
    unlink_from(qp);
    sc.qp[base->qp_num % SC_QP_MAX] = NULL;
    sc_count(SC_OBJECT_QP, -1);
    if (qp->kind->forgets != SC_FORGETS_NEVER) {
        forget_completions(qp);
    }
    sc_event_forget(base->context, base);
    sc_unlock(&sc.lock);
    sc_event_settle(&base->mutex, &base->cond, &qp->told, &base->events_completed);
    free_qp(qp);
    return 0;
}

static void take_attributes(struct sc_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr *mine = &qp->attr;

#define TAKE(bit, field)           \
    if (mask & (bit)) {            \
        mine->field = attr->field; \
    }
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags)
    TAKE(IBV_QP_PKEY_INDEX, pkey_index)
    TAKE(IBV_QP_PORT, port_num)
    TAKE(IBV_QP_QKEY, qkey)
    TAKE(IBV_QP_AV, ah_attr)
    TAKE(IBV_QP_PATH_MTU, path_mtu)
    TAKE(IBV_QP_TIMEOUT, timeout)
    TAKE(IBV_QP_RETRY_CNT, retry_cnt)
    TAKE(IBV_QP_RNR_RETRY, rnr_retry)
    TAKE(IBV_QP_RQ_PSN, rq_psn)
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic)
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer)
    TAKE(IBV_QP_SQ_PSN, sq_psn)
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
    TAKE(IBV_QP_DEST_QPN, dest_qp_num)
#undef TAKE
    if (mask & IBV_QP_PORT) {
        qp->sport = sc_context_port(sc_context_of(qp->base.context), attr->port_num);
    }
    if (mask & IBV_QP_AV) {
        qp->dport = sc_av_port(&attr->ah_attr);
    }
    if (mask & IBV_QP_PATH_MTU) {
        qp->mtu = 128u << attr->path_mtu;
    }
    if (mask & IBV_QP_RQ_PSN) {
        qp->epsn = attr->rq_psn & SC_PSN_MASK;
    }
    if (mask & IBV_QP_SQ_PSN) {
        qp->post_psn = qp->una_psn = attr->sq_psn & SC_PSN_MASK;
    }
    qp->retries = qp->retries_left = sc_requester_retries(qp);
    qp->rnr_left                   = mine->rnr_retry;
}

/* What the step needs, of RC; UD needs less. */
static int step_is_legal(const struct sc_qp *qp, enum ibv_qp_state to, int mask)
{
    enum ibv_qp_state from = qp->state;
    int               rc = qp->base.qp_type == IBV_QPT_RC, needed = 0;

    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return 1;
    }
    if (to == IBV_QPS_INIT && (from == IBV_QPS_RESET || from == IBV_QPS_INIT)) {
        needed = from == IBV_QPS_INIT ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT | (rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
    } else if (to == IBV_QPS_RTR && from == IBV_QPS_INIT) {
        needed = rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                          IBV_QP_MIN_RNR_TIMER
                    : 0;
    } else if (to == IBV_QPS_RTS && from == IBV_QPS_RTR) {
        needed = rc ? IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                    : IBV_QP_SQ_PSN;
    } else if (!(to == IBV_QPS_RTS && from == IBV_QPS_RTS)) {
        return 0;
    }
    return (mask & needed) == needed;
}

static int port_is_gone(const struct sc_qp *qp)
{
    return qp->sport != SC_NO_PORT && (sc.fabric->port[qp->sport].trouble & SC_PORT_FATAL);
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct sc_qp *qp     = (struct sc_qp *)base;
    int           status = sc_fault_verb(SC_VERB_MODIFY_QP);

    if (status != 0) {
        return status;
    }
    sc_lock(&sc.lock);
    if (port_is_gone(qp)) {
        status = EIO;
    } else if ((mask & IBV_QP_STATE) && !step_is_legal(qp, attr->qp_state, mask)) {
        status = EINVAL;
    } else {
        take_attributes(qp, attr, mask);
    }
    if (status == 0 && (mask & IBV_QP_STATE)) {
        if (attr->qp_state == IBV_QPS_ERR) {
            sc_qp_error(qp);
        } else {
            if (attr->qp_state == IBV_QPS_RESET) {
                reset(qp);
            }
            qp->state = attr->qp_state;
        }
        base->state = attr->qp_state;
    }
    sc_unlock(&sc.lock);
    return status;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    struct sc_qp *qp     = (struct sc_qp *)base;
    int           status = sc_fault_verb(SC_VERB_QUERY_QP);

    if (status != 0) {
        return status;
    }
    sc_lock(&sc.lock);
    if (port_is_gone(qp)) {
        status = EIO;
    } else {
        *attr          = qp->attr;
        attr->qp_state = attr->cur_qp_state = qp->state;
        attr->rq_psn                        = qp->kind->stale_psn ? qp->attr.rq_psn : qp->epsn;
        attr->sq_psn                        = qp->post_psn;
        attr->cap                           = qp->init.cap;
        *init                               = qp->init;
        base->state                         = mask & IBV_QP_STATE ? qp->state : base->state;
    }
    sc_unlock(&sc.lock);
    return status;
}

/* The card knows no enhanced connection establishment. */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return EOPNOTSUPP;
}
