/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep.h"

#include "base/now.h"
#include "ctl/beat.h"
#include "ctl/flush.h"
#include "ctl/path.h"
#include "ctl/standby.h"
#include "data/amo.h"
#include "data/end.h"
#include "data/late.h"
#include "data/pending.h"
#include "data/tx.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/peer.h"
#include "uct/addr_cm.h"
#include "uct/iface.h"

#include <stdlib.h>

/* ---- connection of an endpoint ------------------------------------------------ */

/* UCX's rdmacm leads to it: nobody has asked whether our rails reach its, and its address says nothing of TCP. */
static ucs_status_t check_cm(struct uct_ha_iface *iface, const struct uct_ha_peer *peer,
                             const struct uct_ha_rail_where *own)
{
    enum ha_match match;

    if (!peer->rail[0].known && !peer->rail[1].known) {
        match = uct_ha_where_verdict(own, &peer->rail[0].where, &iface->pairs.match);
        ucs_error("ha_rc [HA-333]: rdmacm leads to a peer whose rail %s does not reach (%s): %s",
                  ha_rail_name(iface->lanes.rail[0]), ha_match_text(match), ha_match_remedy(match));
        return UCS_ERR_UNREACHABLE;
    }
    if (peer->tcp_addr.port == 0 && (peer->rail[0].ud_qpn == 0 || iface->ctl.ud[0] == NULL)) {
        ucs_error("ha_rc [HA-333]: rdmacm leads to a peer whose control plane cannot be reached: it or this side has "
                  "TCP alone, whose address rdmacm has no room for; set UCX_HA_RC_CONTROL=auto on both");
        return UCS_ERR_UNREACHABLE;
    }
    return UCS_OK;
}

/* What is known by now is as new or newer: packets bring it. */
static void learn_rails(struct uct_ha_peer *peer, const struct uct_ha_dev_where *dev, uint32_t ud_qpn)
{
    uct_ha_peer_set_zone(peer, 0, dev->primary.zone);
    uct_ha_peer_set_zone(peer, 1, dev->standby.zone);
    if (!peer->rail[0].known) {
        uct_ha_path_set_rail(peer, 0, &dev->primary, ud_qpn);
    }
    if (!peer->rail[1].known) {
        uct_ha_path_set_rail(peer, 1, &dev->standby, dev->standby_qpn);
    }
}

static ucs_status_t peer_of_address(struct uct_ha_iface *iface, const void *dev_addr, const void *iface_addr,
                                    struct uct_ha_peer **peer_p)
{
    struct uct_ha_rail_where  own = uct_ha_pairs_where(&iface->pairs, 0);
    struct uct_ha_dev_where   dev;
    struct uct_ha_iface_where where;
    struct uct_ha_peer       *peer;

    if (uct_ha_addr_read_dev(dev_addr, &own, &dev) != 0 || uct_ha_addr_unpack_iface(iface_addr, &where) != 0) {
        ucs_error("ha_rc [HA-310]: the peer's address is not one of this version of ucx-ha; "
                  "use the same libuct_ha.so on both hosts");
        return UCS_ERR_INVALID_ADDR;
    }
    peer = uct_ha_peer_find(&iface->pairs, where.cookie);
    if (peer == NULL) {
        peer = uct_ha_peer_create(&iface->pairs, where.cookie, where.slots, where.credits);
    }
    if (peer == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uct_ha_peer_trust(peer, &where.secret);
    uct_ha_peer_offers(peer, where.slots, where.credits, where.caps);
    if (uct_ha_addr_is_cm(dev_addr) && peer->rail[0].where.zone != 0) {
        dev.primary.zone = 0; /* that was our own one, and it has said its own */
    }
    learn_rails(peer, &dev, where.ud_qpn);
    if (uct_ha_addr_is_cm(dev_addr)) {
        if (check_cm(iface, peer, &own) != UCS_OK) {
            return UCS_ERR_UNREACHABLE;
        }
    } else {
        uct_ha_path_set_tcp(peer, dev.tcp.ip, dev.tcp.port);
    }
    uct_ha_path_find(peer, uct_ha_now());
    *peer_p = peer;
    return UCS_OK;
}

/* The peer may have connected to us first: its oldest connection that nobody
 * holds here is the one that the two sides mean. */
static struct uct_ha_conn *adopt(struct uct_ha_peer *peer)
{
    struct uct_ha_conn *conn, *best = NULL;

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        if (!conn->bound && !conn->was_bound && !conn->tx->dead && !conn->close_told &&
            !ha_pair_peer_closing(&conn->pair) && !ha_pair_failed(&conn->pair) &&
            (best == NULL || conn->sn < best->sn)) {
            best = conn;
        }
    }
    return best;
}

/* Whoever tries again at once, as libhte does nine times, is not to wait DEAD_PEER each time. */
#define SECOND_CHANCE_NS 2000000000ull

static ucs_status_t connect_ep(struct uct_ha_iface *iface, const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    struct uct_ha_peer *peer;
    struct uct_ha_conn *conn;
    struct uct_ha_flow *flow;
    ucs_status_t        status;

    status = peer_of_address(iface, params->dev_addr, params->iface_addr, &peer);
    if (status != UCS_OK) {
        return status;
    }
    if (uct_ha_standby_refuses_locked(peer)) {
        return UCS_ERR_UNREACHABLE;
    }
    if (peer->bye_rx || peer->refused) {
        return UCS_ERR_UNREACHABLE;
    }
    if (peer->lost) { /* it was silent for too long, and may answer now, but soon */
        uct_ha_path_revive(peer,
                           uct_ha_now() - (iface->pairs.dead_peer - ucs_min(iface->pairs.dead_peer, SECOND_CHANCE_NS)));
    }
    conn = adopt(peer);
    if (conn == NULL) {
        status = uct_ha_flow_create(&iface->flows, peer, peer->next_sn, 0, &flow);
        if (status != UCS_OK) {
            return status;
        }
        conn = flow->road.conn;
        uct_ha_fact_start_locked(conn);
    }
    conn->bound = conn->was_bound = 1;
    flow                          = uct_ha_flow_of(conn->road);
    flow->is_held                 = 1;
    flow->super.super.iface       = params->iface;
    *ep_p                         = &flow->super.super;
    uct_ha_flush_locked(&iface->ctl);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    struct uct_ha_iface *iface;
    ucs_status_t         status;

    if (!ucs_test_all_flags(params->field_mask,
                            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR)) {
        return UCS_ERR_INVALID_PARAM;
    }
    iface = uct_ha_iface(params->iface);
    pthread_mutex_lock(&iface->lanes.wake.lock);
    status = connect_ep(iface, params, ep_p);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return status;
}

void uct_ha_ep_destroy(uct_ep_h tl_ep)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    pthread_mutex_t    *lock = &flow->road.lanes->wake.lock;

    uct_ha_ep_pending_purge(tl_ep, NULL, NULL);
    uct_ha_tx_tail(flow);
    uct_ha_late_keep(flow);
    uct_ha_end_let_go(flow);
    pthread_mutex_lock(lock);
    flow->is_held          = 0;
    flow->road.conn->bound = 0;
    uct_ha_attention_locked(flow->road.conn);
    pthread_mutex_unlock(lock);
}

/* A peer's cookie is that of one interface of one process; UCX may know its device from rdmacm alone. */
int uct_ha_ep_leads_to(uct_ep_h tl_ep, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr)
{
    struct uct_ha_iface_where where;

    (void)dev_addr;
    return uct_ha_addr_unpack_iface((const void *)iface_addr, &where) == 0 &&
           uct_ha_ep_flow(tl_ep)->road.conn->peer->cookie == where.cookie;
}

/* ---- health ---------------------------------------------------------------------- */

ucs_status_t uct_ha_ep_check(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_flow *flow = uct_ha_ep_flow(tl_ep);
    struct uct_ha_conn *conn = flow->road.conn;

    (void)flags;
    (void)comp;
    /* Heartbeats watch the peer all the time: only tell what they found. */
    if (flow->tx.dead) {
        (void)uct_ha_tx_refuse(flow); /* from progress: UCP goes on with the endpoint behind this call */
        return UCS_OK;
    }
    if (conn->pairs->heartbeat == 0) {
        pthread_mutex_lock(&flow->road.lanes->wake.lock);
        if (!conn->peer->lost && uct_ha_beat_ask_locked(conn->peer, uct_ha_now())) {
            uct_ha_beat_lose_peer_locked(conn->peer);
        }
        pthread_mutex_unlock(&flow->road.lanes->wake.lock);
    }
    return UCS_OK;
}

/* End this endpoint: nothing may touch its buffers afterwards. */
static void cancel(struct uct_ha_flow *flow)
{
    struct ha_event event = {.kind = HA_EV_PEER_LOST, .value = HA_FAIL_CANCELED};

    if (!flow->canceled) {
        flow->canceled = 1;
        uct_ha_fact(flow->road.conn, &event);
    }
}

ucs_status_t uct_ha_ep_invalidate(uct_ep_h tl_ep)
{
    struct uct_ha_flow *flow  = uct_ha_ep_flow(tl_ep);
    struct ha_event     event = {.kind = HA_EV_PEER_LOST, .value = HA_FAIL_PEER_DEAD};

    uct_ha_fact(flow->road.conn, &event);
    return UCS_OK;
}

/* ---- flush and fence -------------------------------------------------------------- */

/* UCP relies on it that what was asked for before a flush has been sent when it ends: a flush waits behind requests
 * that wait for room. Those of a connection that ends are UCP's to purge. */
static int waits_behind(struct uct_ha_flow *flow)
{
    return !ucs_list_is_empty(&flow->pending) && flow->flows->dispatching != flow && !flow->tx.dead;
}

ucs_status_t uct_ha_ep_flush(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp)
{
    struct uct_ha_flow  *flow = uct_ha_ep_flow(tl_ep);
    struct uct_ha_flush *flush;

    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        cancel(flow);
    } else if (waits_behind(flow)) {
        flow->amo_refused = 0;
        return UCS_ERR_NO_RESOURCE;
    }
    if (ha_log_used(&flow->tx.log) == 0 && uct_ha_flow_atomics(flow) == 0 && !uct_ha_flow_ends(flow)) {
        return UCS_OK;
    }
    uct_ha_tx_tail(flow);
    if (comp != NULL) {
        flush = malloc(sizeof(*flush));
        if (flush == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        flush->comp  = comp;
        flush->index = flow->tx.log.tail;
        flush->amo   = flow->amo_done + uct_ha_flow_atomics(flow);
        ucs_list_add_tail(&flow->flushes, &flush->list);
    }
    return UCS_INPROGRESS;
}

ucs_status_t uct_ha_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    (void)flags;
    uct_ha_ep_flow(tl_ep)->fence_next = 1;
    uct_ha_flow_close_go(uct_ha_ep_flow(tl_ep));
    return UCS_OK;
}

/* ---- pending ---------------------------------------------------------------------- */

ucs_status_t uct_ha_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req, unsigned flags)
{
    struct uct_ha_flow    *flow = uct_ha_ep_flow(tl_ep);
    uct_ha_pending_priv_t *priv = uct_ha_pending_priv(req);
    unsigned               amo  = flow->amo_refused;

    flow->amo_refused = 0; /* it was about this one */
    if (uct_ha_tx_check(flow, 1) != UCS_ERR_NO_RESOURCE && uct_ha_flow_atomics(flow) < UCT_HA_AMO_WINDOW &&
        !uct_ha_flow_fenced_atomics(flow) && flow->flows->gets_left > 0) {
        return UCS_ERR_BUSY; /* try again: there is room now, or an error to see */
    }
    priv->ep    = tl_ep;
    priv->flags = flags;
    priv->amo   = amo;
    ucs_list_add_tail(&flow->pending, &priv->list);
    uct_ha_flow_hold_go(flow);
    uct_ha_pending_queue(flow);
    return UCS_OK;
}

void uct_ha_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb, void *arg)
{
    uct_ha_pending_purge(uct_ha_ep_flow(tl_ep), cb, arg);
}
