/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Events of our own rails: a port goes down or comes back, its address changes or moves, a queue
 * pair dies.
 */

#include "ctl/rail.h"

#include "base/now.h"
#include "ctl/fall.h"
#include "ctl/flush.h"
#include "ctl/path.h"
#include "ctl/port.h"
#include "lane/number.h"
#include "lane/shared.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

/* ---- rail events ------------------------------------------------------------- */

static void rail_down(struct uct_ha_ctl *ctl, int slot)
{
    if (ctl->pairs->down[slot]) {
        return;
    }
    ctl->pairs->down[slot] = 1;
    uct_ha_fall_begin_locked(ctl, slot, HA_CAUSE_PORT);
    ctl->check_at = 0; /* the way on the other rail may not be known yet */
}

/* Some kernels do not let a card go as long as somebody has it open. Lanes are destroyed as any that have failed,
 * the completion queue by progress behind the last of them. */
static void let_go(struct uct_ha_ctl *ctl, int slot)
{
    struct uct_ha_peer *peer;

    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        uct_ha_path_anew(peer, slot); /* which is not looked for any more */
    }
    uct_ha_port_leave_locked(ctl, slot);
    uct_ha_wake_progress(&ctl->lanes->wake);
}

/* From here on it is as if its port were down for good: it never comes back to those who had it open. */
static void rail_left(struct uct_ha_ctl *ctl, int slot, const char *why)
{
    if (!ctl->lanes->left[slot]) {
        ctl->lanes->left[slot] = 1;
        ucs_warn("ha_rc [HA-120]: %s: the device %s and is left for good; programs that start later use it if it "
                 "comes back",
                 ha_rail_name(ctl->lanes->rail[slot]), why);
    }
    rail_down(ctl, slot);
    let_go(ctl, slot);
}

/* A card that is reset, pulled out, or has lost its completion queue. What it says from here on is not
 * believed: docs/failover.md, "Without a proof". */
static void rail_gone(struct uct_ha_ctl *ctl, int slot)
{
    struct uct_ha_conn *conn;

    ctl->lanes->gone[slot] = 1;
    rail_left(ctl, slot, "has failed");
    ucs_list_for_each (conn, &ctl->pairs->conns, list) {
        uct_ha_attention_locked(conn); /* a lane may wait for what will not come any more */
    }
}

/* The port is back, which does not yet mean that the path works, nor that the
 * address or the peer's hardware address are what they were: resolve anew, and
 * wait for an answer before a lane is built on it. */
static void rail_up(struct uct_ha_ctl *ctl, int slot)
{
    struct uct_ha_peer *peer;

    uct_ha_port_recycle_locked(ctl, slot);
    ctl->pairs->down[slot] = 0;
    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        uct_ha_path_moved(peer, slot);
        peer->rail[slot].waiting  = 0;
        peer->rail[slot].missed   = 0;
        peer->rail[slot].bad_at   = 0; /* not suspected: known to have been down */
        peer->rail[slot].fresh_at = uct_ha_now() + ctl->fresh_ns;
        peer->rail[slot].bad      = ctl->pairs->heartbeat != 0 && ctl->ud[slot] != NULL && peer->rail[slot].ud_qpn != 0;
        uct_ha_fact_usable_locked(peer);
    }
    ctl->check_at     = 0;
    ctl->heartbeat_at = 0;
}

/* The address or only its place in the table has moved. Address handles name the
 * place, so all are made anew. With the address itself gone, what was connected
 * with it is dead. Every packet from here on tells the peers. */
static void address_moved(struct uct_ha_ctl *ctl, int slot, int kept)
{
    struct ha_rail_addr addr  = ha_rail_addr(ctl->lanes->rail[slot]);
    int                 moved = !uct_ha_where_is_same(&addr, &ctl->addr[slot]);
    struct uct_ha_peer *peer;

    if (moved && !kept) {
        uct_ha_fall_begin_locked(ctl, slot, HA_CAUSE_PORT);
    }
    ctl->addr[slot] = addr;
    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        uct_ha_path_moved(peer, slot);
        uct_ha_fact_usable_locked(peer);
    }
    ctl->check_at = 0;
}

static struct uct_ha_lane *lane_of(struct uct_ha_ctl *ctl, int slot, uint32_t qpn)
{
    struct uct_ha_conn *conn;

    if (ctl->lanes->shared[slot].srq != NULL) {
        return uct_ha_number_find_locked(&ctl->lanes->shared[slot], qpn);
    }
    ucs_list_for_each (conn, &ctl->pairs->conns, list) {
        if (conn->road->lane[slot] != NULL && ha_rc_qpn(conn->road->lane[slot]->rc) == qpn) {
            return conn->road->lane[slot];
        }
    }
    return NULL;
}

/* The queue pairs of the control ports, of the self-test, and what is parked have events as well. These return 1 if it
 * is a lane's. */
static int qp_fatal(struct uct_ha_ctl *ctl, int slot, uint32_t qpn)
{
    struct ha_event     event = {.kind = HA_EV_LANE_DOWN, .slot = slot, .cause = HA_CAUSE_PORT};
    struct uct_ha_lane *lane  = lane_of(ctl, slot, qpn);

    if (lane == NULL) {
        return 0;
    }
    event.gen = lane->gen;
    uct_ha_failover_event_locked(lane->road->conn, &event, HA_CTX_ASYNC);
    return 1;
}

/* Nothing executes on it any more: by our doing, or it has stopped by itself. */
static int qp_drained(struct uct_ha_ctl *ctl, int slot, uint32_t qpn)
{
    struct uct_ha_shared *shared = &ctl->lanes->shared[slot];
    struct uct_ha_lane   *lane   = uct_ha_number_find_locked(shared, qpn);

    if (lane == NULL) {
        return 0;
    }
    lane->drained_at = uct_ha_now();
    __atomic_store_n(&lane->flushed, 1, __ATOMIC_RELEASE);
    uct_ha_fact_settle_locked(lane, HA_CTX_ASYNC);
    uct_ha_attention_locked(lane->road->conn);
    return 1;
}

void uct_ha_rail_event(void *arg, int slot, const struct ha_rail_event *event, int kept)
{
    struct uct_ha_ctl *ctl     = arg;
    int                is_ours = 1;

    pthread_mutex_lock(&ctl->lanes->wake.lock);
    switch (event->kind) {
    case HA_RAIL_EVENT_DEVICE_FATAL:
        rail_gone(ctl, slot);
        break;
    case HA_RAIL_EVENT_REMOVED:
        rail_left(ctl, slot, "is being removed");
        break;
    case HA_RAIL_EVENT_PORT_DOWN:
        rail_down(ctl, slot);
        break;
    case HA_RAIL_EVENT_PORT_UP:
    case HA_RAIL_EVENT_ADDR_CHANGE: /* also: it has an address again */
        if (ctl->lanes->left[slot]) {
            break;
        }
        if (ctl->pairs->down[slot]) {
            rail_up(ctl, slot);
        }
        address_moved(ctl, slot, kept);
        break;
    case HA_RAIL_EVENT_QP_FATAL:
        is_ours = qp_fatal(ctl, slot, event->qpn);
        break;
    case HA_RAIL_EVENT_QP_DRAINED:
        is_ours = qp_drained(ctl, slot, event->qpn);
        break;
    case HA_RAIL_EVENT_SRQ_LOW:
        uct_ha_shared_low_locked(ctl->lanes, slot);
        break;
    case HA_RAIL_EVENT_NONE:
        break;
    }
    if (is_ours) {
        uct_ha_flush_locked(ctl);
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
}
