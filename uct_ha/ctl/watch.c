/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/watch.h"

#include <pthread.h>

/* Lock order: `life`, `lock`, any interface's control lock. The handler takes
 * the last two only, so that it can be waited for under the first. */
static pthread_mutex_t      life = PTHREAD_MUTEX_INITIALIZER; /* add, remove */
static pthread_mutex_t      lock = PTHREAD_MUTEX_INITIALIZER;
static struct uct_ha_watch *watches;

static int is_watched(const struct ha_rail *rail)
{
    const struct uct_ha_watch *watch;

    for (watch = watches; watch != NULL; watch = watch->next) {
        if (watch->rail == rail) {
            return 1;
        }
    }
    return 0;
}

/* Events are edges that say "look again", never state: a port event may be
 * repeated, late, or mean the opposite by the time it is read. */
static void settle_event(struct ha_rail *rail, struct ha_rail_event *event)
{
    int up;

    if (event->kind == HA_RAIL_EVENT_PORT_DOWN || event->kind == HA_RAIL_EVENT_PORT_UP ||
        event->kind == HA_RAIL_EVENT_ADDR_CHANGE) {
        up = ha_rail_refresh(rail) > 0;
        if (event->kind != HA_RAIL_EVENT_ADDR_CHANGE || !up) {
            event->kind = up ? HA_RAIL_EVENT_PORT_UP : HA_RAIL_EVENT_PORT_DOWN;
        }
    }
}

static void deliver(struct ha_rail *rail, const struct ha_rail_event *event)
{
    struct uct_ha_watch *watch;

    for (watch = watches; watch != NULL; watch = watch->next) {
        if (watch->rail == rail) {
            watch->cb(watch->arg, watch->slot, event);
        }
    }
}

static void rail_readable(int id, ucs_event_set_types_t events, void *arg)
{
    struct ha_rail      *rail = arg;
    struct ha_rail_event event;
    int                  status;

    (void)events;
    pthread_mutex_lock(&lock);
    while (is_watched(rail) && (status = ha_rail_event_get(rail, &event)) != 0) {
        if (status < 0) {
            event.kind = HA_RAIL_EVENT_DEVICE_FATAL;
            event.qpn  = 0;
            ucs_async_remove_handler(id, 0); /* readable for ever otherwise */
        }
        settle_event(rail, &event);
        if (event.kind != HA_RAIL_EVENT_NONE) {
            deliver(rail, &event);
        }
        if (status < 0) {
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

ucs_status_t uct_ha_watch_add(struct uct_ha_watch *watch, struct ha_rail *rail, uct_ha_watch_cb cb, void *arg, int slot)
{
    ucs_status_t status = UCS_OK;

    watch->rail = rail;
    watch->cb   = cb;
    watch->arg  = arg;
    watch->slot = slot;

    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
    if (!is_watched(rail)) {
        status = ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, ha_rail_event_fd(rail),
                                             UCS_EVENT_SET_EVREAD, rail_readable, rail, NULL);
    }
    if (status == UCS_OK) {
        watch->next = watches;
        watches     = watch;
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&life);
    return status;
}

void uct_ha_watch_remove(struct uct_ha_watch *watch)
{
    struct uct_ha_watch **link;
    int                   last;

    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
    for (link = &watches; *link != watch; link = &(*link)->next) {
    }
    *link = watch->next;
    last  = !is_watched(watch->rail);
    pthread_mutex_unlock(&lock);
    if (last) {
        ucs_async_remove_handler(ha_rail_event_fd(watch->rail), 1);
    }
    pthread_mutex_unlock(&life);
}

void uct_ha_watch_count(unsigned *up, unsigned *down)
{
    struct uct_ha_watch *watch, *earlier;

    *up = *down = 0;
    pthread_mutex_lock(&lock);
    for (watch = watches; watch != NULL; watch = watch->next) {
        for (earlier = watches; earlier->rail != watch->rail; earlier = earlier->next) {
        }
        if (earlier == watch) {
            *(ha_rail_up(watch->rail) ? up : down) += 1;
        }
    }
    pthread_mutex_unlock(&lock);
}
