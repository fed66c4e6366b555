/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/room.h"

#include <errno.h>
#include <string.h>

#define LANE_EXTRA    2  /* the drain marker, and one to spare */
#define RECLAIM_POLLS 64 /* bounded: others may keep the queue busy */

static void set_sends_max(struct uct_ha_iface *iface, int slot)
{
    iface->cq_sends_max[slot] = iface->cq_depth[slot] - iface->cq_reserved[slot];
}

static void grow(struct uct_ha_iface *iface, int slot, unsigned want)
{
    unsigned limit = ha_rail_limits(iface->rail[slot])->max_cqe;
    unsigned depth = ucs_min(ucs_max(want, 2 * iface->cq_depth[slot]), limit);
    int      status;

    if (depth <= iface->cq_depth[slot]) {
        return;
    }
    status = ha_cq_resize(iface->cq[slot], depth);
    if (status == 0) {
        iface->cq_depth[slot] = depth;
    } else {
        ucs_debug("ha_rc: %s: completion queue stays at %u entries: %s",
                  ha_rail_name(iface->rail[slot]), iface->cq_depth[slot], strerror(-status));
    }
}

/* Sends that a lane may have under way, in logs: marks count, too. */
static unsigned logs_of(const struct uct_ha_conn *conn)
{
    return conn->marks ? 2 : 1;
}

static int add(struct uct_ha_iface *iface, int slot, unsigned places, unsigned logs)
{
    unsigned reserved = iface->cq_reserved[slot] + places;
    unsigned want     = reserved + (iface->cq_logs[slot] + logs) * iface->log_len;

    if (want > iface->cq_depth[slot]) {
        grow(iface, slot, want);
    }
    /* At least one log full of sends, so that work goes on. */
    if (reserved + iface->log_len > iface->cq_depth[slot]) {
        return reserved + iface->log_len > iface->cq_depth[slot] + iface->cq_parked[slot] ?
               -ENOSPC : -EAGAIN;
    }
    iface->cq_reserved[slot] = reserved;
    iface->cq_logs[slot]    += logs;
    set_sends_max(iface, slot);
    return 0;
}

int uct_ha_room_add_lane(struct uct_ha_conn *conn, int slot)
{
    int status = add(conn->iface, slot, conn->rx[slot].count + LANE_EXTRA, logs_of(conn));

    conn->iface->cq_lanes[slot] += status == 0;
    return status;
}

int uct_ha_room_add_receives(struct uct_ha_iface *iface, int slot, unsigned receives)
{
    unsigned limit = ha_rail_limits(iface->rail[slot])->max_cqe;

    if (2 * (iface->cq_reserved[slot] + receives) + iface->log_len > limit) {
        return -ENOSPC; /* the rest is for connections to come */
    }
    return add(iface, slot, receives, 0);
}

static void release(struct uct_ha_iface *iface, int slot, unsigned places)
{
    iface->cq_reserved[slot] -= places;
    set_sends_max(iface, slot);
}

void uct_ha_room_undo_lane(struct uct_ha_conn *conn, int slot)
{
    conn->iface->cq_lanes[slot]--;
    conn->iface->cq_logs[slot] -= logs_of(conn);
    release(conn->iface, slot, conn->rx[slot].count + LANE_EXTRA);
}

void uct_ha_room_park(struct uct_ha_lane *lane)
{
    struct uct_ha_iface *iface = lane->iface;

    /* No completion of it will be counted any more. */
    iface->cq_sends[lane->slot]    -= lane->sends;
    iface->cq_reserved[lane->slot] += lane->sends;
    iface->cq_lanes[lane->slot]--;
    iface->cq_logs[lane->slot] -= logs_of(lane->conn);
    lane->places = lane->receives + lane->sends + LANE_EXTRA;
    lane->sends  = 0;
    iface->cq_parked[lane->slot] += lane->places;
    set_sends_max(iface, lane->slot);
}

void uct_ha_room_later(struct uct_ha_lane *lane)
{
    __atomic_fetch_add(&lane->iface->cq_freed[lane->slot], lane->places, __ATOMIC_RELEASE);
    __atomic_store_n(&lane->iface->ctl.pending, 1, __ATOMIC_RELEASE);
}

static void reclaim(struct uct_ha_iface *iface, int slot)
{
    unsigned freed = __atomic_exchange_n(&iface->cq_freed[slot], 0, __ATOMIC_ACQUIRE);

    if (freed == 0) {
        return;
    }
    for (int i = 0; i < RECLAIM_POLLS; i++) {
        if (uct_ha_iface_poll_slot(iface, slot) == 0) {
            iface->cq_parked[slot] -= freed;
            release(iface, slot, freed);
            return;
        }
    }
    __atomic_fetch_add(&iface->cq_freed[slot], freed, __ATOMIC_RELAXED);
}

void uct_ha_room_reclaim(struct uct_ha_iface *iface)
{
    for (int s = 0; s < iface->slots; s++) {
        reclaim(iface, s);
    }
}
