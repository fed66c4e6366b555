/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/beat.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/look.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#define STEADY_ANSWERS 2
#define QUESTIONS      3 /* one may be lost */

/* Data that goes through is a better sign of life than a ping, which a busy
 * rail may lose. Reads what progress owns: a torn picture only costs a round. */
static int data_flows(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct uct_ha_lane *lane;
    uint32_t            sign;
    int                 flows = 0;

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        lane = conn->road->lane[slot];
        if (lane == NULL || lane->fenced) {
            continue;
        }
        sign = __atomic_load_n(&lane->received, __ATOMIC_RELAXED);
        if (ha_pair_tx_slot(&conn->pair) == slot) {
            sign += __atomic_load_n(&conn->tx->log.head, __ATOMIC_RELAXED);
        }
        flows |= sign != lane->sign;
        lane->sign = sign;
    }
    return flows;
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

/* One round with a peer; sets *suspect to a rail that is silent while the
 * other answers (else HA_NO_SLOT) and returns 1 when the peer is silent on all. */
static int heartbeat(struct uct_ha_peer *peer, uint64_t now, int *suspect)
{
    struct uct_ha_ctl       *ctl   = peer->pairs->ctl;
    unsigned                 limit = ctl->pairs->config->heartbeat_misses;
    struct uct_ha_peer_rail *rail;

    *suspect = HA_NO_SLOT;
    for (int s = 0; s < ctl->lanes->slots; s++) {
        rail = &peer->rail[s];
        if (!rail->known || rail->way == NULL || rail->ud_qpn == 0 || ctl->pairs->down[s]) {
            rail->waiting = 0;
            continue;
        }
        if (data_flows(peer, s)) {
            rail->missed   = 0;
            rail->fresh_at = now + ctl->fresh_ns;
        } else if (rail->waiting) {
            rail->missed++;
            rail->answered = 0;
            UCT_HA_STATS_ADD(heartbeats_missed, 1);
            look_after(peer, s, limit);
        }
        if (rail->fresh_at == 0) {
            rail->fresh_at = now + ctl->fresh_ns;
        } else if (now >= rail->fresh_at) {
            /* Silent for long: perhaps it is our idea of the way that is old. */
            rail->fresh_at = now + ctl->fresh_ns;
            uct_ha_path_anew(peer, s);
            continue;
        }
        uct_ha_send_ping_locked(peer, s);
    }
    if (!uct_ha_send_probes(peer)) {
        uct_ha_send_ping_locked(peer, HA_CARRIER_TCP); /* is it alive at all */
    }
    /* Only a rail that is silent while the other one keeps answering is suspect:
     * with both silent it is the peer that is slow, stopped or dead, and one
     * that wakes up may answer on one rail a moment before the other. */
    for (int s = 0; s < ctl->lanes->slots && ctl->lanes->slots == HA_SLOTS; s++) {
        if (peer->rail[s].missed >= limit && peer->rail[1 - s].answered >= STEADY_ANSWERS &&
            ha_beat_is_silent(&peer->rail[s].beat, &peer->rail[1 - s].beat, now)) {
            *suspect = s;
        }
    }
    return now > peer->last_rx && now - peer->last_rx > ctl->pairs->dead_peer;
}

static void suspect_rail(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .cause = HA_CAUSE_HEARTBEAT};

    peer->rail[slot].bad    = 1;
    peer->rail[slot].bad_at = uct_ha_now();
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        event.gen = conn->pair.lane[slot].gen;
        uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
    }
    uct_ha_fact_usable_locked(peer);
}

/* It answers, so it may go on as the standby; and while it is slow, work does
 * not go back to it. */
static void leave_slow_rail(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;
    struct ha_event     hold    = {.kind = HA_EV_HOLD, .slot = slot, .wait = ha_damp_hold(&peer->rail[slot].damp)};
    struct ha_event     suspect = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .cause = HA_CAUSE_SLOW};

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        uct_ha_failover_event_locked(conn, &hold, HA_CTX_ASYNC);
        if (ha_pair_tx_slot(&conn->pair) == slot) {
            suspect.gen = conn->pair.lane[slot].gen;
            uct_ha_failover_event_locked(conn, &suspect, HA_CTX_ASYNC);
        }
    }
}

void uct_ha_beat_lose_peer_locked(struct uct_ha_peer *peer)
{
    peer->lost = 1;
    uct_ha_fact_peer_lost_locked(peer, HA_FAIL_PEER_DEAD);
}

/* This process was stopped or starved: what it did not hear meanwhile says
 * nothing about its peers. Only that time is forgiven: pauses may be many, and a dead
 * peer is to be noticed all the same. */
static void forgive_silence(struct uct_ha_ctl *ctl, uint64_t now)
{
    uint64_t            pause = now - ctl->round_at;
    struct uct_ha_peer *peer;

    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        peer->last_rx = ucs_min(peer->last_rx + pause, now);
        for (int s = 0; s < HA_SLOTS; s++) {
            peer->rail[s].waiting    = 0;
            peer->rail[s].missed     = 0;
            peer->rail[s].beat.since = 0;
            if (now - ctl->round_at > ctl->fresh_ns) {
                peer->rail[s].fresh_at = 0; /* short pauses may be many: those do not count */
            }
        }
    }
}

void uct_ha_beat_round_locked(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_peer *peer;
    int                 suspect;

    if (now - ctl->round_at > 4 * ctl->pairs->heartbeat) {
        forgive_silence(ctl, now);
    }
    ctl->round_at = now;

    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        if (peer->bye_rx || peer->lost || ucs_list_is_empty(&peer->conns)) {
            continue;
        }
        if (heartbeat(peer, now, &suspect)) {
            uct_ha_beat_lose_peer_locked(peer);
        } else if (suspect != HA_NO_SLOT && !peer->rail[suspect].bad) {
            suspect_rail(peer, suspect);
        }
        for (int s = 0; s < HA_SLOTS; s++) {
            if (ha_slow_is_worse(&peer->rail[s].slow, &peer->rail[!s].slow)) {
                leave_slow_rail(peer, s);
            }
        }
    }
}

/* ---- without heartbeats ------------------------------------------------------- */

int uct_ha_beat_ask_locked(struct uct_ha_peer *peer, uint64_t now)
{
    if (peer->asked == 0 || peer->last_rx > peer->asked_at) {
        peer->asked_at = now;
        peer->asked    = 0;
    } else if (peer->asked >= QUESTIONS && now - peer->asked_at > peer->pairs->dead_peer) {
        return 1;
    }
    peer->asked++;
    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        if (peer->rail[s].way != NULL && !peer->pairs->down[s]) {
            uct_ha_send_ping_locked(peer, s);
        }
    }
    if (!uct_ha_send_probes(peer)) {
        uct_ha_send_ping_locked(peer, HA_CARRIER_TCP);
    }
    return 0;
}
