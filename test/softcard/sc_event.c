/* SPDX-License-Identifier: BSD-3-Clause */

/* Asynchronous events: records in a pipe for each context, whose one end is its async_fd. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sc_card.h"

int sc_pipe(int *out, int *in)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0) {
        return -1;
    }
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    *out = fds[0];
    *in  = fds[1];
    return 0;
}

/* Read everything, write back what is to stay. Records are whole: each was one write. */
void sc_pipe_filter(int out, int in, size_t size, int (*keep)(const void *record, const void *arg), const void *arg)
{
    int      flags = fcntl(out, F_GETFL);
    uint8_t *kept  = NULL, record[64];
    size_t   count = 0;

    (void)fcntl(out, F_SETFL, flags | O_NONBLOCK);
    while (read(out, record, size) == (ssize_t)size) {
        if (keep(record, arg)) {
            uint8_t *more = realloc(kept, (count + 1) * size);

            if (more != NULL) {
                kept = more;
                memcpy(kept + count++ * size, record, size);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)!write(in, kept + i * size, size);
    }
    free(kept);
    (void)fcntl(out, F_SETFL, flags);
}

void sc_event_raise(struct ibv_context *context, const struct ibv_async_event *event)
{
    (void)!write(sc_context_of(context)->events_in, event, sizeof(*event));
}

void sc_event_port(unsigned place, enum ibv_event_type type)
{
    struct ibv_async_event event = {.event_type = type};

    for (struct sc_context *context = sc.contexts; context != NULL; context = context->next) {
        for (unsigned port = 1; port <= SC_PORTS_MAX; port++) {
            if (sc_context_port(context, port) == place) {
                event.element.port_num = (int)port;
                sc_event_raise(&context->base.context, &event);
            }
        }
    }
}

static int is_other(const void *record, const void *object)
{
    const struct ibv_async_event *event = record;
    int about_object = event->event_type != IBV_EVENT_DEVICE_FATAL && event->event_type != IBV_EVENT_PORT_ACTIVE &&
                       event->event_type != IBV_EVENT_PORT_ERR;

    return !about_object || (const void *)event->element.qp != object;
}

/* An object goes away: what nobody has read yet about it, too. */
void sc_event_forget(struct ibv_context *context, const void *object)
{
    sc_pipe_filter(context->async_fd, sc_context_of(context)->events_in, sizeof(struct ibv_async_event), is_other,
                   object);
}

/* ---- what is read and not acknowledged yet ------------------------------------------ */

/* What keeps the object of an event alive; a NULL mutex: it has none. */
struct debt {
    pthread_mutex_t *mutex;
    pthread_cond_t  *cond;
    unsigned        *read;
    uint32_t        *acked;
};

static struct debt debt_of(const struct ibv_async_event *event)
{
    struct ibv_qp  *qp  = event->element.qp;
    struct ibv_cq  *cq  = event->element.cq;
    struct ibv_srq *srq = event->element.srq;

    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return (struct debt){&qp->mutex, &qp->cond, &((struct sc_qp *)qp)->told, &qp->events_completed};
    case IBV_EVENT_CQ_ERR:
        return (struct debt){&cq->mutex, &cq->cond, &((struct sc_cq *)cq)->told, &cq->async_events_completed};
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return (struct debt){&srq->mutex, &srq->cond, &((struct sc_srq *)srq)->told, &srq->events_completed};
    default:
        return (struct debt){0};
    }
}

static void owe(const struct ibv_async_event *event)
{
    struct debt debt = debt_of(event);

    if (debt.mutex != NULL) {
        pthread_mutex_lock(debt.mutex);
        ++*debt.read;
        pthread_mutex_unlock(debt.mutex);
    }
}

void sc_event_settle(pthread_mutex_t *mutex, pthread_cond_t *cond, const unsigned *told, const uint32_t *acked)
{
    pthread_mutex_lock(mutex);
    while (*acked != *told) {
        pthread_cond_wait(cond, mutex);
    }
    pthread_mutex_unlock(mutex);
}

/* One that is read is owed from then on: an object that is destroyed finds its events unread, or owed. */
static int take(struct ibv_context *context, struct ibv_async_event *event)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
    int           got;

    sc_lock(&sc.lock);
    got = poll(&fd, 1, 0) == 1 && read(fd.fd, event, sizeof(*event)) == (ssize_t)sizeof(*event);
    if (got) {
        owe(event);
    }
    sc_unlock(&sc.lock);
    return got;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

    while (!take(context, event)) {
        if (fcntl(fd.fd, F_GETFL) & O_NONBLOCK) {
            errno = EAGAIN;
            return -1;
        }
        if (poll(&fd, 1, -1) < 0) {
            return -1;
        }
    }
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct debt debt = debt_of(event);

    if (debt.mutex != NULL) {
        pthread_mutex_lock(debt.mutex);
        ++*debt.acked;
        pthread_cond_signal(debt.cond);
        pthread_mutex_unlock(debt.mutex);
    }
}
