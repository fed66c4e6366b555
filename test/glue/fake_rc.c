/* SPDX-License-Identifier: BSD-3-Clause */

/* RC queue pairs as their owner sees them: create, connect, post, fence. What
 * the network does with them is in fake_net.c. */

#include "fake_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ha_rc_create(struct ha_rail *rail, struct ha_cq *cq, struct ha_srq *srq, const void *owner, struct ha_rc_caps *caps,
                 struct ha_rc **rc_p)
{
    struct ha_rc *rc = calloc(1, sizeof(*rc));
    int           status;

    fake_command(FAKE_CALL_RC_CREATE, rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_RC_CREATE, rail);
    if (status == 0) {
        rc->rail  = rail;
        rc->owner = owner;
        rc->cq    = cq;
        if (rail->is->max_inline != 0 && caps->max_inline > rail->is->max_inline) {
            caps->max_inline = rail->is->max_inline;
        }
        rc->caps = *caps;
        rc->sq   = calloc(caps->send_depth, sizeof(*rc->sq));
        rc->srq  = srq;
        if (srq != NULL) {
            srq->users++;
        } else {
            rc->rq.depth = caps->recv_depth;
            rc->rq.rqe   = calloc(caps->recv_depth, sizeof(*rc->rq.rqe));
        }
        rc->qpn  = fake.next_qpn++;
        rc->next = fake.rcs;
        fake.rcs = rc;
        fake.live++;
        rail->held++;
        *rc_p = rc;
    }
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(rc);
    }
    return status;
}

void fake_promise(struct ha_cq *cq)
{
    fake.counts.overbooked += ++cq->promised > cq->depth;
    fake_kick();
}

/* As real ones do, this drops completions that nobody has polled yet, or not. */
static void forget_completions(struct ha_rc *rc)
{
    struct ha_cq *cq   = rc->cq;
    unsigned      keep = cq->head;

    for (unsigned i = cq->head; i != cq->tail; i++) {
        if (cq->ring[i % cq->depth].src_qpn != rc->qpn) {
            cq->ring[keep++ % cq->depth] = cq->ring[i % cq->depth];
        }
    }
    cq->promised -= cq->tail - keep;
    fake.counts.forgot += cq->tail - keep;
    cq->tail = keep;
}

void ha_rc_destroy(struct ha_rc *rc)
{
    struct ha_rc **link;

    fake_command(FAKE_CALL_RC_DESTROY, rc->rail);
    pthread_mutex_lock(&fake.lock);
    for (link = &fake.rcs; *link != rc; link = &(*link)->next) {
    }
    *link = rc->next;
    fake.counts.hasty += rc->err_at != 0 && fake_now() - rc->err_at < FAKE_REST_NS;
    rc->cq->promised -= rc->tail - rc->head + rc->rq.tail - rc->rq.head + (unsigned)rc->has_taken;
    if (fake_luck(rc->rail->is->forgets)) {
        forget_completions(rc);
    }
    fake.live--;
    rc->rail->held--;
    pthread_mutex_unlock(&fake.lock);
    free(rc->sq);
    free(rc->rq.rqe);
    free(rc);
}

uint32_t ha_rc_qpn(const struct ha_rc *rc)
{
    return rc->qpn;
}

int ha_rc_connect(struct ha_rc *rc, const struct ha_rc_path *path)
{
    struct ha_rail *dest;
    unsigned        block;
    int             status;

    fake_command(FAKE_CALL_RC_CONNECT, rc->rail);
    pthread_mutex_lock(&fake.lock);
    block  = rc->rail->knob[FAKE_BLOCK_MS];
    status = fake_refuses(FAKE_CALL_RC_CONNECT, rc->rail);
    pthread_mutex_unlock(&fake.lock);
    if (block > 0) {
        usleep(block * 1000);
    }
    pthread_mutex_lock(&fake.lock);
    dest = fake_rail_of_gid(path->remote.gid);
    if (status == 0 && !fake_reachable(rc->rail, dest)) {
        status = -ETIMEDOUT;
    }
    if (status == 0 && rc->state != FAKE_INIT) {
        status = -EINVAL; /* fenced meanwhile */
    }
    if (status == 0) {
        rc->path            = *path;
        rc->rail->last_path = *path;
        rc->dest_rail       = dest;
        rc->way             = fake_path(rc->rail, path->remote.gid);
        rc->expected_psn    = path->recv_psn & FAKE_PSN_MASK;
        rc->next_psn        = path->send_psn & FAKE_PSN_MASK;
        rc->retries         = path->retry_count;
        rc->rnr_retries     = path->rnr_retry;
        rc->state           = FAKE_RTS;
        fake.counts.connects++;
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

/* The card takes its time. */
static void hang(const struct ha_rail *rail)
{
    unsigned ms;

    pthread_mutex_lock(&fake.lock);
    ms = rail->knob[FAKE_HANG_MS];
    pthread_mutex_unlock(&fake.lock);
    if (ms > 0) {
        usleep(ms * 1000);
    }
}

int ha_rc_fence(struct ha_rc *rc)
{
    int status;

    hang(rc->rail);
    fake_command(FAKE_CALL_RC_FENCE, rc->rail);
    pthread_mutex_lock(&fake.lock);
    status = rc->state == FAKE_ERR ? 0 : fake_refuses(FAKE_CALL_RC_FENCE, rc->rail);
    if (status == 0) {
        fake.counts.fences++;
        if (rc->state == FAKE_RTS) {
            fake.switching[rc->rail->host] = rc->rail;
        }
        fake_rc_to_err(rc);
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

static uint32_t told_psn(const struct ha_rc *rc)
{
    switch (rc->rail->knob[FAKE_PSN]) {
    case FAKE_PSN_STALE:
        return rc->path.recv_psn & FAKE_PSN_MASK;
    case FAKE_PSN_ZERO:
        return 0;
    case FAKE_PSN_GARBAGE:
        return fake_draw(FAKE_PSN_MASK);
    case FAKE_PSN_STALE_ERR:
        return rc->state == FAKE_ERR ? rc->path.recv_psn & FAKE_PSN_MASK : rc->expected_psn;
    case FAKE_PSN_BEHIND_ERR:
        return (rc->expected_psn - (rc->state == FAKE_ERR)) & FAKE_PSN_MASK;
    default:
        return rc->expected_psn;
    }
}

int ha_rc_expected_psn(struct ha_rc *rc, uint32_t *psn)
{
    int status;

    hang(rc->rail);
    fake_command(FAKE_CALL_EXPECTED_PSN, rc->rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_EXPECTED_PSN, rc->rail);
    *psn   = told_psn(rc);
    if (status == 0 && rc->state == FAKE_ERR) {
        fake_rc_was_read(rc);
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

int ha_rc_final_psn(struct ha_rc *rc, uint32_t *psn)
{
    int status = ha_rc_expected_psn(rc, psn);

    pthread_mutex_lock(&fake.lock);
    status = status == 0 && rc->state != FAKE_ERR ? -EBUSY : status;
    pthread_mutex_unlock(&fake.lock);
    return status;
}

static uint64_t length_of(const struct ha_send *send)
{
    uint64_t length = 0;

    for (int i = 0; i < send->num_sge; i++) {
        length += send->sge[i].length;
    }
    return length;
}

static void fill_wqe(struct ha_rc *rc, struct fake_wqe *wqe, const struct ha_send *send)
{
    uint32_t mtu = rc->path.mtu == 0 ? 1024 : rc->path.mtu;

    wqe->send      = *send;
    wqe->length    = length_of(send);
    wqe->psn       = rc->next_psn;
    wqe->npsn      = wqe->length == 0 ? 1 : (uint32_t)((wqe->length + mtu - 1) / mtu);
    wqe->read_done = 0;
    for (int i = 0; i < send->num_sge; i++) {
        wqe->sge[i] = send->sge[i];
    }
    if (send->flags & HA_SEND_INLINE) {
        uint8_t *to = wqe->bytes;

        for (int i = 0; i < send->num_sge; i++) {
            memcpy(to, (const void *)(uintptr_t)send->sge[i].addr, send->sge[i].length);
            to += send->sge[i].length;
        }
    }
    rc->next_psn = (rc->next_psn + wqe->npsn) & FAKE_PSN_MASK;
    if (rc->head != rc->tail && rc->state == FAKE_RTS) {
        fake.counts.psn_overruns += fake_psn_diff(rc->next_psn, rc->sq[rc->head % rc->caps.send_depth].psn) < 0;
    }
}

int ha_rc_post_send(struct ha_rc *rc, struct ha_send *send)
{
    int status;

    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_POST_SEND, rc->rail);
    if (status == 0 && rc->state == FAKE_INIT) {
        status = -EINVAL;
    }
    if (status == 0 && ((unsigned)send->num_sge > rc->caps.max_sge ||
                        ((send->flags & HA_SEND_INLINE) && length_of(send) > rc->caps.max_inline))) {
        status = -EINVAL;
    }
    if (status == 0 && rc->tail - rc->freed == rc->caps.send_depth) {
        status = -ENOMEM;
    }
    if (status == 0) {
        fill_wqe(rc, &rc->sq[rc->tail % rc->caps.send_depth], send);
        rc->tail++;
        if (fake.switching[rc->rail->host] != rc->rail) {
            fake.switching[rc->rail->host] = NULL;
        }
        fake_promise(rc->cq);
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}

static int add_recv(struct fake_rq *rq, const struct ha_recv *recv)
{
    if (rq->tail - rq->head == rq->depth) {
        return -ENOMEM;
    }
    rq->rqe[rq->tail++ % rq->depth] = (struct fake_rqe){.wr_id = recv->wr_id, .sge = *recv->sge};
    fake.counts.recvs++;
    fake.counts.rnr += rq->not_ready;
    rq->not_ready = 0;
    fake_kick();
    return 0;
}

int ha_rc_post_recv(struct ha_rc *rc, struct ha_recv *first)
{
    int status;

    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_POST_RECV, rc->rail);
    fake.counts.recv_doorbells++;
    for (const struct ha_recv *recv = first; recv != NULL && status == 0; recv = recv->next) {
        if (rc->state == FAKE_ERR && rc->rail->is->late_receive) {
            continue;
        }
        status = add_recv(&rc->rq, recv);
        if (status == 0) {
            fake_promise(rc->cq);
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return status;
}
