/* SPDX-License-Identifier: BSD-3-Clause */

/* Receive queues that queue pairs share. */

#include "fake_priv.h"

#include <errno.h>
#include <stdlib.h>

int ha_srq_create(struct ha_rail *rail, unsigned depth, struct ha_srq **srq_p)
{
    struct ha_srq *srq;
    int            status;

    fake_command(FAKE_CALL_SRQ_CREATE, rail);
    pthread_mutex_lock(&fake.lock);
    status = depth > rail->limits.max_srq_wr ? -ENOTSUP : fake_refuses(FAKE_CALL_SRQ_CREATE, rail);
    if (status == 0) {
        srq           = calloc(1, sizeof(*srq));
        srq->rail     = rail;
        srq->rq.depth = depth;
        srq->rq.rqe   = calloc(depth, sizeof(*srq->rq.rqe));
        fake.live++;
        rail->held++;
        *srq_p = srq;
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

void ha_srq_destroy(struct ha_srq *srq)
{
    fake_command(FAKE_CALL_SRQ_DESTROY, srq->rail);
    pthread_mutex_lock(&fake.lock);
    fake.counts.srq_in_use += srq->users != 0;
    fake.live--;
    srq->rail->held--;
    pthread_mutex_unlock(&fake.lock);
    free(srq->rq.rqe);
    free(srq);
}

static void look_low(struct ha_srq *srq)
{
    if (srq->limit != 0 && srq->rq.tail - srq->rq.head < srq->limit) {
        srq->limit = 0;
        fake.counts.srq_low++;
        fake_push_event(srq->rail, HA_RAIL_EVENT_SRQ_LOW);
    }
}

struct ha_recv *ha_srq_post(struct ha_srq *srq, struct ha_recv *first)
{
    struct fake_rq *rq = &srq->rq;

    pthread_mutex_lock(&fake.lock);
    fake.counts.recv_doorbells++;
    if (fake_refuses(FAKE_CALL_POST_RECV, srq->rail) == 0) {
        for (; first != NULL && rq->tail - rq->head < rq->depth; first = first->next) {
            rq->rqe[rq->tail++ % rq->depth] = (struct fake_rqe){.wr_id = first->wr_id, .sge = *first->sge};
            fake.counts.recvs++;
        }
        fake.counts.rnr += rq->not_ready;
        rq->not_ready = 0;
        fake_kick();
    }
    pthread_mutex_unlock(&fake.lock);
    return first;
}

int ha_srq_watch(struct ha_srq *srq, unsigned limit)
{
    int status;

    fake_command(FAKE_CALL_SRQ_WATCH, srq->rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_SRQ_WATCH, srq->rail);
    if (status == 0) {
        srq->limit = limit;
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

/* Taken with the first packet of a message. */
static struct fake_rqe *take(struct ha_rc *rc)
{
    struct fake_rq *rq = &rc->srq->rq;

    if (!rc->has_taken) {
        if (rq->head == rq->tail) {
            rq->not_ready++;
            return NULL;
        }
        rc->taken     = rq->rqe[rq->head++ % rq->depth];
        rc->has_taken = 1;
        fake_promise(rc->cq);
        look_low(rc->srq);
    }
    return &rc->taken;
}

struct fake_rqe *fake_rqe_of(struct ha_rc *rc)
{
    if (rc->srq != NULL) {
        return take(rc);
    }
    if (rc->rq.head == rc->rq.tail) {
        rc->rq.not_ready++;
        return NULL;
    }
    return &rc->rq.rqe[rc->rq.head % rc->rq.depth];
}

void fake_srq_leave(struct ha_rc *rc)
{
    if (rc->has_taken && fake_luck(rc->rail->is->takes_along)) {
        rc->has_taken = 0;
        rc->cq->promised--;
        fake.counts.taken_along++;
    } else if (rc->has_taken) {
        fake_complete_recv(rc, HA_WC_FLUSHED, 0, 0);
    }
    if (fake_luck(rc->rail->is->says_drained)) {
        fake_push_qp_event(rc, HA_RAIL_EVENT_QP_DRAINED);
    }
}

uint32_t fake_last_qpn(int rail)
{
    uint32_t      qpn = 0;
    struct ha_rc *rc;

    pthread_mutex_lock(&fake.lock);
    for (rc = fake.rcs; rc != NULL && qpn == 0; rc = rc->next) {
        qpn = rc->rail == &fake.rail[rail] ? rc->qpn : 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return qpn;
}

void fake_forgive_rnr(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.counts.rnr = 0;
    pthread_mutex_unlock(&fake.lock);
}
