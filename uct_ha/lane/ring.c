/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane/ring.h"

#include "lane/desc.h"
#include "lane/room.h"
#include "base/stats.h"
#include "data/tx.h"

#include <errno.h>
#include <stdlib.h>

#define GRANTS_TO_GROW 4 /* half windows that were filled before it is doubled */

static int64_t bytes(const struct uct_ha_iface *iface, uint32_t buffers)
{
    return (int64_t)(buffers * iface->config.seg_size);
}

/* A ring has `count` buffers, all of them on the slot's rail. */
static int extend(struct uct_ha_conn *conn, int slot, uint32_t count)
{
    struct uct_ha_iface   *iface = conn->iface;
    struct uct_ha_rx_ring *ring  = &conn->rx[slot];
    struct uct_ha_desc   **buffers;
    struct uct_ha_desc    *desc;

    if (ring->count >= count) {
        return 0;
    }
    buffers = realloc(ring->buffers, count * sizeof(*buffers));
    if (buffers == NULL) {
        return -ENOMEM;
    }
    ring->buffers = buffers;
    while (ring->count < count) {
        desc = uct_ha_desc_alloc(iface);
        if (desc == NULL) {
            return -ENOMEM;
        }
        if (!uct_ha_reg_is_on(desc->mem, iface->rail_no[slot])) {
            uct_ha_desc_free(iface, desc); /* the standby refused it */
            return -ENOMEM;
        }
        ring->buffers[ring->count++] = desc;
        UCT_HA_STATS_ADD(rx_bytes, bytes(iface, 1));
    }
    return 0;
}

int uct_ha_ring_fill(struct uct_ha_conn *conn, int slot)
{
    return extend(conn, slot, conn->rx_window + UCT_HA_RX_RESERVE);
}

int uct_ha_ring_post(struct uct_ha_lane *lane)
{
    uint32_t count  = lane->conn->rx[lane->slot].count;
    int      status = 0;

    while (status == 0 && lane->receives < count) {
        status = uct_ha_ring_post_one(lane, lane->receives);
        lane->receives += status == 0;
    }
    return status;
}

/* ---- the window ------------------------------------------------------------- */

static int extend_lane(struct uct_ha_conn *conn, int slot, uint32_t count)
{
    struct uct_ha_lane *lane = conn->lane[slot];

    if (conn->rx[slot].count == 0) {
        return 0; /* there was no lane yet */
    }
    if (extend(conn, slot, count) != 0) {
        return -ENOMEM;
    }
    if (lane == NULL || uct_ha_lane_is_fenced(lane) || lane->receives >= count) {
        return 0; /* the next generation gets all of the ring */
    }
    if (uct_ha_room_add_receives(conn->iface, slot, count - lane->receives) != 0) {
        return -ENOSPC;
    }
    if (uct_ha_ring_post(lane) != 0) {
        lane->receives = count; /* accounted for: a dead lane's room is freed as a whole */
        return uct_ha_lane_is_fenced(lane) ? 0 : -EIO;
    }
    return 0;
}

/* Both lanes, so that a failover finds as many receives as the peer may send. */
static void larger_window(struct uct_ha_conn *conn)
{
    struct uct_ha_iface *iface  = conn->iface;
    unsigned             window = ucs_min(2u * conn->rx_window, iface->rx_window_max);
    unsigned             more   = window - conn->rx_window;
    size_t               cost   = (size_t)bytes(iface, more) * (size_t)conn->pair.slots;

    if (more == 0 || iface->rx_grown + cost > iface->config.rx_mem) {
        return;
    }
    for (int s = 0; s < conn->pair.slots; s++) {
        if (extend_lane(conn, s, window + UCT_HA_RX_RESERVE) != 0) {
            return;
        }
    }
    iface->rx_grown  += cost;
    conn->rx_grown   += cost;
    conn->rx_window   = (uint16_t)window;
    conn->rx_consumed = (uint16_t)(conn->rx_consumed + more);
}

void uct_ha_ring_grant(struct uct_ha_conn *conn)
{
    if (++conn->rx_grants >= GRANTS_TO_GROW) {
        conn->rx_grants = 0;
        larger_window(conn);
    }
    uct_ha_tx_credit(conn);
}

/* ---- the end ------------------------------------------------------------------ */

void uct_ha_ring_leave(struct uct_ha_conn *conn, int slot, struct uct_ha_lane *lane)
{
    struct uct_ha_rx_ring *ring = &conn->rx[slot];

    if (lane != NULL && lane->ring.buffers != NULL) {
        return; /* it has them already */
    }
    if (lane != NULL) {
        lane->ring = *ring;
    } else {
        for (uint32_t i = 0; i < ring->count; i++) {
            uct_ha_desc_free(conn->iface, ring->buffers[i]);
        }
        UCT_HA_STATS_ADD(rx_bytes, -bytes(conn->iface, ring->count));
        free(ring->buffers);
    }
    ring->count   = 0;
    ring->buffers = NULL;
}

void uct_ha_ring_return(struct uct_ha_lane *lane)
{
    struct uct_ha_rx_ring *ring = &lane->ring;

    for (uint32_t i = 0; i < ring->count; i++) {
        uct_ha_desc_return(lane->iface, ring->buffers[i]);
    }
    UCT_HA_STATS_ADD(rx_bytes, -bytes(lane->iface, ring->count));
    free(ring->buffers);
    ring->count   = 0;
    ring->buffers = NULL;
}
