/* SPDX-License-Identifier: BSD-3-Clause */

/* Whom a round of heartbeats asks, of one peer or of thousands, and when silence is noticed. The clock is the test's,
 * the peers answer at once or not at all. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/now.h"
#include "base/stats.h"
#include "ctl/beat.h"
#include "ctl/look.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#define MS       1000000ull
#define SEC      1000000000ull
#define WINDOW   (1900 * MS) /* of the hardware, with the defaults */
#define MANY     4096
#define PER_HOST 64

struct uct_ha_stats uct_ha_stats_total;

static struct {
    uint64_t                   now, next;
    unsigned                   count;
    struct uct_ha_iface_config config;
    struct uct_ha_lanes        lanes;
    struct uct_ha_pairs        pairs;
    struct uct_ha_ctl          ctl;
    struct entry {
        struct uct_ha_peer  peer;
        struct uct_ha_conn  conn;
        struct uct_ha_txlog tx;
        struct uct_ha_road  road;
        struct uct_ha_lane  lane[HA_SLOTS];
        uint8_t             mute[HA_SLOTS], moves;
        uint64_t            suspected[HA_SLOTS], asked, lost;
        unsigned            pings;
    } * entry;
    unsigned pings;
} w;

static struct entry *entry_of(const struct uct_ha_peer *peer)
{
    return (struct entry *)((char *)peer - offsetof(struct entry, peer));
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
    rail->ping_at = w.now;
    ha_beat_ask(&rail->beat, rail->missed, w.now);
    if (!entry->mute[slot]) {
        ha_beat_answer(&rail->beat, w.now);
        uct_ha_beat_heard_locked(peer, slot, w.now);
        rail->last_rx = peer->last_rx = w.now;
        rail->heard                   = rail->nonce;
        rail->fresh_at                = w.now + w.ctl.fresh_ns;
        rail->answered++;
        rail->waiting = 0;
        rail->missed  = 0;
        rail->bad     = 0;
    }
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

void uct_ha_failover_event_locked(struct uct_ha_conn *conn, const struct ha_event *event, unsigned ctx)
{
    struct entry *entry = entry_of(conn->peer);

    (void)ctx;
    if (event->kind == HA_EV_LANE_SUSPECT && entry->suspected[event->slot] == 0) {
        entry->suspected[event->slot] = w.now;
        conn->pair.lane[!event->slot].act++; /* it goes on there */
        entry->moves = 1;
    }
}

void uct_ha_fact_peer_lost_locked(struct uct_ha_peer *peer, enum ha_fail why)
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

static void post(struct entry *entry)
{
    entry->tx.log.tail++;
    if (!entry->tx.awake) {
        uct_ha_awake_posted(&entry->conn.awake);
    }
}

static void world_open(unsigned count)
{
    uct_ha_beat_close(&w.ctl); /* of a test that has failed */
    memset(&w, 0, sizeof(w));
    memset(&uct_ha_stats_total, 0, sizeof(uct_ha_stats_total));
    w.now                     = 3600 * SEC;
    w.count                   = count;
    w.entry                   = calloc(count, sizeof(*w.entry));
    w.config.heartbeat_misses = 4;
    w.config.probes           = 100;
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
    ucs_list_head_init(&w.pairs.peers);
    ucs_list_head_init(&w.pairs.turns);
    uct_ha_wakes_open(&w.pairs.wakes);
    for (unsigned i = 0; i < count; i++) {
        add(&w.entry[i], i / PER_HOST);
        let_sleep(&w.entry[i]);
    }
}

static void world_close(void)
{
    uct_ha_beat_close(&w.ctl);
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

/* Time goes on in rounds; what works makes progress all the time. */
static void run(uint64_t ns)
{
    uint64_t end = w.now + ns;

    while (w.next <= end) {
        w.now = w.next > w.now ? w.next : w.now;
        for (unsigned i = 0; i < w.count; i++) {
            if (w.entry[i].moves) {
                w.entry[i].tx.log.head++;
                w.entry[i].tx.log.tail++;
            }
        }
        w.next = w.now + uct_ha_beat_round_locked(&w.ctl, w.now);
        forget_idle();
    }
    w.now = end;
}

static void calm(void)
{
    run((uint64_t)w.count * 30 * MS + SEC);
    w.pings = 0;
}

/* ---- tests ---- */

static void test_few_are_asked_each_time(void **state)
{
    (void)state;
    world_open(5);
    calm();
    run(10 * SEC);
    for (unsigned i = 0; i < 5; i++) {
        assert_in_range(w.entry[i].pings, 220, 240); /* 2 rails, 10 a second, the calm included */
    }
    world_close();
}

static void test_idle_thousands_within_the_budget(void **state)
{
    (void)state;
    for (unsigned count = 8; count <= MANY; count *= 8) {
        world_open(count);
        calm();
        run(60 * SEC);
        print_message("%u idle peers: %.1f probes a second\n", count, w.pings / 60.0);
        assert_in_range(w.pings, 60 * 98, 61 * 100);
        run(count * 20 * MS + 100 * MS);
        for (unsigned i = 0; i < count; i++) {
            assert_true(w.entry[i].asked + count * 20 * MS + 200 * MS >= w.now); /* nobody is left out */
        }
        assert_int_equal(uct_ha_stats_total.heartbeats_missed, 0);
        assert_int_equal(uct_ha_stats_total.probes_urgent, 0);
        world_close();
    }
}

/* One has work under way on a rail that dies, the others are idle. */
static void test_silence_is_noticed_among_any_number(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= MANY; count *= 8) {
        struct entry *entry;
        uint64_t      worst = 0;

        for (unsigned phase = 0; phase < 10; phase++) {
            world_open(count);
            entry = &w.entry[count / 2];
            calm();
            run(phase * 10 * MS);
            entry->mute[0] = 1;
            post(entry);
            run(SEC);
            assert_true(entry->suspected[0] != 0);
            worst = worst > entry->suspected[0] - (w.now - SEC) ? worst : entry->suspected[0] - (w.now - SEC);
            assert_int_equal(entry->suspected[1], 0);
            world_close();
        }
        print_message("one of %u is silent where work is: noticed after %lu ms at most\n", count,
                      (unsigned long)(worst / MS));
        assert_true(count == 1 ? worst <= 500 * MS : worst <= WINDOW / 4);
    }
}

/* All had work under way, which went through until now, on a rail of ours that dies. */
static void test_own_rail_dies_under_all(void **state)
{
    (void)state;
    for (unsigned count = 8; count <= MANY; count *= 8) {
        uint64_t start, last = 0;

        world_open(count);
        for (unsigned i = 0; i < count; i++) {
            post(&w.entry[i]);
            w.entry[i].moves = 1;
        }
        calm();
        assert_int_equal(uct_ha_stats_total.probes_urgent, 0); /* data is a sign of life */
        start = w.now;
        for (unsigned i = 0; i < count; i++) {
            w.entry[i].moves   = 0;
            w.entry[i].mute[0] = 1;
        }
        run(3 * SEC);
        for (unsigned i = 0; i < count; i++) {
            assert_true(w.entry[i].suspected[0] != 0);
            last = last > w.entry[i].suspected[0] - start ? last : w.entry[i].suspected[0] - start;
        }
        print_message("all %u work on a rail that dies: the last has left it after %lu ms, %u probes in 3 s\n", count,
                      (unsigned long)(last / MS), w.pings);
        assert_true(last <= WINDOW / 4 + 25 * MS);
        assert_true(w.pings <= 100 * (3 + HA_PROBE_SAVE_S + 2));
        world_close();
    }
}

/* A rail of one host of many: what is found for one of its processes holds for the others, and for nobody else. */
static void test_host_dies_under_all(void **state)
{
    uint64_t start, last = 0;

    (void)state;
    world_open(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        post(&w.entry[i]);
        w.entry[i].moves = 1;
    }
    calm();
    start = w.now;
    for (unsigned i = 0; i < MANY; i++) {
        w.entry[i].moves   = i / PER_HOST > 3;
        w.entry[i].mute[0] = i / PER_HOST <= 3;
    }
    run(3 * SEC);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true((w.entry[i].suspected[0] != 0) == (i / PER_HOST <= 3));
        last = last > w.entry[i].suspected[0] ? last : w.entry[i].suspected[0];
    }
    print_message("4 hosts of 64 are silent on a rail: the last of their %u processes is left after %lu ms\n",
                  4 * PER_HOST, (unsigned long)((last - start) / MS));
    assert_true(last - start <= WINDOW / 4 + 25 * MS);
    world_close();
}

/* Work stands still on all of them, because nobody polls; the rails answer. No reason to leave any. */
static void test_work_that_rests_is_no_silence(void **state)
{
    (void)state;
    world_open(512);
    calm();
    for (unsigned i = 0; i < 512; i++) {
        post(&w.entry[i]);
    }
    w.entry[500].mute[0] = 1; /* another one than those that were asked */
    run(60 * SEC);
    for (unsigned i = 0; i < 512; i++) {
        assert_int_equal(w.entry[i].suspected[0] != 0, i == 500); /* others of its host were heard */
        assert_int_equal(w.entry[i].suspected[1], 0);
    }
    assert_true(uct_ha_stats_total.probes_held > 0);
    assert_true(w.pings <= 100 * (60 + HA_PROBE_SAVE_S + 2));
    world_close();
}

/* Both rails silent: the peer is dead, which takes DEAD_PEER and no verdict on a rail. */
static void test_dead_among_thousands(void **state)
{
    struct entry *entry;
    uint64_t      start;

    (void)state;
    world_open(MANY);
    calm();
    entry          = &w.entry[1000];
    start          = w.now;
    entry->mute[0] = entry->mute[1] = 1;
    post(entry);
    run(12 * SEC);
    assert_in_range(entry->lost, start + 10 * SEC, start + 10 * SEC + 300 * MS);
    assert_int_equal(entry->suspected[0] + entry->suspected[1], 0);
    world_close();
}

/* An idle one is found, too, when it is its turn, and asked at once again. */
static void test_idle_standby_that_is_dead(void **state)
{
    (void)state;
    world_open(512);
    calm();
    w.entry[77].mute[1] = 1;
    run(512 * 20 * MS + SEC);
    assert_true(w.entry[77].suspected[1] != 0);
    w.entry[77].mute[1] = 0;
    run(300 * MS); /* and does not wait for its turn to be well again */
    assert_int_equal(w.entry[77].peer.rail[1].bad, 0);
    assert_true(uct_ha_stats_total.probes_doubt > 0);
    world_close();
}

/* Silent rails of hundreds that nobody uses leave the others their turn. */
static void test_doubt_starves_nobody(void **state)
{
    (void)state;
    world_open(MANY);
    calm();
    for (unsigned i = 0; i < 1000; i++) {
        w.entry[i].mute[1] = 1;
    }
    run((uint64_t)MANY * 45 * MS);
    for (unsigned i = 1000; i < MANY; i++) {
        assert_true(w.entry[i].asked + (uint64_t)MANY * 45 * MS >= w.now);
    }
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_are_asked_each_time),
        cmocka_unit_test(test_idle_thousands_within_the_budget),
        cmocka_unit_test(test_silence_is_noticed_among_any_number),
        cmocka_unit_test(test_own_rail_dies_under_all),
        cmocka_unit_test(test_host_dies_under_all),
        cmocka_unit_test(test_work_that_rests_is_no_silence),
        cmocka_unit_test(test_dead_among_thousands),
        cmocka_unit_test(test_idle_standby_that_is_dead),
        cmocka_unit_test(test_doubt_starves_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
