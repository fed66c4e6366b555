/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/ep.h"

#include "base/now.h"
#include "ctl/beat.h"
#include "ctl/flush.h"
#include "ctl/path.h"
#include "data/amo.h"
#include "data/end.h"
#include "data/late.h"
#include "data/pending.h"
#include "data/tx.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/peer.h"
#include "uct/addr.h"
#include "uct/iface.h"

#include <stdlib.h>

/* ---- connection of an endpoint ------------------------------------------------ */

/* The program runs, but without what it was started for: one line per process. */
static void tell_single(const struct uct_ha_iface *iface, const struct uct_ha_peer *peer,
                        const struct uct_ha_iface_where *where)
{
    static int told;

    if (iface->lanes.slots < HA_SLOTS || peer->rail[1].known ||
        (where->slots == HA_SLOTS && where->standby.addr.mtu == 0) || /* has no address yet */
        __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        return;
    }
    ucs_warn("ha_rc [HA-309]: no failover with peer %016lx: %s", (unsigned long)where->cookie,
             where->slots < HA_SLOTS
                 ? "it has a single rail"
                 : "its second rail and ours are in different networks, zones, partitions or link layers; "
                   "see UCX_HA_RC_RAILS and UCX_HA_RC_ZONES");
}

/* Its second rail may only have no address yet. */
static int is_single(const struct uct_ha_peer *peer)
{
    return peer->slots < HA_SLOTS || (!peer->rail[1].known && peer->rail[1].where.addr.mtu != 0);
}

static struct uct_ha_peer *peer_of_address(struct uct_ha_iface *iface, const struct uct_ha_packed_rail *dev,
                                           const struct uct_ha_packed_iface *addr)
{
    struct uct_ha_rail_where  primary;
    struct uct_ha_iface_where where;
    struct uct_ha_peer       *peer;

    if (uct_ha_addr_unpack_rail(dev, &primary) != 0 || uct_ha_addr_unpack_iface(addr, &where) != 0) {
        return NULL;
    }
    peer = uct_ha_peer_find(&iface->pairs, where.cookie);
    if (peer == NULL) {
        peer = uct_ha_peer_create(&iface->pairs, where.cookie, where.slots, where.credits);
    }
    if (peer != NULL) {
        uct_ha_peer_trust(peer, &where.secret);
        uct_ha_peer_offers(peer, where.slots, where.credits, where.caps);
        uct_ha_peer_set_zone(peer, 0, primary.zone);
        uct_ha_peer_set_zone(peer, 1, where.standby.zone);
        if (!peer->rail[0].known) {
            uct_ha_path_set_rail(peer, 0, &primary, where.ud_qpn[0]);
        }
        if (!peer->rail[1].known) {
            uct_ha_path_set_rail(peer, 1, &where.standby, where.ud_qpn[1]);
        }
        tell_single(iface, peer, &where);
        uct_ha_path_set_tcp(peer, where.tcp.ip, where.tcp.port);
        uct_ha_path_find(peer, uct_ha_now());
    }
    return peer;
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

static ucs_status_t connect_ep(struct uct_ha_ep *ep, struct uct_ha_iface *iface, const uct_ep_params_t *params)
{
    struct uct_ha_peer *peer;
    struct uct_ha_conn *conn;
    struct uct_ha_flow *flow;
    ucs_status_t        status;

    peer = peer_of_address(iface, (const void *)params->dev_addr, (const void *)params->iface_addr);
    if (peer == NULL) {
        ucs_error("ha_rc [HA-310]: the peer's address is not one of this version of ucx-ha; "
                  "use the same libuct_ha.so on both hosts");
        return UCS_ERR_INVALID_ADDR;
    }
    if (iface->config.require && is_single(peer)) {
        ucs_error("ha_rc [HA-331]: UCX_HA_RC_REQUIRE=y, and there is no standby for peer %016lx: %s",
                  (unsigned long)peer->cookie,
                  peer->slots < HA_SLOTS ? "it has a single rail"
                                         : "its second rail and ours do not reach each other (UCX_HA_RC_RAILS, ZONES)");
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
    ep->flow                      = uct_ha_flow_of(conn->road);
    ep->flow->ep                  = &ep->super.super;
    uct_ha_flush_locked(&iface->ctl);
    return UCS_OK;
}

ucs_status_t uct_ha_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    struct uct_ha_iface *iface;
    struct uct_ha_ep    *ep;
    ucs_status_t         status;

    if (!ucs_test_all_flags(params->field_mask,
                            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR)) {
        return UCS_ERR_INVALID_PARAM;
    }
    iface = uct_ha_iface(params->iface);
    ep    = calloc(1, sizeof(*ep));
    if (ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ep->super.super.iface = params->iface;
    pthread_mutex_lock(&iface->lanes.wake.lock);
    status = connect_ep(ep, iface, params);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    if (status != UCS_OK) {
        free(ep);
        return status;
    }
    *ep_p = &ep->super.super;
    return UCS_OK;
}

void uct_ha_ep_destroy(uct_ep_h tl_ep)
{
    struct uct_ha_ep   *ep   = ucs_container_of((uct_base_ep_t *)(void *)tl_ep, struct uct_ha_ep, super);
    struct uct_ha_flow *flow = ep->flow;
    pthread_mutex_t    *lock = &flow->road.lanes->wake.lock;

    uct_ha_ep_pending_purge(tl_ep, NULL, NULL);
    uct_ha_tx_tail(flow);
    uct_ha_late_keep(flow);
    uct_ha_end_let_go(flow);
    pthread_mutex_lock(lock);
    flow->ep               = NULL;
    flow->road.conn->bound = 0;
    uct_ha_attention_locked(flow->road.conn);
    pthread_mutex_unlock(lock);
    free(ep);
}

/* A peer's cookie is that of one interface of one process. */
int uct_ha_ep_leads_to(uct_ep_h tl_ep, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr)
{
    struct uct_ha_rail_where  rail;
    struct uct_ha_iface_where where;

    return uct_ha_addr_unpack_rail((const void *)dev_addr, &rail) == 0 &&
           uct_ha_addr_unpack_iface((const void *)iface_addr, &where) == 0 &&
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
        !uct_ha_flow_fenced_atomics(flow)) {
        return UCS_ERR_BUSY; /* try again: there is room now, or an error to see */
    }
    priv->ep    = tl_ep;
    priv->flags = flags;
    priv->amo   = amo;
    ucs_list_add_tail(&flow->pending, &priv->list);
    uct_ha_flow_close_go(flow);
    uct_ha_pending_queue(flow);
    return UCS_OK;
}

void uct_ha_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb, void *arg)
{
    uct_ha_pending_purge(uct_ha_ep_flow(tl_ep), cb, arg);
}
