/* SPDX-License-Identifier: BSD-3-Clause */

/* Receive queues, of a queue pair or shared. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

int sc_rq_init(struct sc_rq *rq, unsigned depth, unsigned max_sge)
{
    rq->depth   = depth;
    rq->size    = sc_pow2(depth > 0 ? depth : 1);
    rq->max_sge = max_sge > 0 ? max_sge : 1;
    rq->head = rq->tail = 0;
    rq->stride          = (unsigned)(sizeof(struct sc_rqe) + rq->max_sge * sizeof(struct ibv_sge));
    rq->ring            = malloc((size_t)rq->size * rq->stride);
    return rq->ring == NULL ? ENOMEM : 0;
}

void sc_rq_free(struct sc_rq *rq)
{
    free(rq->ring);
    rq->ring = NULL;
}

static int add(struct sc_rq *rq, const struct ibv_recv_wr *wr)
{
    struct sc_rqe *rqe;

    if (wr->num_sge < 0 || (unsigned)wr->num_sge > rq->max_sge) {
        return EINVAL;
    }
    if (rq->tail - rq->head >= rq->depth) {
        return ENOMEM;
    }
    rqe          = sc_rqe_at(rq, rq->tail);
    rqe->sge     = (struct ibv_sge *)(rqe + 1);
    rqe->wr_id   = wr->wr_id;
    rqe->num_sge = (unsigned)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        rqe->sge[i] = wr->sg_list[i];
    }
    rq->tail++;
    softcard_counts.recvs++;
    return 0;
}

static int post(struct sc_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    int status = 0;

    softcard_counts.recv_doorbells++;
    for (; wr != NULL; wr = wr->next) {
        status = add(rq, wr);
        if (status != 0) {
            *bad = wr;
            break;
        }
    }
    return status;
}

int sc_rq_post(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sc_qp *qp = (struct sc_qp *)base;
    int           status;

    sc_lock(&sc.lock);
    if (qp->base.srq != NULL || qp->state == IBV_QPS_RESET) {
        *bad   = wr;
        status = EINVAL;
    } else {
        status = post(&qp->rq, wr, bad);
        if (qp->state == IBV_QPS_ERR && !qp->kind->late_receive) {
            sc_qp_flush(qp);
        }
    }
    sc_unlock(&sc.lock);
    return status;
}

int sc_srq_post(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct sc_srq *srq = (struct sc_srq *)base;
    int            status;

    sc_lock(&sc.lock);
    status = post(&srq->rq, wr, bad);
    sc_unlock(&sc.lock);
    return status;
}

static void check_limit(struct sc_srq *srq)
{
    struct ibv_async_event event = {.event_type = IBV_EVENT_SRQ_LIMIT_REACHED, .element.srq = &srq->base};

    if (srq->limit != 0 && srq->rq.tail - srq->rq.head < srq->limit) {
        srq->limit = 0;
        sc_event_raise(srq->base.context, &event);
    }
}

/* The oldest receive becomes that of the message under way. 0: there is none. */
int sc_rq_take(struct sc_qp *qp)
{
    struct sc_rq        *rq = qp->rqp;
    const struct sc_rqe *rqe;

    if (rq->head == rq->tail) {
        return 0;
    }
    rqe     = sc_rqe_at(rq, rq->head++);
    qp->rqe = *rqe;
    for (unsigned i = 0; i < rqe->num_sge; i++) {
        qp->rqe_sge[i] = rqe->sge[i];
    }
    qp->rqe.sge  = qp->rqe_sge;
    qp->have_rqe = 1;
    if (qp->base.srq != NULL) {
        check_limit((struct sc_srq *)qp->base.srq);
    }
    return 1;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct sc_srq *srq;

    if (attr->attr.max_wr > 32768 || attr->attr.max_sge > SC_SGE_MAX) {
        errno = EINVAL;
        return NULL;
    }
    srq = calloc(1, sizeof(*srq));
    if (srq == NULL || sc_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge) != 0) {
        free(srq);
        errno = ENOMEM;
        return NULL;
    }
    sc_count(SC_OBJECT_SRQ, 1);
    srq->base.context     = pd->context;
    srq->base.pd          = pd;
    srq->base.srq_context = attr->srq_context;
    return &srq->base;
}

int ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask)
{
    struct sc_srq *srq = (struct sc_srq *)base;

    if ((mask & IBV_SRQ_MAX_WR) || ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > srq->rq.depth)) {
        return EINVAL;
    }
    if (mask & IBV_SRQ_LIMIT) {
        sc_lock(&sc.lock);
        srq->limit = attr->srq_limit;
        check_limit(srq);
        sc_unlock(&sc.lock);
    }
    return 0;
}

int ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr)
{
    struct sc_srq *srq = (struct sc_srq *)base;

    attr->max_wr    = srq->rq.depth;
    attr->max_sge   = srq->rq.max_sge;
    attr->srq_limit = srq->limit;
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *base)
{
    struct sc_srq *srq = (struct sc_srq *)base;

    sc_lock(&sc.lock);
    for (unsigned i = 0; i < SC_QP_MAX; i++) {
        if (sc.qp[i] != NULL && sc.qp[i]->base.srq == base) {
            sc_unlock(&sc.lock);
            return EBUSY;
        }
    }
    sc_event_forget(base->context, base);
    sc_unlock(&sc.lock);
    sc_event_settle(&base->mutex, &base->cond, &srq->told, &base->events_completed);
    sc_count(SC_OBJECT_SRQ, -1);
    sc_rq_free(&srq->rq);
    free(srq);
    return 0;
}
