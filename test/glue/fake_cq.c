/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues: rings of known size, that count what was promised to them. */

#include "fake_priv.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int ha_cq_create(struct ha_rail *rail, unsigned depth, int with_fd, struct ha_cq **cq_p)
{
    struct ha_cq *cq = calloc(1, sizeof(*cq));
    int           status;

    (void)with_fd;
    fake_command(FAKE_CALL_CQ_CREATE, rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_CQ_CREATE, rail);
    fake.live += status == 0;
    rail->held += status == 0;
    fake.cq_bytes += status == 0 ? depth * sizeof(struct ha_wc) : 0;
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(cq);
        return status;
    }
    cq->rail  = rail;
    cq->depth = depth;
    cq->ring  = calloc(depth, sizeof(*cq->ring));
    cq->fd    = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    *cq_p     = cq;
    return 0;
}

void ha_cq_destroy(struct ha_cq *cq)
{
    fake_command(FAKE_CALL_CQ_DESTROY, cq->rail);
    pthread_mutex_lock(&fake.lock);
    fake.live--;
    cq->rail->held--;
    fake.cq_bytes -= cq->depth * sizeof(struct ha_wc);
    pthread_mutex_unlock(&fake.lock);
    close(cq->fd);
    free(cq->ring);
    free(cq);
}

int ha_cq_resize(struct ha_cq *cq, unsigned depth)
{
    struct ha_wc *ring = calloc(depth, sizeof(*ring));
    unsigned      used = 0;
    int           status;

    fake_command(FAKE_CALL_CQ_RESIZE, cq->rail);
    pthread_mutex_lock(&fake.lock);
    status = fake_refuses(FAKE_CALL_CQ_RESIZE, cq->rail);
    if (status == 0) {
        while (cq->head != cq->tail) {
            ring[used++] = cq->ring[cq->head++ % cq->depth];
        }
        free(cq->ring);
        fake.cq_bytes += (depth - cq->depth) * sizeof(struct ha_wc);
        cq->ring  = ring;
        cq->depth = depth;
        cq->head  = 0;
        cq->tail  = used;
    }
    pthread_mutex_unlock(&fake.lock);
    if (status != 0) {
        free(ring);
    }
    return status;
}

void fake_cq_lose(struct ha_cq *cq)
{
    cq->promised--;
    fake.counts.unheard++;
}

void fake_cq_push(struct ha_cq *cq, const struct ha_wc *wc)
{
    if (cq->rail->card == FAKE_CARD_OVERRUN) {
        fake_cq_lose(cq);
        return;
    }
    if (cq->tail - cq->head == cq->depth) {
        fake.counts.overruns++;
        return;
    }
    cq->ring[cq->tail++ % cq->depth] = *wc;
    if (cq->armed) {
        cq->armed = 0;
        fake_fd_raise(cq->fd);
    }
}

/* As in a driver, the places of a send queue are free when a completion behind them has been polled. */
static void free_places(struct ha_cq *cq, struct ha_wc *wc)
{
    if (wc->qpn != 0) {
        return; /* a receive */
    }
    for (struct ha_rc *rc = fake.rcs; rc != NULL; rc = rc->next) {
        if (rc->qpn == wc->src_qpn && rc->cq == cq) {
            rc->freed = wc->imm;
            break;
        }
    }
    wc->imm = 0;
}

int ha_cq_poll(struct ha_cq *cq, struct ha_wc *wc, int max)
{
    int count = 0;

    pthread_mutex_lock(&fake.lock);
    fake_step();
    cq->rail->polls++;
    while (count < max && cq->head != cq->tail) {
        wc[count] = cq->ring[cq->head++ % cq->depth];
        free_places(cq, &wc[count++]);
        cq->promised--;
    }
    pthread_mutex_unlock(&fake.lock);
    return count;
}

uint64_t fake_cq_polls(int rail)
{
    uint64_t polls;

    pthread_mutex_lock(&fake.lock);
    polls = fake.rail[rail].polls;
    pthread_mutex_unlock(&fake.lock);
    return polls;
}

int ha_cq_fd(const struct ha_cq *cq)
{
    return cq->fd;
}

int ha_cq_arm(struct ha_cq *cq)
{
    pthread_mutex_lock(&fake.lock);
    cq->armed = 1;
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

int ha_cq_drain_fd(struct ha_cq *cq)
{
    pthread_mutex_lock(&fake.lock);
    fake_fd_lower(cq->fd);
    pthread_mutex_unlock(&fake.lock);
    return 0;
}

const char *ha_wc_raw_name(uint32_t raw)
{
    return raw == HA_WC_DEAD ? "retries exhausted" : raw == HA_WC_PROGRAM ? "access" : "flushed";
}
