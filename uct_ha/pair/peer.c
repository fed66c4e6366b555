/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/peer.h"

#include "ctl/ctl.h"
#include "uct/iface.h"
#include "ctl/look.h"
#include "base/stats.h"

#include <stdlib.h>
#include <string.h>

#define STEADY_ANSWERS 2
#define QUESTIONS      3 /* one may be lost */

/* A peer without connections is kept so long after its last word, for what it may still
 * ask: did its good-bye arrive, is its connection gone here as well? */
#define GONE_NS 5000000000ull  /* it is lost, has left, or looked for somebody else */
#define IDLE_NS 60000000000ull /* it may come back */

struct uct_ha_peer *uct_ha_peer_find(struct uct_ha_iface *iface, uint64_t cookie)
{
    struct uct_ha_peer *peer;

    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        if (peer->cookie == cookie) {
            return peer;
        }
    }
    return NULL;
}

/* ---- life ---------------------------------------------------------------------- */

static uint32_t first_number(const struct uct_ha_ctl *ctl, uint64_t cookie)
{
    uint32_t kept = ctl->num_forgotten < UCT_HA_FORGOTTEN_MAX ? ctl->num_forgotten :
                                                                UCT_HA_FORGOTTEN_MAX;

    for (uint32_t i = 1; i <= kept; i++) { /* the latest first */
        const struct uct_ha_forgotten *old =
            &ctl->forgotten[(ctl->num_forgotten - i) % UCT_HA_FORGOTTEN_MAX];

        if (old->cookie == cookie) {
            return old->next_sn;
        }
    }
    return 0;
}

struct uct_ha_peer *uct_ha_peer_create(struct uct_ha_iface *iface, uint64_t cookie,
                                       unsigned slots, unsigned credits)
{
    struct uct_ha_peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL) {
        return NULL;
    }
    peer->iface   = iface;
    peer->cookie  = cookie;
    peer->slots   = slots;
    peer->credits = credits;
    peer->next_sn = first_number(&iface->ctl, cookie);
    peer->born    = uct_ha_now();
    peer->last_rx = peer->born;
    for (int s = 0; s < HA_SLOTS; s++) {
        peer->rail[s].peer_up = 1;
        ha_damp_init(&peer->rail[s].damp, iface->ctl.cooldown, iface->ctl.cooldown_max);
    }
    ucs_list_head_init(&peer->conns);
    ucs_list_add_tail(&iface->ctl.peers, &peer->list);
    return peer;
}

void uct_ha_peer_offers(struct uct_ha_peer *peer, unsigned slots, unsigned credits, unsigned caps)
{
    if (ucs_list_is_empty(&peer->conns)) {
        peer->slots   = slots;
        peer->credits = credits;
        peer->caps    = caps;
    }
}

void uct_ha_peer_destroy(struct uct_ha_peer *peer)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        uct_ha_peer_drop_ah(peer, s);
    }
    if (peer->tcp_link != NULL) {
        uct_ha_tcp_link_destroy(peer->tcp_link);
    }
    ucs_list_del(&peer->list);
    free(peer);
}

/* Nobody talks about the rails of a peer that is gone: to look for them would take a
 * second each, again and again, which others wait for. */
static int is_of_interest(struct uct_ha_peer *peer, uint64_t now)
{
    return now < peer->last_rx + GONE_NS || (!peer->lost && !ucs_list_is_empty(&peer->conns));
}

static void forget(struct uct_ha_peer *peer)
{
    struct uct_ha_ctl *ctl = &peer->iface->ctl;

    if (peer->next_sn != 0 && !peer->bye_rx) {
        ctl->forgotten[ctl->num_forgotten++ % UCT_HA_FORGOTTEN_MAX] =
            (struct uct_ha_forgotten) { peer->cookie, peer->next_sn };
    }
    uct_ha_peer_destroy(peer);
}

void uct_ha_peer_check(struct uct_ha_peer *peer, uint64_t now)
{
    uint64_t patience = peer->lost || peer->bye_rx || peer->stranger ? GONE_NS : IDLE_NS;

    if (is_of_interest(peer, now)) {
        uct_ha_peer_resolve(peer, now);
    }
    if (ucs_list_is_empty(&peer->conns) && now > peer->last_rx + patience &&
        !peer->rail[0].ah_busy && !peer->rail[1].ah_busy) {
        forget(peer);
    }
}

void uct_ha_peer_revive(struct uct_ha_peer *peer, uint64_t heard)
{
    peer->lost    = peer->replaced = 0;
    peer->asked   = 0;
    peer->last_rx = heard;
    for (int s = 0; s < peer->iface->slots; s++) {
        struct uct_ha_peer_rail *rail = &peer->rail[s];

        rail->waiting = rail->bad = 0;
        rail->missed  = rail->answered = 0;
        rail->beat.since = 0;
        if (rail->known && !rail->ah_busy) {
            uct_ha_peer_resolve_anew(peer, s);
        }
    }
}

static int same_path(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b)
{
    return memcmp(a->addr.gid, b->addr.gid, sizeof(a->addr.gid)) == 0 &&
           a->addr.lid == b->addr.lid && a->addr.link_layer == b->addr.link_layer;
}

/* Can this rail of the peer talk to ours, as far as both are known now? */
static void judge(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    struct uct_ha_rail_where own  = uct_ha_iface_where(peer->iface, slot);

    rail->known = (uint8_t)uct_ha_addr_match(&own, &rail->where, &peer->iface->match);
}

void uct_ha_peer_set_rail(struct uct_ha_peer *peer, int slot,
                          const struct uct_ha_rail_where *where, uint32_t ud_qpn)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    ha_zone_t                zone;
    uint16_t                 pkey;

    if (slot >= peer->iface->slots || where->addr.mtu == 0) {
        return; /* nothing is known of that rail yet: keep what we had */
    }
    if (rail->known && !same_path(&rail->where, where)) {
        uct_ha_peer_resolve_anew(peer, slot);
    }
    zone         = rail->where.zone;
    pkey         = rail->where.addr.pkey;
    rail->where  = *where;
    rail->ud_qpn = ud_qpn;
    if (where->zone == 0) { /* control packets have neither */
        rail->where.zone = zone;
    }
    if (where->addr.pkey == 0) {
        rail->where.addr.pkey = pkey;
    }
    judge(peer, slot);
}

void uct_ha_peer_set_zone(struct uct_ha_peer *peer, int slot, ha_zone_t zone)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (zone == 0 || rail->where.zone == zone || slot >= peer->iface->slots) {
        return;
    }
    rail->where.zone = zone;
    if (rail->where.addr.mtu != 0) {
        judge(peer, slot);
    }
}

void uct_ha_peer_set_up(struct uct_ha_peer *peer, int slot, int up)
{
    if (up && !peer->rail[slot].peer_up) {
        uct_ha_peer_resolve_anew(peer, slot);
    }
    peer->rail[slot].peer_up = up != 0;
}

void uct_ha_peer_rail_moved(struct uct_ha_peer *peer, int slot)
{
    if (peer->rail[slot].where.addr.mtu != 0) {
        judge(peer, slot);
        uct_ha_peer_resolve_anew(peer, slot);
    }
}

void uct_ha_peer_set_tcp(struct uct_ha_peer *peer, const uint8_t *ip, uint16_t port)
{
    if (port == peer->tcp_addr.port && memcmp(ip, peer->tcp_addr.ip, 4) == 0) {
        return;
    }
    if (peer->tcp_link != NULL) {
        uct_ha_tcp_link_destroy(peer->tcp_link);
        peer->tcp_link = NULL;
    }
    memcpy(peer->tcp_addr.ip, ip, sizeof(peer->tcp_addr.ip));
    peer->tcp_addr.port = port;
}

int uct_ha_peer_rail_usable(const struct uct_ha_peer *peer, int slot)
{
    return slot < peer->iface->slots && peer->rail[slot].known && !peer->rail[slot].bad &&
           !peer->iface->ctl.down[slot];
}

static int blames_rail(unsigned cause)
{
    return cause != HA_CAUSE_NONE && cause != HA_CAUSE_PROGRAM && cause != HA_CAUSE_FAILBACK &&
           cause != HA_CAUSE_CLOSE && cause != HA_CAUSE_PEER && cause != HA_CAUSE_NOT_READY;
}

uint64_t uct_ha_peer_rail_failed(struct uct_ha_peer *peer, int slot, unsigned cause,
                                 uint64_t born, uint64_t now)
{
    struct ha_damp *damp = &peer->rail[slot].damp;

    if (!blames_rail(cause)) {
        return 0;
    }
    if (ha_damp_flap(damp, born, now)) {
        ucs_debug("ha_rc: %s towards %016lx failed (%s), left alone for %.3f s",
                  ha_rail_name(peer->iface->rail[slot]), (unsigned long)peer->cookie,
                  ha_cause_name(cause), (double)ha_damp_hold(damp) / 1e9);
    }
    return ha_damp_left(damp, now);
}

int uct_ha_peer_rail_answers(const struct uct_ha_peer *peer, int slot, uint64_t now)
{
    const struct uct_ha_peer_rail *rail = &peer->rail[slot];

    return peer->iface->ctl.heartbeat != 0 && !rail->bad && rail->missed == 0 &&
           now - rail->last_rx < 3 * peer->iface->ctl.heartbeat;
}

/* Data that goes through is a better sign of life than a ping, which a busy
 * rail may lose. Reads what progress owns: a torn picture only costs a round. */
static int data_flows(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct uct_ha_lane *lane;
    uint32_t            sign;
    int                 flows = 0;

    ucs_list_for_each(conn, &peer->conns, peer_link) {
        lane = conn->lane[slot];
        if (lane == NULL || lane->fenced) {
            continue;
        }
        sign = __atomic_load_n(&lane->rx_done, __ATOMIC_RELAXED);
        if (ha_pair_tx_slot(&conn->pair) == slot) {
            sign += __atomic_load_n(&conn->log.head, __ATOMIC_RELAXED);
        }
        flows     |= sign != lane->sign;
        lane->sign = sign;
    }
    return flows;
}

int uct_ha_peer_is_alive(const struct uct_ha_peer *peer, uint64_t now)
{
    const struct uct_ha_ctl *ctl = &peer->iface->ctl;

    for (int s = 0; s < peer->iface->slots && ctl->heartbeat != 0 && !peer->lost; s++) {
        if (peer->rail[s].known && peer->rail[s].peer_up && !ctl->down[s] &&
            now - peer->rail[s].last_rx <= ctl->dead_peer / 2) {
            return 1;
        }
    }
    return 0;
}

int uct_ha_peer_ask(struct uct_ha_peer *peer, uint64_t now)
{
    if (peer->asked == 0 || peer->last_rx > peer->asked_at) {
        peer->asked_at = now;
        peer->asked    = 0;
    } else if (peer->asked >= QUESTIONS && now - peer->asked_at > peer->iface->ctl.dead_peer) {
        return 1;
    }
    peer->asked++;
    for (int s = 0; s < peer->iface->slots; s++) {
        if (peer->rail[s].ah != NULL && !peer->iface->ctl.down[s]) {
            uct_ha_ctl_msg_ping_locked(peer, s);
        }
    }
    if (!uct_ha_ctl_msg_probes(peer)) {
        uct_ha_ctl_msg_ping_locked(peer, UCT_HA_CARRIER_TCP);
    }
    return 0;
}

/* Pings are missing: look early enough for the answers to be there, and to be compared, when
 * it would be suspected. */
static void look_after(struct uct_ha_peer *peer, int slot, unsigned limit)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (rail->missed + 1 >= limit && rail->flows) {
        rail->missed = limit - 1;
    }
    rail->flows = 0;
    if (rail->missed + 2 >= limit) {
        uct_ha_look_begin_locked(peer, slot);
    }
}

int uct_ha_peer_heartbeat(struct uct_ha_peer *peer, uint64_t now, int *suspect)
{
    struct uct_ha_iface     *iface  = peer->iface;
    unsigned                 limit  = iface->config.heartbeat_misses;
    struct uct_ha_peer_rail *rail;

    *suspect = HA_NO_SLOT;
    for (int s = 0; s < iface->slots; s++) {
        rail = &peer->rail[s];
        if (!rail->known || rail->ah == NULL || rail->ud_qpn == 0 || iface->ctl.down[s]) {
            rail->waiting = 0;
            continue;
        }
        if (data_flows(peer, s)) {
            rail->missed   = 0;
            rail->fresh_at = now + iface->ctl.fresh_ns;
        } else if (rail->waiting) {
            rail->missed++;
            rail->answered = 0;
            UCT_HA_STATS_ADD(heartbeats_missed, 1);
            look_after(peer, s, limit);
        }
        if (rail->fresh_at == 0) {
            rail->fresh_at = now + iface->ctl.fresh_ns;
        } else if (now >= rail->fresh_at) {
            /* Silent for long: perhaps it is our idea of the way that is old. */
            rail->fresh_at = now + iface->ctl.fresh_ns;
            uct_ha_peer_resolve_anew(peer, s);
            continue;
        }
        uct_ha_ctl_msg_ping_locked(peer, s);
    }
    if (!uct_ha_ctl_msg_probes(peer)) {
        uct_ha_ctl_msg_ping_locked(peer, UCT_HA_CARRIER_TCP); /* is it alive at all */
    }
    /* Only a rail that is silent while the other one keeps answering is suspect:
     * with both silent it is the peer that is slow, stopped or dead, and one
     * that wakes up may answer on one rail a moment before the other. */
    for (int s = 0; s < iface->slots && iface->slots == HA_SLOTS; s++) {
        if (peer->rail[s].missed >= limit && peer->rail[1 - s].answered >= STEADY_ANSWERS &&
            ha_beat_is_silent(&peer->rail[s].beat, &peer->rail[1 - s].beat, now)) {
            *suspect = s;
        }
    }
    return now > peer->last_rx && now - peer->last_rx > iface->ctl.dead_peer;
}
