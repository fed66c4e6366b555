/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/fall.h"

#include "base/now.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#define FIRST   8u         /* move at once in the beginning, */
#define MOST    64u        /* ... and later: more wait for each other, and say everything twice */
#define BATCH   64u        /* told without letting go of the lock */
#define PLACES  1024u      /* of the table, likewise: it may have gaps */
#define STEP_NS 1000000ull /* from one batch to the next */
#define STUCK_NS                                                                                        \
    40000000ull /* those who move may wait for peers that are gone: then there is room for as many more \
                 */

/* A lane that was built since is another one, unless the rail is still down. */
static int is_lost(const struct uct_ha_ctl *ctl, const struct uct_ha_conn *conn, int slot)
{
    const struct uct_ha_lane *lane = conn->road->lane[slot];

    return ctl->pairs->down[slot] || lane == NULL || lane->born <= ctl->fall[slot].at;
}

static void suspect_lane(struct uct_ha_conn *conn, int slot)
{
    struct ha_event event = {
        .kind = HA_EV_LANE_SUSPECT, .slot = slot, .gen = conn->pair.lane[slot].gen, .cause = HA_CAUSE_HEARTBEAT};

    uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
}

void uct_ha_fall_peer_locked(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;

    peer->rail[slot].bad    = 1;
    peer->rail[slot].bad_at = uct_ha_now();
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        suspect_lane(conn, slot);
    }
    uct_ha_fact_usable_locked(peer);
}

void uct_ha_fall_standbys_locked(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_conn *conn;

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        if (ha_pair_tx_slot(&conn->pair) == !slot) {
            suspect_lane(conn, slot);
        }
    }
}

static void suspect(struct uct_ha_ctl *ctl, struct uct_ha_conn *conn, int slot)
{
    const struct uct_ha_peer_rail *rail = &conn->peer->rail[slot];

    if (!rail->bad && !rail->lives && ctl->rail_rx[slot] < ctl->fall[slot].at && ha_pair_tx_slot(&conn->pair) == slot &&
        uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx)) {
        uct_ha_fall_peer_locked(conn->peer, slot);
    }
}

static void tell(struct uct_ha_ctl *ctl, struct uct_ha_conn *conn, int slot)
{
    struct ha_event event = {
        .kind = HA_EV_LANE_DOWN, .slot = slot, .gen = conn->pair.lane[slot].gen, .cause = ctl->fall[slot].cause};

    if (ctl->fall[slot].cause == HA_CAUSE_HEARTBEAT) {
        suspect(ctl, conn, slot);
        return;
    }
    if (is_lost(ctl, conn, slot)) {
        uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
    }
    uct_ha_fact_usable_locked(conn->peer);
}

static void step(struct uct_ha_ctl *ctl, int slot, uint64_t now)
{
    struct uct_ha_fall  *fall  = &ctl->fall[slot];
    struct uct_ha_pairs *pairs = ctl->pairs;
    uint32_t             end   = ucs_min(pairs->table_len, fall->next + PLACES);
    struct uct_ha_conn  *conn;

    if (now - fall->moved >= STUCK_NS) {
        fall->most   = ucs_min(2 * ucs_max(fall->most, pairs->moving), pairs->table_len);
        fall->window = fall->most;
        fall->moved  = now;
    }
    for (uint32_t told = 0; fall->next < end && told < BATCH && pairs->moving < fall->window;) {
        conn = pairs->table[fall->next++];
        if (conn != NULL) {
            tell(ctl, conn, slot);
            fall->moved = now;
            told++;
        }
    }
    fall->window = ucs_min(2 * fall->window, fall->most);
    fall->due    = now + STEP_NS;
    if (fall->next >= pairs->table_len) {
        fall->at = 0;
    }
}

void uct_ha_fall_begin_locked(struct uct_ha_ctl *ctl, int slot, enum ha_cause cause)
{
    uint64_t now = uct_ha_now();

    if (cause == HA_CAUSE_HEARTBEAT && ctl->fall[slot].at != 0) {
        return; /* nor is one that is surely down made a matter of suspicion */
    }
    /* Others that move have another reason. */
    ctl->fall[slot] = (struct uct_ha_fall){.at     = now,
                                           .moved  = now,
                                           .window = ctl->pairs->moving + FIRST,
                                           .most   = ctl->pairs->moving + MOST,
                                           .cause  = (uint8_t)cause};
    step(ctl, slot, now);
}

void uct_ha_fall_run_locked(struct uct_ha_ctl *ctl, uint64_t now)
{
    for (int s = 0; s < HA_SLOTS; s++) {
        if (ctl->fall[s].at != 0 && now >= ctl->fall[s].due) {
            step(ctl, s, now);
        }
    }
}

uint64_t uct_ha_fall_due(const struct uct_ha_ctl *ctl)
{
    uint64_t due = UINT64_MAX;

    for (int s = 0; s < HA_SLOTS; s++) {
        due = ctl->fall[s].at != 0 ? ucs_min(due, ctl->fall[s].due) : due;
    }
    return due;
}
