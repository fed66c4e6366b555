/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events of our own rails, on UCX's async thread: a port goes down or comes
 * back, its address changes or moves, a queue pair dies.
 */

#include "ctl/ctl.h"

#include <string.h>

/* ---- is a rail good for new lanes ------------------------------------------ */

void uct_ha_ctl_usable_locked(struct uct_ha_peer *peer)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_RAIL };

    for (int s = 0; s < HA_SLOTS; s++) {
        event.slot  = s;
        event.value = (uint32_t)uct_ha_peer_rail_usable(peer, s);
        ucs_list_for_each(conn, &peer->conns, peer_link) {
            if (s < conn->pair.slots && conn->pair.lane[s].usable != event.value) {
                uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
            }
        }
    }
}

/* ---- rail events ------------------------------------------------------------- */

static void lanes_down(struct uct_ha_iface *iface, int slot, enum ha_cause cause)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_LANE_DOWN, .slot = slot,
                                  .cause = (uint8_t)cause };

    ucs_list_for_each(conn, &iface->ctl.conns, list) {
        event.gen = conn->pair.lane[slot].gen;
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    }
}

static void rail_down(struct uct_ha_iface *iface, int slot)
{
    struct uct_ha_peer *peer;

    if (iface->ctl.down[slot]) {
        return;
    }
    iface->ctl.down[slot] = 1;
    lanes_down(iface, slot, HA_CAUSE_PORT);
    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        peer->rail[slot].waiting = 0;
        peer->rail[slot].missed  = 0;
        uct_ha_ctl_usable_locked(peer);
    }
    iface->ctl.check_at = 0; /* the way on the other rail may not be known yet */
}

/* A card that is reset, pulled out, or has lost its completion queue. What it says from here on is not
 * believed, and it never comes back to those who had it open: docs/failover.md, "Without a proof". */
static void rail_gone(struct uct_ha_iface *iface, int slot)
{
    struct uct_ha_conn *conn;

    if (!iface->ctl.gone[slot]) {
        iface->ctl.gone[slot] = 1;
        ucs_warn("ha_rc: %s: the device has failed and is left for good; programs that start later use it if it "
                 "comes back", ha_rail_name(iface->rail[slot]));
    }
    rail_down(iface, slot);
    ucs_list_for_each(conn, &iface->ctl.conns, list) {
        uct_ha_ctl_attention_locked(conn); /* a lane may wait for what will not come any more */
    }
}

/* The port is back, which does not yet mean that the path works, nor that the
 * address or the peer's hardware address are what they were: resolve anew, and
 * wait for an answer before a lane is built on it. */
static void rail_up(struct uct_ha_iface *iface, int slot)
{
    struct uct_ha_peer *peer;

    if (iface->ctl.ud[slot] != NULL && ha_ud_recycle(iface->ctl.ud[slot]) == 0) {
        (void)ha_ud_arm(iface->ctl.ud[slot]);
    }
    iface->ctl.down[slot] = 0;
    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        uct_ha_peer_rail_moved(peer, slot);
        peer->rail[slot].bad_at   = 0; /* not suspected: known to have been down */
        peer->rail[slot].fresh_at = uct_ha_now() + iface->ctl.fresh_ns;
        peer->rail[slot].bad      = iface->ctl.heartbeat != 0 && iface->ctl.ud[slot] != NULL &&
                                    peer->rail[slot].ud_qpn != 0;
        uct_ha_ctl_usable_locked(peer);
    }
    iface->ctl.check_at     = 0;
    iface->ctl.heartbeat_at = 0;
}

static int same_address(const struct ha_rail_addr *a, const struct ha_rail_addr *b)
{
    return memcmp(a->gid, b->gid, sizeof(a->gid)) == 0 && a->lid == b->lid &&
           a->link_layer == b->link_layer;
}

/* The address or only its place in the table has moved. Address handles name the
 * place, so all are made anew. With the address itself gone, what was connected
 * with it is dead. Every packet from here on tells the peers. */
static void address_moved(struct uct_ha_iface *iface, int slot)
{
    struct ha_rail_addr addr  = ha_rail_addr(iface->rail[slot]);
    int                 moved = !same_address(&addr, &iface->ctl.addr[slot]);
    struct uct_ha_peer *peer;

    if (moved && !ha_rail_has_addr(iface->rail[slot], &iface->ctl.addr[slot])) {
        lanes_down(iface, slot, HA_CAUSE_PORT);
    }
    iface->ctl.addr[slot] = addr;
    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        uct_ha_peer_rail_moved(peer, slot);
        uct_ha_ctl_usable_locked(peer);
    }
    iface->ctl.check_at = 0;
}

static void qp_fatal(struct uct_ha_iface *iface, int slot, uint32_t qpn)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_LANE_DOWN, .slot = slot,
                                  .cause = HA_CAUSE_PORT };

    ucs_list_for_each(conn, &iface->ctl.conns, list) {
        if (conn->lane[slot] != NULL && ha_rc_qpn(conn->lane[slot]->rc) == qpn) {
            event.gen = conn->lane[slot]->gen;
            uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
        }
    }
}

void uct_ha_ctl_rail_event(void *arg, int slot, const struct ha_rail_event *event)
{
    struct uct_ha_iface *iface = arg;

    pthread_mutex_lock(&iface->ctl.lock);
    switch (event->kind) {
    case HA_RAIL_EVENT_DEVICE_FATAL:
        rail_gone(iface, slot);
        break;
    case HA_RAIL_EVENT_PORT_DOWN:
        rail_down(iface, slot);
        break;
    case HA_RAIL_EVENT_PORT_UP:
    case HA_RAIL_EVENT_ADDR_CHANGE: /* also: it has an address again */
        if (iface->ctl.gone[slot]) {
            break;
        }
        if (iface->ctl.down[slot]) {
            rail_up(iface, slot);
        }
        address_moved(iface, slot);
        break;
    case HA_RAIL_EVENT_QP_FATAL:
        qp_fatal(iface, slot, event->qpn);
        break;
    case HA_RAIL_EVENT_NONE:
        break;
    }
    uct_ha_ctl_flush_locked(iface);
    pthread_mutex_unlock(&iface->ctl.lock);
}
