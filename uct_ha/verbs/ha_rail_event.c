/* SPDX-License-Identifier: BSD-3-Clause */

/* What the device of a rail says by itself: events, and that it is no longer there. */

#include <errno.h>

#include "ha_rail_priv.h"

static void be_gone(struct ha_rail *rail, int failed)
{
    pthread_mutex_lock(&rail->lock);
    rail->up = 0;
    __atomic_store_n(&rail->gone, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&rail->lock);
    ha_device_be_gone(&rail->device, failed);
}

int ha_rail_check(struct ha_rail *rail)
{
    if (ha_rail_is_gone(rail) || !ha_device_is_removed(&rail->device)) {
        return 0;
    }
    be_gone(rail, 0);
    return 1;
}

int ha_rail_event_begin(struct ha_rail *rail)
{
    int status = ha_device_use(&rail->device);

    return status == 0 ? rail->device.ctx->async_fd : status;
}

void ha_rail_event_end(struct ha_rail *rail)
{
    ha_device_leave(&rail->device);
}

/* The queue pair lives until its event is acknowledged. */
static void of_queue_pair(struct ha_rail_event *out, enum ha_rail_event_kind kind, const struct ibv_qp *qp)
{
    out->kind  = kind;
    out->qpn   = qp->qp_num;
    out->owner = ha_rc_owner(qp);
}

static void translate_event(const struct ha_rail *rail, const struct ibv_async_event *in, struct ha_rail_event *out)
{
    int mine = in->element.port_num == rail->port;

    *out = (struct ha_rail_event){.kind = HA_RAIL_EVENT_NONE};
    switch (in->event_type) {
    case IBV_EVENT_PORT_ERR:
        /* InfiniBand's "initialized" is reported so too: ask the port. */
        out->kind = mine ? HA_RAIL_EVENT_PORT_DOWN : HA_RAIL_EVENT_NONE;
        break;
    case IBV_EVENT_PORT_ACTIVE:
        out->kind = mine ? HA_RAIL_EVENT_PORT_UP : HA_RAIL_EVENT_NONE;
        break;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        out->kind = mine ? HA_RAIL_EVENT_ADDR_CHANGE : HA_RAIL_EVENT_NONE;
        break;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR: /* one serves all lanes of a rail, and has lost what they need to know */
    case IBV_EVENT_WQ_FATAL:
        out->kind = HA_RAIL_EVENT_DEVICE_FATAL;
        break;
    case IBV_EVENT_QP_FATAL:
        of_queue_pair(out, HA_RAIL_EVENT_QP_FATAL, in->element.qp);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        of_queue_pair(out, HA_RAIL_EVENT_QP_DRAINED, in->element.qp);
        break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        out->kind = HA_RAIL_EVENT_SRQ_LOW;
        break;
    default: /* QP_REQ_ERR, QP_ACCESS_ERR: the program's; others: not ours */
        break;
    }
}

int ha_rail_event_get(struct ha_rail *rail, struct ha_rail_event *event)
{
    struct ibv_async_event raw;

    if (ibv_get_async_event(rail->device.ctx, &raw) != 0) {
        if (errno == EAGAIN || errno == EINTR) {
            return 0;
        }
        be_gone(rail, 1);
        return -EIO;
    }
    translate_event(rail, &raw, event);
    ibv_ack_async_event(&raw);
    if (event->kind == HA_RAIL_EVENT_DEVICE_FATAL) {
        be_gone(rail, 1);
    }
    return 1;
}
