/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/watch.h"

#include "base/job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_NS 1000000000ull

/* A rail that somebody watches. */
struct watched {
    struct watched     *next;
    struct ha_rail     *rail;
    unsigned            rail_no, watches;
    int                 fd;        /* its events have a handler; -1: no longer */
    int                 listening; /* the rail's events have been begun, and not ended */
    struct uct_ha_job   look;
    int                 due;  /* the job is queued and has not begun */
    struct ha_rail_addr addr; /* when it looked last */
};

/* Lock order: `life`, `lock`, any interface's control lock. The handler and the job take
 * the last two only, so that they can be waited for under the first. */
static pthread_mutex_t      life = PTHREAD_MUTEX_INITIALIZER; /* add, remove */
static pthread_mutex_t      lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched      *rails;
static struct uct_ha_watch *watches;

static struct watched *find(const struct ha_rail *rail)
{
    struct watched *entry;

    for (entry = rails; entry != NULL && entry->rail != rail; entry = entry->next) {
    }
    return entry;
}

static void deliver(const struct ha_rail *rail, const struct ha_rail_event *event, int kept)
{
    struct uct_ha_watch *watch;

    for (watch = watches; watch != NULL; watch = watch->next) {
        if (watch->rail == rail && (event->owner == NULL || event->owner == watch->owner)) {
            watch->cb(watch->arg, watch->slot, event, kept);
        }
    }
}

/* With the lock. A device that is gone would say so for ever. */
static void end_handler(struct watched *entry)
{
    if (entry->fd >= 0) {
        ucs_async_remove_handler(entry->fd, 0);
        entry->fd = -1;
    }
}

/* With the lock, on the job thread: the device may be closed by that. */
static void let_go_of_gone(struct watched *entry)
{
    end_handler(entry);
    if (entry->listening) {
        entry->listening = 0;
        pthread_mutex_unlock(&lock);
        ha_rail_event_end(entry->rail);
        pthread_mutex_lock(&lock);
    }
}

/* Events are edges that say "look again", never state: a port event may be
 * repeated, late, or mean the opposite by the time it is read. To look is a device
 * command: a job of the rail does it. */
static void look_run(struct uct_ha_job *job)
{
    struct watched      *entry = ucs_container_of(job, struct watched, look);
    struct ha_rail_event event = {.kind = HA_RAIL_EVENT_PORT_DOWN};
    struct ha_rail_addr  addr;
    int                  kept;

    pthread_mutex_lock(&lock);
    entry->due = 0; /* what comes from here on is looked at anew */
    pthread_mutex_unlock(&lock);
    if (ha_rail_check(entry->rail)) {
        event.kind = HA_RAIL_EVENT_REMOVED;
    } else if (ha_rail_refresh(entry->rail) > 0) {
        event.kind = HA_RAIL_EVENT_PORT_UP;
    }
    addr = ha_rail_addr(entry->rail);
    kept = memcmp(&addr, &entry->addr, sizeof(addr)) == 0 || ha_rail_has_addr(entry->rail, &entry->addr);
    pthread_mutex_lock(&lock);
    entry->addr = addr;
    deliver(entry->rail, &event, kept);
    if (ha_rail_is_gone(entry->rail)) {
        let_go_of_gone(entry);
    }
    pthread_mutex_unlock(&lock);
}

static void look(struct watched *entry)
{
    if (!entry->due) {
        entry->due = 1;
        uct_ha_job_post(UCT_HA_JOB_PORT, entry->rail_no, &entry->look);
    }
}

static void not_looked(struct uct_ha_job *job)
{
    (void)job;
}

/* With the lock. */
static void is_gone(struct watched *entry)
{
    end_handler(entry);
    look(entry);
}

static void rail_readable(int id, ucs_event_set_types_t events, void *arg)
{
    struct ha_rail      *rail = arg;
    struct watched      *entry;
    struct ha_rail_event event;
    int                  status;

    (void)id;
    (void)events;
    pthread_mutex_lock(&lock);
    while ((entry = find(rail)) != NULL && entry->fd >= 0 && (status = ha_rail_event_get(rail, &event)) != 0) {
        if (status < 0) {
            event = (struct ha_rail_event){.kind = HA_RAIL_EVENT_DEVICE_FATAL};
        }
        if (event.kind == HA_RAIL_EVENT_PORT_DOWN || event.kind == HA_RAIL_EVENT_PORT_UP ||
            event.kind == HA_RAIL_EVENT_ADDR_CHANGE) {
            look(entry);
        } else if (event.kind != HA_RAIL_EVENT_NONE) {
            deliver(rail, &event, 1);
        }
        if (event.kind == HA_RAIL_EVENT_DEVICE_FATAL) {
            is_gone(entry);
        }
    }
    pthread_mutex_unlock(&lock);
}

void uct_ha_watch_check(uint64_t now)
{
    static uint64_t      due;
    struct ha_rail_event event = {.kind = HA_RAIL_EVENT_REMOVED};
    uint64_t             then  = __atomic_load_n(&due, __ATOMIC_RELAXED);
    struct watched      *entry;

    if (now < then ||
        !__atomic_compare_exchange_n(&due, &then, now + CHECK_NS, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return; /* too early, or another interface's timer does it */
    }
    pthread_mutex_lock(&lock);
    for (entry = rails; entry != NULL; entry = entry->next) {
        if (entry->fd >= 0 && ha_rail_check(entry->rail)) {
            deliver(entry->rail, &event, 1);
            is_gone(entry);
        } else if (!ha_rail_up(entry->rail) && !ha_rail_is_gone(entry->rail)) {
            look(entry); /* a look may fail, an event be lost: a rail that is well must not stay down for that */
        }
    }
    pthread_mutex_unlock(&lock);
}

/* With both locks. */
static ucs_status_t hold(struct ha_rail *rail, unsigned rail_no)
{
    struct watched *entry = find(rail);
    ucs_status_t    status;
    int             fd;

    if (entry != NULL) {
        entry->watches++;
        return UCS_OK;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    fd     = ha_rail_event_begin(rail);
    status = fd < 0 ? UCS_ERR_NO_DEVICE
                    : ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd, UCS_EVENT_SET_EVREAD,
                                                  rail_readable, rail, NULL);
    if (status != UCS_OK) {
        if (fd >= 0) {
            ha_rail_event_end(rail);
        }
        free(entry);
        return status;
    }
    entry->rail       = rail;
    entry->rail_no    = rail_no;
    entry->fd         = fd;
    entry->listening  = 1;
    entry->watches    = 1;
    entry->look.owner = entry;
    entry->look.run   = look_run;
    entry->addr       = ha_rail_addr(rail);
    entry->next       = rails;
    rails             = entry;
    return UCS_OK;
}

/* The entry, if nobody watches the rail any more: it is not found from here on. */
static struct watched *let_go(const struct ha_rail *rail)
{
    struct watched **link, *entry;

    for (link = &rails; (*link)->rail != rail; link = &(*link)->next) {
    }
    entry = *link;
    if (--entry->watches > 0) {
        return NULL;
    }
    *link = entry->next;
    return entry;
}

ucs_status_t uct_ha_watch_add(struct uct_ha_watch *watch, struct ha_rail *rail, unsigned rail_no, uct_ha_watch_cb cb,
                              void *arg, int slot)
{
    ucs_status_t status;

    watch->rail = rail;
    watch->cb   = cb;
    watch->arg  = arg;
    watch->slot = slot;

    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
    status = hold(rail, rail_no);
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
    struct watched       *last;
    int                   fd = -1;

    pthread_mutex_lock(&life);
    pthread_mutex_lock(&lock);
    for (link = &watches; *link != watch; link = &(*link)->next) {
    }
    *link = watch->next;
    last  = let_go(watch->rail);
    if (last != NULL) {
        fd       = last->fd;
        last->fd = -1;
    }
    pthread_mutex_unlock(&lock);
    if (fd >= 0) {
        ucs_async_remove_handler(fd, 1);
    }
    if (last != NULL) {
        uct_ha_job_cancel(UCT_HA_JOB_PORT, last, not_looked);
        if (last->listening) {
            ha_rail_event_end(last->rail);
        }
        free(last);
    }
    pthread_mutex_unlock(&life);
}

void uct_ha_watch_count(unsigned *up, unsigned *down)
{
    struct watched *entry;

    *up = *down = 0;
    pthread_mutex_lock(&lock);
    for (entry = rails; entry != NULL; entry = entry->next) {
        *(ha_rail_up(entry->rail) ? up : down) += 1;
    }
    pthread_mutex_unlock(&lock);
}
