/* SPDX-License-Identifier: BSD-3-Clause */

/* What strikes rails: ports, cards, events, calls that fail. */

#include "fake_priv.h"

#include <string.h>
#include <unistd.h>

static void push(struct ha_rail *rail, struct ha_rail_event event)
{
    if (rail->num_events < FAKE_EVENTS_MAX) {
        rail->events[rail->num_events++] = event;
        fake_fd_raise(rail->event_fd);
    }
}

void fake_push_event(struct ha_rail *rail, enum ha_rail_event_kind kind)
{
    push(rail, (struct ha_rail_event){.kind = kind});
}

void fake_push_qp_event(const struct ha_rc *rc, enum ha_rail_event_kind kind)
{
    push(rc->rail, (struct ha_rail_event){.kind = kind, .qpn = rc->qpn, .owner = rc->owner});
}

static void set_port(int index, int up, int tell)
{
    struct ha_rail *rail = &fake.rail[index];

    pthread_mutex_lock(&fake.lock);
    rail->port_up = up;
    if (tell) {
        for (int i = 0; i <= rail->is->twice; i++) {
            fake_push_event(rail, up ? HA_RAIL_EVENT_PORT_UP : HA_RAIL_EVENT_PORT_DOWN);
        }
    }
    fake_kick();
    pthread_mutex_unlock(&fake.lock);
}

void fake_port(int rail, int up)
{
    set_port(rail, up, 1);
}

void fake_port_silently(int rail, int up)
{
    set_port(rail, up, 0);
}

void fake_card_reset(int index, enum fake_card how)
{
    struct ha_rail *rail = &fake.rail[index];

    pthread_mutex_lock(&fake.lock);
    rail->card = how;
    for (struct ha_rc *rc = fake.rcs; rc != NULL && how == FAKE_CARD_OVERRUN; rc = rc->next) {
        if (rc->rail == rail && rc->state == FAKE_RTS) {
            fake_rc_to_err(rc);
        }
    }
    fake_push_event(rail, HA_RAIL_EVENT_DEVICE_FATAL);
    fake_kick();
    pthread_mutex_unlock(&fake.lock);
}

void fake_card_remove(int index)
{
    pthread_mutex_lock(&fake.lock);
    fake.rail[index].removed = 1;
    pthread_mutex_unlock(&fake.lock);
}

int fake_card_held(int index)
{
    int held;

    pthread_mutex_lock(&fake.lock);
    held = fake.rail[index].held;
    pthread_mutex_unlock(&fake.lock);
    return held;
}

int fake_card_back(int index)
{
    struct ha_rail *old = &fake.rail[index];
    int new;

    pthread_mutex_lock(&fake.lock);
    new = fake_rail_add(old->name, old->net, old->host);
    (void)fake_personality(new, old->is->name);
    memcpy(fake.rail[new].limits.model, old->limits.model, sizeof(old->limits.model));
    pthread_mutex_unlock(&fake.lock);
    return new;
}

void fake_event_qp_fatal(int rail)
{
    struct ha_rc *rc;

    pthread_mutex_lock(&fake.lock);
    for (rc = fake.rcs; rc != NULL; rc = rc->next) {
        if (rc->rail->index == rail && rc->state == FAKE_RTS) {
            fake_push_qp_event(rc, HA_RAIL_EVENT_QP_FATAL);
        }
    }
    pthread_mutex_unlock(&fake.lock);
}

void fake_event_one_qp_fatal(int rail)
{
    struct ha_rc *rc;

    pthread_mutex_lock(&fake.lock);
    for (rc = fake.rcs; rc != NULL; rc = rc->next) {
        if (rc->rail->index == rail && rc->state == FAKE_RTS) {
            fake_push_qp_event(rc, HA_RAIL_EVENT_QP_FATAL);
            break;
        }
    }
    pthread_mutex_unlock(&fake.lock);
}

void fake_mtu(int rail, uint16_t mtu)
{
    fake.rail[rail].addr.mtu = mtu;
}

void fake_set(int rail, enum fake_knob knob, unsigned value)
{
    pthread_mutex_lock(&fake.lock);
    fake.rail[rail].knob[knob] = value;
    fake_kick();
    pthread_mutex_unlock(&fake.lock);
}

void fake_fail(enum fake_call call, int rail, int error, unsigned count)
{
    pthread_mutex_lock(&fake.lock);
    fake.fail[call].rail  = rail;
    fake.fail[call].error = error;
    fake.fail[call].count = count;
    pthread_mutex_unlock(&fake.lock);
}

void fake_hang(enum fake_call call, int rail, unsigned ms, unsigned count)
{
    pthread_mutex_lock(&fake.lock);
    fake.hang[call].rail  = rail;
    fake.hang[call].ms    = ms;
    fake.hang[call].count = count;
    pthread_mutex_unlock(&fake.lock);
}

unsigned fake_hung(enum fake_call call)
{
    unsigned hung;

    pthread_mutex_lock(&fake.lock);
    hung = fake.hang[call].hung;
    pthread_mutex_unlock(&fake.lock);
    return hung;
}

int fake_hangs(enum fake_call call)
{
    int now;

    pthread_mutex_lock(&fake.lock);
    now = fake.hang[call].now > 0;
    pthread_mutex_unlock(&fake.lock);
    return now;
}

/* ---- where device commands may be called ---- */

static _Thread_local int is_async;

void fake_async_thread(void)
{
    is_async = 1;
}

void fake_forbid(int (*forbidden)(void))
{
    pthread_mutex_lock(&fake.lock);
    fake.forbidden = forbidden;
    pthread_mutex_unlock(&fake.lock);
}

static int is_forbidden(int (*forbidden)(void))
{
    return is_async || (forbidden != NULL && forbidden());
}

void fake_command(enum fake_call call, const struct ha_rail *rail)
{
    int (*forbidden)(void);
    unsigned ms = 0;

    pthread_mutex_lock(&fake.lock);
    forbidden = fake.forbidden;
    if (fake.hang[call].count > 0 && fake.hang[call].rail == rail->index) {
        fake.hang[call].count--;
        fake.hang[call].now++;
        ms = fake.hang[call].ms;
    }
    pthread_mutex_unlock(&fake.lock);
    if (is_forbidden(forbidden)) {
        pthread_mutex_lock(&fake.lock);
        if (fake.counts.forbidden++ == 0) {
            fake.counts.forbidden_call = call;
        }
        pthread_mutex_unlock(&fake.lock);
    }
    if (ms > 0) {
        usleep(ms * 1000);
        pthread_mutex_lock(&fake.lock);
        fake.hang[call].now--;
        fake.hang[call].hung++;
        pthread_mutex_unlock(&fake.lock);
    }
}

void fake_break(uint64_t addr, unsigned count)
{
    pthread_mutex_lock(&fake.lock);
    fake.broken_addr = addr;
    fake.broken      = count;
    pthread_mutex_unlock(&fake.lock);
}

void fake_limit_cqe(uint32_t max_cqe)
{
    fake.max_cqe = max_cqe;
}
