/* SPDX-License-Identifier: BSD-3-Clause */
#include "probes_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "ctl/look.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "ctl/tcp.h"
#include "pair/cold.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/report.h"

struct uct_ha_stats uct_ha_stats_total;
struct probes_world w;

static struct entry *entry_of(const struct uct_ha_peer *peer)
{
    return (struct entry *)((char *)peer - offsetof(struct entry, peer));
}

/* 0 with this probability per mille. */
static int chance(unsigned mille)
{
    w.random = w.random * 6364136223846793005ull + 1442695040888963407ull;
    return (w.random >> 33) % 1000 >= mille;
}

/* ---- what the round calls ---- */

uint64_t uct_ha_now(void)
{
    return w.now;
}

/* As ctl/send.c and ctl/msg.c do it. */
void uct_ha_send_ping_locked(struct uct_ha_peer *peer, int slot)
{
    struct uct_ha_peer_rail *rail  = &peer->rail[slot];
    struct entry            *entry = entry_of(peer);

    w.pings++;
    entry->pings++;
    entry->asked  = w.now;
    rail->nonce   = ++w.ctl.nonce;
    rail->waiting = 1;
    rail->counted = 0;
    if (w.now - rail->ping_at > 10 * w.pairs.heartbeat) {
        ha_lossy_forget(&rail->lossy);
    }
    rail->ping_at = w.now;
    ha_beat_ask(&rail->beat, rail->missed, w.now);
    ha_lossy_ask(&rail->lossy);
    if (!entry->mute[slot] && chance(entry->loss[slot])) {
        ha_lossy_answer(&rail->lossy, 1);
        uct_ha_beat_answered_locked(peer, slot, w.now);
        uct_ha_stall_end_locked(peer);
        rail->last_rx = peer->last_rx = w.now + 1;
        rail->heard                   = rail->nonce;
        rail->fresh_at                = w.now + w.ctl.fresh_ns;
        rail->answered++;
        rail->waiting = 0;
        rail->missed  = 0;
        rail->bad     = 0;
    }
}

void uct_ha_send_call_locked(struct uct_ha_peer *peer)
{
    if (entry_of(peer)->no_tcp) {
        return;
    }
    entry_of(peer)->calls++;
    peer->tcp_link = (struct uct_ha_tcp_link *)(void *)entry_of(peer);
    if (entry_of(peer)->runs) {
        uct_ha_stall_answered_locked(peer, w.now);
    }
}

void uct_ha_tcp_link_destroy(struct uct_ha_tcp_link *link)
{
    assert_ptr_equal(((struct entry *)(void *)link)->peer.tcp_link, link);
}

int uct_ha_tcp_is_acknowledged(const struct uct_ha_tcp_link *link)
{
    return ((const struct entry *)(const void *)link)->exists;
}

const char *uct_ha_addr_text(const struct ha_rail_addr *addr, char buf[UCT_HA_ADDR_TEXT_MAX])
{
    (void)addr;
    return strcpy(buf, "there");
}

int uct_ha_send_probes(const struct uct_ha_peer *peer)
{
    (void)peer;
    return 1;
}

int ha_pair_tx_slot(const struct ha_pair *pair)
{
    return pair->lane[1].act > pair->lane[0].act;
}

void uct_ha_failover_event_locked(struct uct_ha_conn *conn, const struct ha_event *event, enum ha_context ctx)
{
    struct entry *entry = entry_of(conn->peer);

    (void)ctx;
    if (event->kind == HA_EV_LANE_SUSPECT && entry->suspected[event->slot] == 0) {
        entry->suspected[event->slot] = w.now;
        entry->cause                  = event->cause;
        conn->pair.lane[!event->slot].act++; /* it goes on there */
        entry->moves = 1;
        entry->still = 0;
    } else if (event->kind == HA_EV_LANE_DOWN && entry->left == 0) {
        entry->left = w.now;
        w.pairs.moving += entry->mute[!event->slot]; /* else its peer has answered before the next step */
    }
}

uint64_t uct_ha_cold_hold(const struct uct_ha_conn *conn, int slot, uint64_t hold)
{
    (void)conn;
    (void)slot;
    return hold;
}

void uct_ha_fact_peer_lost_locked(struct uct_ha_peer *peer, unsigned why)
{
    assert_int_equal(why, HA_FAIL_PEER_DEAD);
    entry_of(peer)->lost = w.now;
}

void uct_ha_fact_usable_locked(struct uct_ha_peer *peer)
{
    (void)peer;
}

void uct_ha_look_begin_locked(struct uct_ha_peer *peer, int slot)
{
    (void)peer;
    (void)slot;
}

void uct_ha_path_anew(struct uct_ha_peer *peer, int slot)
{
    (void)peer;
    (void)slot;
}

/* ---- the world ---- */

static void add(struct entry *entry, unsigned host)
{
    struct uct_ha_peer *peer = &entry->peer;

    peer->pairs = &w.pairs;
    ucs_list_head_init(&peer->conns);
    ucs_list_add_tail(&w.pairs.peers, &peer->list);
    ucs_list_add_tail(&w.pairs.turns, &peer->turn_link);
    peer->last_rx = w.now;
    for (int s = 0; s < HA_SLOTS; s++) {
        peer->rail[s].known  = 1;
        peer->rail[s].ud_qpn = 1;
        peer->rail[s].way    = (struct uct_ha_way *)entry; /* there is one */
        memcpy(peer->rail[s].where.addr.gid, &host, sizeof(host));
        entry->lane[s].slot = (uint8_t)s;
        entry->lane[s].road = &entry->road;
        entry->road.lane[s] = &entry->lane[s];
    }
    entry->conn.peer             = peer;
    entry->conn.pairs            = &w.pairs;
    entry->conn.road             = &entry->road;
    entry->conn.tx               = &entry->tx;
    entry->conn.pair.epoch       = 1;
    entry->conn.pair.lane[0].act = 1;
    ucs_list_add_tail(&peer->conns, &entry->conn.peer_link);
    uct_ha_awake_begin(&entry->conn.awake, &w.pairs.wakes, &peer->busy, &entry->tx);
}

static void let_sleep(struct entry *entry)
{
    while (entry->conn.awake.listed) {
        uct_ha_awake_looked(&entry->conn.awake, UINT64_MAX);
    }
}

void post(struct entry *entry)
{
    entry->tx.log.tail++;
    if (!entry->tx.awake) {
        uct_ha_awake_posted(&entry->conn.awake);
    }
}

void world_open(unsigned count)
{
    uct_ha_beat_close(&w.ctl); /* of a test that has failed */
    memset(&w, 0, sizeof(w));
    memset(&uct_ha_stats_total, 0, sizeof(uct_ha_stats_total));
    w.now                     = 3600 * SEC;
    w.count                   = count;
    w.entry                   = calloc(count, sizeof(*w.entry));
    w.config.heartbeat_misses = 4;
    w.config.probes           = 100;
    w.config.lossy_rail       = 1;
    w.lanes.slots             = HA_SLOTS;
    w.pairs.config            = &w.config;
    w.pairs.lanes             = &w.lanes;
    w.pairs.ctl               = &w.ctl;
    w.pairs.heartbeat         = 100 * MS;
    w.pairs.dead_peer         = 10 * SEC;
    w.ctl.pairs               = &w.pairs;
    w.ctl.lanes               = &w.lanes;
    w.ctl.fresh_ns            = SEC;
    w.ctl.round_at            = w.now;
    w.pairs.by_cookie.count   = count;
    w.pairs.table             = calloc(count, sizeof(*w.pairs.table));
    w.pairs.table_len         = count;
    ucs_list_head_init(&w.pairs.peers);
    ucs_list_head_init(&w.pairs.turns);
    uct_ha_wakes_open(&w.pairs.wakes);
    for (unsigned i = 0; i < count; i++) {
        add(&w.entry[i], i / PER_HOST);
        w.pairs.table[i] = &w.entry[i].conn;
        let_sleep(&w.entry[i]);
    }
}

void world_close(void)
{
    uct_ha_beat_close(&w.ctl);
    free(w.pairs.table);
    free(w.entry);
}

/* As ctl/async.c does it. */
static void forget_idle(void)
{
    struct uct_ha_peer *peer, *next;

    ucs_list_for_each_safe (peer, next, &w.pairs.wakes.busy, busy.link) {
        if (peer->busy.awake == 0 && !peer->rail[0].waiting && !peer->rail[1].waiting && !peer->rail[0].bad &&
            !peer->rail[1].bad) {
            uct_ha_busy_end(&peer->busy);
        }
    }
}

/* Connections of a rail that has failed, a few at a time. */
static void leave_in_turn(void)
{
    while (uct_ha_fall_due(&w.ctl) < w.next) {
        w.now = uct_ha_fall_due(&w.ctl) > w.now ? uct_ha_fall_due(&w.ctl) : w.now;
        uct_ha_fall_run_locked(&w.ctl, w.now);
    }
}

void run(uint64_t ns)
{
    uint64_t end = w.now + ns;

    while (w.next <= end) {
        w.now = w.next > w.now ? w.next : w.now;
        for (unsigned i = 0; i < w.count; i++) {
            if (w.entry[i].moves && chance(w.entry[i].still)) {
                w.entry[i].tx.log.head++;
                w.entry[i].tx.log.tail++;
            }
        }
        w.lanes.wake.polls++;
        w.next = w.now + uct_ha_beat_round_locked(&w.ctl, w.now);
        leave_in_turn();
        forget_idle();
    }
    w.now = end;
}

void calm(void)
{
    run((uint64_t)w.count * 30 * MS + SEC);
    w.pings = 0;
}
