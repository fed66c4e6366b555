/* SPDX-License-Identifier: BSD-3-Clause */

/* Completion queues and their channels. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sc_card.h"

#define NO_SEND 0xffffffffu

static struct ibv_wc spilled; /* where completions of a full queue go */

static void overrun(struct sc_cq *cq)
{
    struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR, .element.cq = &cq->base};

    if (!cq->overrun) {
        cq->overrun = 1;
        sc_event_raise(cq->base.context, &event);
    }
}

/* To be filled, and then pushed. */
struct ibv_wc *sc_cq_next(struct sc_cq *cq)
{
    if (cq->tail - cq->head >= cq->size) {
        overrun(cq);
        return &spilled;
    }
    return &cq->ring[cq->tail & (cq->size - 1)];
}

static void push(struct sc_cq *cq, int notify, unsigned frees)
{
    if (cq->tail - cq->head >= cq->size) {
        return;
    }
    cq->frees[cq->tail & (cq->size - 1)] = frees;
    __atomic_store_n(&cq->tail, cq->tail + 1, __ATOMIC_RELEASE);
    if (cq->armed && (notify || !cq->solicited_only)) {
        struct ibv_cq *record = &cq->base;

        cq->armed = 0;
        if (cq->base.channel != NULL) {
            (void)!write(((struct sc_channel *)cq->base.channel)->in, &record, sizeof(record));
        }
    }
}

void sc_cq_push(struct sc_cq *cq, int notify)
{
    push(cq, notify, NO_SEND);
}

/* Of the send at `sq_index`: when it has been polled, its slot and those before are free. */
void sc_cq_push_send(struct sc_cq *cq, int notify, unsigned sq_index)
{
    push(cq, notify, sq_index + 1 == NO_SEND ? NO_SEND - 1 : sq_index + 1);
}

static void free_slots(const struct ibv_wc *wc, unsigned frees)
{
    struct sc_qp *qp = frees == NO_SEND ? NULL : sc_qp_find(wc->qp_num);

    if (qp != NULL && qp->base.qp_num == wc->qp_num) {
        qp->sq_polled = frees;
    }
}

/* Completions of a queue pair that goes away, as mlx5 does it. */
void sc_cq_forget(struct sc_cq *cq, uint32_t qpn)
{
    unsigned kept = cq->head;

    for (unsigned i = cq->head; i != cq->tail; i++) {
        struct ibv_wc *wc = &cq->ring[i & (cq->size - 1)];

        if (wc->qp_num != qpn) {
            cq->frees[kept & (cq->size - 1)]  = cq->frees[i & (cq->size - 1)];
            cq->ring[kept++ & (cq->size - 1)] = *wc;
        }
    }
    cq->tail = kept;
}

int sc_cq_poll(struct ibv_cq *base, int max, struct ibv_wc *wc)
{
    struct sc_cq *cq    = (struct sc_cq *)base;
    int           count = 0;

    softcard_counts.polls++;
    if (__atomic_load_n(&cq->tail, __ATOMIC_ACQUIRE) == cq->head) {
        sc_nic_poll();
        if (__atomic_load_n(&cq->tail, __ATOMIC_ACQUIRE) == cq->head) {
            return 0;
        }
    }
    sc_lock(&sc.lock);
    for (; count < max && cq->head != cq->tail; count++) {
        wc[count] = cq->ring[cq->head & (cq->size - 1)];
        free_slots(&wc[count], cq->frees[cq->head & (cq->size - 1)]);
        cq->head++;
    }
    softcard_counts.completions += (unsigned)count;
    __atomic_store_n(&sc.polls_of_use, __atomic_load_n(&sc.polls, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    sc_unlock(&sc.lock);
    return count;
}

int sc_cq_notify(struct ibv_cq *base, int solicited_only)
{
    struct sc_cq *cq = (struct sc_cq *)base;

    sc_lock(&sc.lock);
    cq->solicited_only = cq->armed ? cq->solicited_only && solicited_only : solicited_only;
    cq->armed          = 1;
    sc_nic_look();
    sc_unlock(&sc.lock);
    sc_nic_sleepy();
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct sc_channel *channel = calloc(1, sizeof(*channel));

    if (channel == NULL) {
        return NULL;
    }
    channel->base.context = context;
    if (sc_pipe(&channel->base.fd, &channel->in) != 0) {
        free(channel);
        return NULL;
    }
    return &channel->base;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
    if (base->refcnt > 0) {
        return EBUSY;
    }
    close(base->fd);
    close(((struct sc_channel *)base)->in);
    free(base);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int vector)
{
    struct sc_cq *cq;
    int           status = sc_fault_verb(SC_VERB_CREATE_CQ);

    (void)vector;
    if (status != 0 || cqe < 1 || cqe > SC_CQE_MAX) {
        errno = status != 0 ? status : EINVAL;
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    if (cq == NULL) {
        return NULL;
    }
    cq->size  = sc_pow2((unsigned)cqe);
    cq->ring  = calloc(cq->size, sizeof(*cq->ring) + sizeof(*cq->frees));
    cq->frees = (unsigned *)(void *)(cq->ring + cq->size); /* behind it */
    if (cq->ring == NULL) {
        free(cq);
        return NULL;
    }
    sc_count(SC_OBJECT_CQ, 1);
    cq->base.context    = context;
    cq->base.channel    = channel;
    cq->base.cq_context = cq_context;
    cq->base.cqe        = (int)cq->size;
    pthread_mutex_init(&cq->base.mutex, NULL);
    pthread_cond_init(&cq->base.cond, NULL);
    if (channel != NULL) {
        channel->refcnt++;
    }
    return &cq->base;
}

int ibv_resize_cq(struct ibv_cq *base, int cqe)
{
    struct sc_cq  *cq = (struct sc_cq *)base;
    struct ibv_wc *ring;
    unsigned       size, count = 0;

    if (cqe < 1 || cqe > SC_CQE_MAX) {
        return EINVAL;
    }
    size = sc_pow2((unsigned)cqe);
    sc_lock(&sc.lock);
    ring = size < cq->tail - cq->head ? NULL : calloc(size, sizeof(*ring) + sizeof(*cq->frees));
    if (ring == NULL) {
        sc_unlock(&sc.lock);
        return EINVAL;
    }
    while (cq->head != cq->tail) {
        ((unsigned *)(void *)(ring + size))[count] = cq->frees[cq->head & (cq->size - 1)];
        ring[count++]                              = cq->ring[cq->head++ & (cq->size - 1)];
    }
    free(cq->ring);
    cq->ring     = ring;
    cq->frees    = (unsigned *)(void *)(ring + size);
    cq->size     = size;
    cq->head     = 0;
    cq->tail     = count;
    cq->base.cqe = (int)size;
    sc_unlock(&sc.lock);
    return 0;
}

static int is_other(const void *record, const void *cq)
{
    return *(void *const *)record != cq;
}

/* Waits until events that were read are acknowledged, as the library does. */
int ibv_destroy_cq(struct ibv_cq *base)
{
    struct sc_cq *cq = (struct sc_cq *)base;

    sc_lock(&sc.lock);
    cq->armed = 0;
    if (base->channel != NULL) {
        sc_pipe_filter(base->channel->fd, ((struct sc_channel *)base->channel)->in, sizeof(base), is_other, base);
        base->channel->refcnt--;
    }
    sc_event_forget(base->context, base);
    sc_unlock(&sc.lock);
    sc_event_settle(&base->mutex, &base->cond, &cq->told, &base->async_events_completed);
    sc_event_settle(&base->mutex, &base->cond, &cq->events_read, &base->comp_events_completed);
    pthread_mutex_destroy(&base->mutex);
    pthread_cond_destroy(&base->cond);
    sc_count(SC_OBJECT_CQ, -1);
    free(cq->ring);
    free(cq);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct ibv_cq *record;

    if (read(channel->fd, &record, sizeof(record)) != (ssize_t)sizeof(record)) {
        return -1;
    }
    pthread_mutex_lock(&record->mutex);
    ((struct sc_cq *)record)->events_read++;
    pthread_mutex_unlock(&record->mutex);
    *cq         = record;
    *cq_context = record->cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += count;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
