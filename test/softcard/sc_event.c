/* SPDX-License-Identifier: BSD-3-Clause */

/* Asynchronous events: records in a pipe for each context, whose one end is its async_fd. */

#include <errno.h>
#include <fcntl.h>
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

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof(*event)) == (ssize_t)sizeof(*event) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}
