/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/room.h"

#include "abi/uct_ha_abi.h"

#include "base/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LANE_EXTRA 2 /* the drain marker, and a send that tells */
#define DEPTH_MIN  1024

static void set_sends_max(struct uct_ha_room *room)
{
    room->sends_max = room->depth - room->reserved;
    __atomic_store_n(&room->sends_go, room->sends_max > 0 ? room->sends_max - 1 : 0, __ATOMIC_RELAXED);
}

static unsigned depth_limit(const struct uct_ha_room *room)
{
    return ha_rail_limits(room->rail)->max_cqe;
}

int uct_ha_room_open(struct uct_ha_room *room)
{
    room->depth = ucs_min(DEPTH_MIN, depth_limit(room));
    return ha_cq_create(room->rail, room->depth, 1, &room->cq);
}

void uct_ha_room_close(struct uct_ha_room *room)
{
    if (room->cq != NULL && !room->lent) {
        ha_cq_destroy(room->cq);
    }
}

struct leaving {
    struct uct_ha_job job;
    struct ha_cq     *cq;
};

static void leave_run(struct uct_ha_job *job)
{
    struct leaving *leaving = ucs_container_of(job, struct leaving, job);

    ha_cq_destroy(leaving->cq);
    free(leaving);
}

void uct_ha_room_leave(struct uct_ha_room *room, const struct uct_ha_room *other, const void *owner, unsigned rail_no)
{
    struct leaving *leaving = malloc(sizeof(*leaving));

    if (leaving == NULL) {
        return; /* it stays until the interface closes */
    }
    leaving->cq        = room->cq;
    leaving->job.owner = owner;
    leaving->job.run   = leave_run;
    room->cq           = other->cq;
    room->lent         = 1;
    uct_ha_job_post(UCT_HA_JOB_DESTROY, rail_no, &leaving->job);
}

/* 0: it cannot be deeper, or need not be. */
static unsigned next_depth(const struct uct_ha_room *room, unsigned want)
{
    unsigned depth = ucs_min(ucs_max(want, 2 * room->depth), depth_limit(room));

    return want > room->depth && depth > room->depth ? depth : 0;
}

int uct_ha_room_deepen(const struct uct_ha_room *room, unsigned depth)
{
    int status = depth == 0 ? 0 : ha_cq_resize(room->cq, depth);

    if (status != 0) {
        ucs_debug("ha_rc: %s: completion queue stays as it is, not %u entries: %s", ha_rail_name(room->rail), depth,
                  strerror(-status));
    }
    return status;
}

static void grow(struct uct_ha_room *room, unsigned want)
{
    unsigned depth = next_depth(room, want);

    if (depth != 0 && uct_ha_room_deepen(room, depth) == 0) {
        room->depth = depth;
    }
}

static int add(struct uct_ha_room *room, unsigned places, unsigned logs)
{
    unsigned reserved = room->reserved + places;

    /* At least one log full of sends, so that work goes on. */
    if (reserved + room->log_len > room->depth) {
        return reserved + room->log_len > room->depth + room->parked ? -ENOSPC : -EAGAIN;
    }
    room->reserved = reserved;
    room->logs += logs;
    set_sends_max(room);
    return 0;
}

static unsigned wanted(const struct uct_ha_room *room, unsigned places, unsigned logs)
{
    return room->reserved + places + (room->logs + logs) * room->log_len;
}

void uct_ha_room_expect(struct uct_ha_room *room, unsigned receives, unsigned logs)
{
    room->coming += receives + (logs > 0 ? LANE_EXTRA : 0);
    room->coming_logs += logs;
}

void uct_ha_room_forget(struct uct_ha_room *room, unsigned receives, unsigned logs)
{
    room->coming -= receives + (logs > 0 ? LANE_EXTRA : 0);
    room->coming_logs -= logs;
}

static unsigned lacks(const struct uct_ha_room *room)
{
    return next_depth(room, wanted(room, room->coming, room->coming_logs));
}

unsigned uct_ha_room_ask(struct uct_ha_room *room)
{
    unsigned depth = lacks(room);

    if (depth <= room->asked) {
        return 0;
    }
    room->asked = ucs_min(ucs_max(depth, 2 * room->asked), depth_limit(room));
    return room->asked;
}

void uct_ha_room_deepened(struct uct_ha_room *room, unsigned depth)
{
    room->refused = depth == 0;
    if (room->refused) {
        room->asked = room->depth;
    }
    room->depth = ucs_max(room->depth, depth);
    set_sends_max(room);
}

unsigned uct_ha_room_ask_for(struct uct_ha_room *room, unsigned receives)
{
    uct_ha_room_expect(room, receives, 0);
    return uct_ha_room_ask(room);
}

void uct_ha_room_have(struct uct_ha_room *room, unsigned receives, unsigned depth, int status)
{
    if (depth != 0) {
        uct_ha_room_deepened(room, status == 0 ? depth : 0);
    }
    uct_ha_room_forget(room, receives, 0);
}

int uct_ha_room_fits(const struct uct_ha_room *room, unsigned receives)
{
    return room->reserved + receives + LANE_EXTRA + room->log_len <= room->depth;
}

int uct_ha_room_may_grow(const struct uct_ha_room *room)
{
    return lacks(room) != 0;
}

int uct_ha_room_add_lane(struct uct_ha_room *room, unsigned receives, unsigned logs)
{
    int status = add(room, receives + LANE_EXTRA, logs);

    room->lanes += status == 0;
    return status;
}

int uct_ha_room_add_receives(struct uct_ha_room *room, unsigned receives)
{
    if (2 * (room->reserved + receives) + room->log_len > depth_limit(room)) {
        return -ENOSPC; /* the rest is for connections to come */
    }
    grow(room, wanted(room, receives, 0));
    return add(room, receives, 0);
}

int uct_ha_room_is_deepest(const struct uct_ha_room *room)
{
    return room->refused || room->depth >= depth_limit(room);
}

unsigned uct_ha_room_spare(const struct uct_ha_room *room, int progress)
{
    unsigned logs = ucs_max(room->logs, 1) * room->log_len;
    unsigned used = room->reserved + (progress ? ucs_max(room->log_len, room->sends) : logs);

    return room->depth > used ? room->depth - used : 0;
}

unsigned uct_ha_room_could_spare(const struct uct_ha_room *room)
{
    unsigned depth = room->refused ? room->depth : depth_limit(room);
    unsigned half  = room->refused ? depth : depth / 2; /* the rest is for connections to come */

    return half > room->reserved + room->log_len ? half - room->reserved - room->log_len : 0;
}

void uct_ha_room_take_receives(struct uct_ha_room *room, unsigned receives)
{
    room->reserved += receives;
    set_sends_max(room);
}

static void release(struct uct_ha_room *room, unsigned places)
{
    room->reserved -= places;
    set_sends_max(room);
}

void uct_ha_room_undo_lane(struct uct_ha_room *room, unsigned receives, unsigned logs)
{
    room->lanes--;
    room->logs -= logs;
    release(room, receives + LANE_EXTRA);
}

unsigned uct_ha_room_park(struct uct_ha_room *room, unsigned receives, unsigned sends, unsigned logs)
{
    unsigned places = receives + sends + LANE_EXTRA;

    /* No completion of it will be counted any more. */
    room->sends -= sends;
    room->reserved += sends;
    room->lanes--;
    room->logs -= logs;
    room->parked += places;
    set_sends_max(room);
    return places;
}

void uct_ha_room_later(struct uct_ha_room *room, unsigned places)
{
    __atomic_fetch_add(&room->freed, places, __ATOMIC_RELEASE);
    uct_ha_wake_progress(room->wake);
}

unsigned uct_ha_room_take_freed(struct uct_ha_room *room)
{
    return __atomic_exchange_n(&room->freed, 0, __ATOMIC_ACQUIRE);
}

void uct_ha_room_release(struct uct_ha_room *room, unsigned freed)
{
    room->parked -= freed;
    release(room, freed);
}

void uct_ha_room_put_back(struct uct_ha_room *room, unsigned freed)
{
    __atomic_fetch_add(&room->freed, freed, __ATOMIC_RELAXED);
}
