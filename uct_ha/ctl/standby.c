/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/standby.h"

#include "base/messages.h"
#include "base/stats.h"
#include "pair/cold.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/peer.h"
#include "pair/report.h"

#include <stdio.h>
#include <string.h>

#define SEC 1000000000ull

/* What one look has found. */
struct found {
    unsigned                  endpoints, bare, back;
    uint64_t                  longest;
    const struct uct_ha_conn *first;
};

/* Only what the user holds, and what goes on: an endpoint that is being closed needs no standby. */
static int is_of_interest(const struct uct_ha_conn *conn)
{
    return conn->bound && conn->counted_works && !conn->tx->dead && !conn->close_told && !conn->peer->bye_rx &&
           !conn->peer->lost && !ha_pair_failed(&conn->pair);
}

static void set_told(struct uct_ha_conn *conn, int told)
{
    UCT_HA_STATS_ADD(unprotected, told - conn->bare_told);
    conn->bare_told = (uint8_t)told;
}

static void look(struct uct_ha_conn *conn, uint64_t limit, uint64_t now, struct found *found)
{
    if (!is_of_interest(conn)) {
        return;
    }
    found->endpoints++;
    if (conn->counted_spare || uct_ha_cold_is_well(conn)) {
        if (conn->bare_told) {
            found->back++;
            found->longest = ucs_max(found->longest, now - conn->bare_since);
        }
        set_told(conn, 0);
        conn->bare_since = 0;
    } else if (conn->bare_since == 0) {
        conn->bare_since = now;
    } else if (now - conn->bare_since >= limit) {
        set_told(conn, 1);
        found->bare++;
        if (found->first == NULL || conn->bare_since < found->first->bare_since) {
            found->first = conn;
        }
    }
}

/* Why there is none on this rail: the first thing that is missing, in the order in which it is built. */
static const char *reason(const struct uct_ha_conn *conn, int slot, uint64_t now, char *buf, size_t size)
{
    const struct uct_ha_pairs     *pairs = conn->pairs;
    const struct uct_ha_peer_rail *rail  = &conn->peer->rail[slot];
    const struct uct_ha_lane      *lane  = conn->road->lane[slot];

    if (pairs->lanes->left[slot]) {
        return "its device has failed or was removed, and is left for good";
    } else if (pairs->down[slot]) {
        return "its port is down";
    } else if (!rail->known) {
        return "no rail of the peer is known that it reaches";
    } else if (!rail->peer_up) {
        return "the peer's port is down";
    } else if (rail->way == NULL && rail->ud_qpn != 0) {
        (void)snprintf(buf, size, "no path to the peer's address (%s)",
                       rail->ah_error != 0 ? strerror(rail->ah_error) : "not looked up yet");
        return buf;
    } else if (rail->bad) {
        return "the peer does not answer on it";
    } else if (ha_damp_left(&rail->damp, now) > 0) {
        (void)snprintf(buf, size, "it has failed %u times and is left alone for %.1f s more", rail->damp.flaps,
                       (double)ha_damp_left(&rail->damp, now) / 1e9);
        return buf;
    } else if (conn->connect_error != 0) {
        (void)snprintf(buf, size, "a queue pair could not be connected (%s)", strerror(conn->connect_error));
        return buf;
    } else if (lane == NULL) {
        return "no queue pair is built yet: does this program call UCX?";
    }
    return "the peer has not built its end: does its program call UCX?";
}

static void tell_bare(struct uct_ha_ctl *ctl, const struct found *found, uint64_t now)
{
    const struct uct_ha_conn *conn = found->first;
    int                       slot = ha_pair_tx_slot(&conn->pair) == 0 ? 1 : 0;
    char                      peer[UCT_HA_ADDR_TEXT_MAX], text[160];
    const char               *rail = "no second rail", *why = text;

    if (ctl->lanes->slots < HA_SLOTS) {
        why = "this host has none that fits (ha_info shows why)";
    } else if (conn->pair.slots < HA_SLOTS) {
        why = "the peer has none";
    } else {
        rail = ha_rail_name(ctl->lanes->rail[slot]);
        why  = reason(conn, slot, now, text, sizeof(text));
    }
    ucs_warn("ha_rc [HA-%u]: %u of %u endpoints on %s have been without a standby for %.0f s: %s to %s: %s. %s",
             UCT_HA_MSG_BARE, found->bare, found->endpoints, ha_rail_name(ctl->lanes->rail[!slot]),
             (double)(now - conn->bare_since) / 1e9, rail,
             uct_ha_addr_text(&conn->peer->rail[conn->pair.slots < HA_SLOTS ? 0 : slot].where.addr, peer), why,
             uct_ha_message_remedy(UCT_HA_MSG_BARE));
}

/* After `limit`, then after twice as long, and so on: what lasts for days is not news every minute. */
void uct_ha_standby_round_locked(struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_bare *bare  = &ctl->bare;
    uint64_t            limit = (uint64_t)(ctl->pairs->config->standby_warn * 1e9);
    struct found        found = {.endpoints = 0};
    struct uct_ha_conn *conn;

    if (limit == 0 || ctl->lanes->alone || now < bare->looked_at + ucs_min(SEC, limit / 2)) {
        return;
    }
    bare->looked_at = now;
    ucs_list_for_each (conn, &ctl->pairs->conns, list) {
        look(conn, limit, now, &found);
    }
    bare->back += found.back;
    bare->longest = ucs_max(bare->longest, found.longest);
    if (found.bare > 0) {
        if (bare->told_at == 0 || now >= bare->told_at + bare->gap) {
            bare->gap     = bare->told_at == 0 ? limit : 2 * bare->gap;
            bare->told_at = now;
            tell_bare(ctl, &found, now);
        }
    } else {
        if (bare->back > 0) {
            ucs_info("ha_rc [HA-%u]: %u endpoints on %s have a standby again, after %.0f s", UCT_HA_MSG_BACK,
                     bare->back, ha_rail_name(ctl->lanes->rail[0]), (double)bare->longest / 1e9);
        }
        bare->told_at = bare->back = 0;
        bare->longest              = 0;
    }
}

/* ---- when a user connects ------------------------------------------------------------ */

/* The program runs, but without what it was started for: one line per process. */
static void tell_single(const struct uct_ha_peer *peer)
{
    static int told;

    if (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        return;
    }
    ucs_warn("ha_rc [HA-309]: no failover with peer %016lx: %s", (unsigned long)peer->cookie,
             peer->slots < HA_SLOTS
                 ? "it has a single rail"
                 : "its second rail and ours are in different networks, zones, partitions or link layers; "
                   "see UCX_HA_RC_RAILS and UCX_HA_RC_ZONES");
}

int uct_ha_standby_refuses_locked(struct uct_ha_peer *peer)
{
    const struct uct_ha_pairs *pairs = peer->pairs;

    /* it may have no address yet, or ours none that could be compared with it */
    peer->standby_open = pairs->lanes->slots == HA_SLOTS && peer->slots == HA_SLOTS && !peer->rail[1].known &&
                         peer->rail[1].where.addr.mtu == 0;
    if (pairs->lanes->slots < HA_SLOTS || peer->standby_open || (peer->slots == HA_SLOTS && peer->rail[1].known)) {
        return 0;
    }
    tell_single(peer);
    if (!pairs->config->require) {
        return 0;
    }
    ucs_error("ha_rc [HA-331]: UCX_HA_RC_REQUIRE=y, and there is no standby for peer %016lx: %s",
              (unsigned long)peer->cookie,
              peer->slots < HA_SLOTS ? "it has a single rail"
                                     : "its second rail and ours do not reach each other (UCX_HA_RC_RAILS, ZONES)");
    return 1;
}

void uct_ha_standby_learn_locked(struct uct_ha_peer *peer)
{
    if (peer->standby_open && uct_ha_standby_refuses_locked(peer)) {
        peer->refused = 1;
        uct_ha_fact_peer_lost_locked(peer, HA_FAIL_SINGLE);
    }
}
