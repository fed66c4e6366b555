/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/peer.h"

#include "base/now.h"

#include <stdlib.h>

struct uct_ha_peer *uct_ha_peer_find(struct uct_ha_pairs *pairs, uint64_t cookie)
{
    struct uct_ha_hash_link *link = uct_ha_hash_chain(&pairs->by_cookie, cookie);

    while (link != NULL && link->key != cookie) {
        link = link->next;
    }
    return link == NULL ? NULL : ucs_container_of(link, struct uct_ha_peer, by_cookie);
}

/* ---- life ---------------------------------------------------------------------- */

static const struct uct_ha_forgotten *find_forgotten(const struct uct_ha_pairs *pairs, uint64_t cookie)
{
    uint32_t kept = pairs->num_forgotten < UCT_HA_FORGOTTEN_MAX ? pairs->num_forgotten : UCT_HA_FORGOTTEN_MAX;

    for (uint32_t i = 1; i <= kept; i++) { /* the latest first */
        const struct uct_ha_forgotten *old = &pairs->forgotten[(pairs->num_forgotten - i) % UCT_HA_FORGOTTEN_MAX];

        if (old->cookie == cookie) {
            return old;
        }
    }
    return NULL;
}

struct uct_ha_peer *uct_ha_peer_create(struct uct_ha_pairs *pairs, uint64_t cookie, unsigned slots, unsigned credits)
{
    const struct uct_ha_forgotten *old  = find_forgotten(pairs, cookie);
    struct uct_ha_peer            *peer = calloc(1, sizeof(*peer));

    if (peer == NULL || uct_ha_hash_add(&pairs->by_cookie, &peer->by_cookie, cookie) != 0) {
        free(peer);
        return NULL;
    }
    peer->pairs   = pairs;
    peer->cookie  = cookie;
    peer->slots   = slots;
    peer->credits = credits;
    peer->told    = pairs->told;
    peer->born    = uct_ha_now();
    peer->last_rx = peer->born;
    for (int s = 0; s < HA_SLOTS; s++) {
        peer->rail[s].peer_up = 1;
        ha_damp_init(&peer->rail[s].damp, pairs->cooldown, pairs->cooldown_max);
    }
    ucs_list_head_init(&peer->conns);
    if (old != NULL) {
        peer->next_sn = old->next_sn;
        uct_ha_peer_heard_until(peer, old->heard);
    }
    uct_ha_due_peer_begin(&peer->due);
    ucs_list_add_tail(&pairs->peers, &peer->list);
    ucs_list_add_tail(&pairs->turns, &peer->turn_link);
    uct_ha_busy_begin(&peer->busy, &pairs->wakes);
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
    peer->pairs->told = ucs_max(peer->pairs->told, peer->told);
    uct_ha_due_peer_end(&peer->due);
    uct_ha_hash_remove(&peer->pairs->by_cookie, &peer->by_cookie);
    uct_ha_busy_end(&peer->busy);
    ucs_list_del(&peer->list);
    ucs_list_del(&peer->turn_link);
    free(peer);
}

void uct_ha_peer_forget(struct uct_ha_peer *peer)
{
    struct uct_ha_pairs *pairs = peer->pairs;

    if (peer->next_sn != 0 || peer->newest != 0) {
        pairs->forgotten[pairs->num_forgotten++ % UCT_HA_FORGOTTEN_MAX] = (struct uct_ha_forgotten){
            peer->cookie, peer->newest, peer->next_sn};
    }
    uct_ha_peer_destroy(peer);
}

/* ---- what it says ---------------------------------------------------------------- */

void uct_ha_peer_trust(struct uct_ha_peer *peer, const struct ha_secret *secret)
{
    peer->secret       = *secret;
    peer->secret_known = 1;
}

uint64_t uct_ha_peer_heard(struct uct_ha_pairs *pairs, uint64_t cookie)
{
    const struct uct_ha_forgotten *old = find_forgotten(pairs, cookie);

    return old == NULL ? 0 : old->heard;
}

int uct_ha_peer_hear(struct uct_ha_peer *peer, int carrier, uint64_t number)
{
    return ha_window_take(&peer->heard[carrier], number);
}

void uct_ha_peer_heard_until(struct uct_ha_peer *peer, uint64_t number)
{
    for (int i = 0; i < HA_CARRIERS; i++) {
        ha_window_close(&peer->heard[i], number);
    }
    peer->newest = ucs_max(peer->newest, number);
}

/* ---- its rails -------------------------------------------------------------------- */

void uct_ha_peer_judge(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];
    struct uct_ha_rail_where own  = uct_ha_pairs_where(peer->pairs, slot);

    rail->known = (uint8_t)uct_ha_where_match(&own, &rail->where, &peer->pairs->match);
}

void uct_ha_peer_set_zone(struct uct_ha_peer *peer, int slot, ha_zone_t zone)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (zone == 0 || rail->where.zone == zone || slot >= peer->pairs->lanes->slots) {
        return;
    }
    rail->where.zone = zone;
    if (rail->where.addr.mtu != 0) {
        uct_ha_peer_judge(peer, slot);
    }
}

int uct_ha_peer_rail_usable(const struct uct_ha_peer *peer, int slot)
{
    return slot < peer->pairs->lanes->slots && peer->rail[slot].known && !peer->rail[slot].bad &&
           peer->rail[slot].peer_up && !peer->pairs->down[slot];
}

static int blames_rail(unsigned cause)
{
    return cause != HA_CAUSE_NONE && cause != HA_CAUSE_PROGRAM && cause != HA_CAUSE_FAILBACK &&
           cause != HA_CAUSE_CLOSE && cause != HA_CAUSE_PEER && cause != HA_CAUSE_NOT_READY;
}

uint64_t uct_ha_peer_rail_failed(struct uct_ha_peer *peer, int slot, unsigned cause, uint64_t born, uint64_t now)
{
    struct ha_damp *damp = &peer->rail[slot].damp;

    if (!blames_rail(cause)) {
        return 0;
    }
    if (ha_damp_flap(damp, born, now)) {
        ucs_debug("ha_rc: %s towards %016lx failed (%s), left alone for %.3f s",
                  ha_rail_name(peer->pairs->lanes->rail[slot]), (unsigned long)peer->cookie, ha_cause_name(cause),
                  (double)ha_damp_hold(damp) / 1e9);
    }
    return ha_damp_left(damp, now);
}

int uct_ha_peer_rail_answers(const struct uct_ha_peer *peer, int slot, uint64_t now)
{
    const struct uct_ha_peer_rail *rail = &peer->rail[slot];

    return peer->pairs->heartbeat != 0 && !rail->bad && rail->missed == 0 &&
           now - rail->last_rx < 3 * peer->pairs->turn_ns;
}

int uct_ha_peer_is_alive(const struct uct_ha_peer *peer, uint64_t now)
{
    const struct uct_ha_pairs *pairs = peer->pairs;

    for (int s = 0; s < peer->pairs->lanes->slots && pairs->heartbeat != 0 && !peer->lost; s++) {
        if (peer->rail[s].known && peer->rail[s].peer_up && !pairs->down[s] &&
            (now - peer->rail[s].last_rx <= pairs->dead_peer / 2 || peer->stall.stalled)) {
            return 1;
        }
    }
    return 0;
}
