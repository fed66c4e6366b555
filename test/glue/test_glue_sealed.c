/* SPDX-License-Identifier: BSD-3-Clause */

/* Who has seen control packets can neither make one nor bring one again: docs/wire.md, "Seal" and
 * "Replay". */

#include "forged.h"

#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <string.h>

static const uint8_t types[] = {HA_PACKET_STATE, HA_PACKET_PING, HA_PACKET_PONG, HA_PACKET_BYE};

static void set_type(struct forged *f, uint8_t type)
{
    f->header.type  = type;
    f->header.count = type == HA_PACKET_STATE;
}

/* Whatever it says: without the right key it does nothing. */
static void test_seals_of_others(void **state)
{
    struct ha_secret wrong = {{1, 2, 3}};
    struct forged    f;

    (void)state;
    forged_open(1300);
    for (size_t i = 0; i < sizeof(types); i++) {
        forged_make(&f);
        set_type(&f, types[i]);
        f.record.state.flags = HA_PAIR_FAILED | HA_PAIR_CLOSING;
        forged_seal_by(&f, &wrong);
        forged_expect(&f, FORGED, "a packet sealed by anybody");
        memset(f.bytes + f.length - HA_SEAL_LEN, 0, HA_SEAL_LEN);
        forged_expect(&f, FORGED, "a packet without a seal");
        forged_seal_by(&f, &forged_iface(1)->pairs.secret);
        forged_expect(&f, FORGED, "a packet sealed by the sender's secret that does not say so");
        f.header.flags |= HA_PACKET_OWN;
        forged_seal_by(&f, &forged_iface(0)->pairs.secret);
        forged_expect(&f, FORGED, "a packet sealed by the receiver's secret that says the other");
        f.header.src_cookie ^= 1;
        forged_seal(&f);
        forged_expect(&f, STRAY, "a packet of somebody who has only his own secret");
    }
    FORGE(NOTHING, "a packet sealed by the sender's secret", f.header.flags |= HA_PACKET_OWN);
    am_exchange(0, 20);
    assert_int_equal(stats().failovers + stats().ep_errors, 0);
}

/* The seal is over the whole packet. */
static void test_every_byte_is_sealed(void **state)
{
    struct uct_ha_stats before;
    struct forged       f, bent;

    (void)state;
    forged_open(1301);
    forged_make(&f);
    forged_seal(&f);
    for (size_t at = 0; at < f.length; at++) {
        bent = f;
        bent.bytes[at] ^= (uint8_t)(1 << at % 8);
        before = stats();
        assert_int_equal(forged_bring(&bent), 0);
        assert_int_equal(stats().ctl_rx, before.ctl_rx);
        assert_int_equal(stats().ctl_dropped, before.ctl_dropped + 1);
    }
    forged_expect(&f, NOTHING, "what was bent before");
    am_exchange(0, 20);
}

/* What side 0 says to side 1, turned around: names exchanged, or as it is. */
static void test_turned_around(void **state)
{
    struct ha_secret key;
    struct forged    f;

    (void)state;
    forged_open(1302);
    forged_make(&f);
    forged_seal(&f);
    key = ha_seal_key(&forged_iface(0)->pairs.secret, f.header.dst_cookie, f.header.src_cookie);
    (void)ha_seal_add(&key, f.bytes, f.length - HA_SEAL_LEN);
    forged_expect(&f, FORGED, "a packet with the key of the other direction");
    f.header.src_cookie = forged_iface(0)->pairs.cookie;
    f.header.dst_cookie = forged_iface(1)->pairs.cookie;
    forged_seal_by(&f, &forged_iface(1)->pairs.secret);
    forged_expect(&f, STRAY, "what this side has said itself");
}

/* The accepting side has no address of the peer: it seals by what it has. */
static void test_only_one_has_an_address(void **state)
{
    (void)state;
    world_open(1303, "");
    ep_open(0, 0);
    am_post(0, 0, 20);
    pump_until(am_all_here());
    flush_all();
    assert_int_equal(forged_peer(0)->secret_known, 1);
    assert_int_equal(forged_peer(1)->secret_known, 0);
    wait_standbys(2);
    fake_port(A0, 0);
    am_post(0, 0, 20);
    pump_until(am_all_here() && stats().failovers == 2);
    ep_open(1, 0); /* now it has */
    am_exchange(0, 20);
    assert_int_equal(forged_peer(1)->secret_known, 1);
    assert_int_equal(stats().ctl_forged + stats().ep_errors, 0);
}

/* Who has connected to us, and whose address we do not have, cannot be known by his own secret. */
static void test_own_without_address(void **state)
{
    struct forged f;

    (void)state;
    world_open(1310, "HEARTBEAT=0");
    ep_open(1, 0);
    am_post(1, 0, 4);
    pump_until(am_all_here());
    wait_standbys(2);
    flush_all();
    forged_quiet();
    forged_make(&f);
    f.header.flags |= HA_PACKET_OWN;
    forged_seal(&f);
    forged_expect(&f, STRAY, "a packet sealed by a secret that is not known");
    forged_seal_by(&f, &(struct ha_secret){{0}});
    forged_expect(&f, STRAY, "a packet sealed by no secret");
}

/* ---- once is enough --------------------------------------------------------------- */

/* Under the lock: who counted a packet may not have taken it in yet. */
static uint64_t last_heard(const struct uct_ha_peer *peer)
{
    pthread_mutex_t *lock = &forged_iface(0)->lanes.wake.lock;
    uint64_t         at;

    pthread_mutex_lock(lock);
    at = peer->last_rx;
    pthread_mutex_unlock(lock);
    return at;
}

/* Each kind, by each carrier, again by each carrier; nothing is learned from it. */
static void test_brought_again(void **state)
{
    struct uct_ha_peer *peer;
    struct forged       f;
    uint64_t            heard;

    (void)state;
    forged_open(1304);
    peer = forged_peer(0);
    for (size_t i = 0; i < sizeof(types) - 1; i++) {
        for (int way = 0; way < HA_CARRIERS; way++) {
            forged_make(&f);
            set_type(&f, types[i]);
            f.header.carrier = (uint8_t)way;
            forged_seal(&f);
            assert_int_equal(forged_bring_by(&f, (way + 1) % HA_CARRIERS), 0);
            assert_int_equal(forged_bring_by(&f, way), 1);
            forged_quiet(); /* what it was answered */
            heard = last_heard(peer);
            for (int again = 0; again < HA_CARRIERS; again++) {
                assert_int_equal(forged_bring_by(&f, again), 0);
            }
            assert_int_equal(forged_bring(&f), 0); /* and proves nothing */
            assert_int_equal(last_heard(peer), heard);
        }
    }
    am_exchange(0, 20);
}

/* Exactly so many may be overtaken. */
static void test_overtaken(void **state)
{
    struct forged f[HA_WINDOW + 1];

    (void)state;
    forged_open(1305);
    for (int i = 0; i <= HA_WINDOW; i++) {
        forged_make(&f[i]);
        set_type(&f[i], HA_PACKET_PING);
        forged_seal(&f[i]);
    }
    assert_int_equal(forged_bring_by(&f[HA_WINDOW], HA_CARRIER_TCP), 1);
    assert_int_equal(forged_bring_by(&f[0], HA_CARRIER_TCP), 0);
    for (int i = 1; i < HA_WINDOW; i++) {
        assert_int_equal(forged_bring_by(&f[i], HA_CARRIER_TCP), 1);
        assert_int_equal(forged_bring_by(&f[i], HA_CARRIER_TCP), 0);
    }
}

/* Where the peer is says its latest packet, whichever comes last, and by which way. */
static void test_overtaken_addresses(void **state)
{
    struct forged old[HA_CARRIERS], now;

    (void)state;
    forged_open(1306);
    for (int way = 0; way < HA_CARRIERS; way++) {
        forged_make(&old[way]);
        old[way].header.carrier     = (uint8_t)way;
        old[way].header.tcp_port    = 11;
        old[way].header.rails[1].up = 0;
        forged_seal(&old[way]);
    }
    forged_make(&now);
    now.header.tcp_port = 22;
    forged_seal(&now);
    assert_int_equal(forged_bring_by(&now, HA_CARRIER_TCP), 1);
    for (int way = 0; way < HA_CARRIERS; way++) {
        forged_quiet();
        assert_int_equal(forged_bring_by(&old[way], way), 1); /* it is not an old one, only late */
        assert_int_equal(forged_peer(0)->tcp_addr.port, 22);
        assert_int_equal(forged_peer(0)->rail[1].peer_up, 1);
    }
}

/* ---- peers that come and go ------------------------------------------------------- */

static unsigned conns(void)
{
    unsigned count;

    pthread_mutex_lock(&forged_iface(0)->lanes.wake.lock);
    count = (unsigned)ucs_list_length(&forged_iface(0)->pairs.conns) + forged_iface(0)->ctl.num_accepts;
    pthread_mutex_unlock(&forged_iface(0)->lanes.wake.lock);
    return count;
}

/* The request that has made a connection, by a carrier that was silent until then. */
static void test_request_brought_again(void **state)
{
    struct forged f;

    (void)state;
    world_open(1307, "HEARTBEAT=0");
    ep_open(1, 0);
    am_post(1, 0, 4);
    pump_until(am_all_here());
    wait_standbys(2);
    flush_all();
    forged_quiet();
    assert_int_equal(conns(), 1);
    forged_make(&f);
    f.header.number = 1;
    f.record.dst_ep = HA_EP_ANY;
    f.record.sn     = 5;
    f.record.tag    = ha_pair_tag(f.header.src_cookie, f.header.dst_cookie, f.record.sn);
    for (int way = 0; way < HA_CARRIERS; way++) {
        f.header.carrier = (uint8_t)way;
        forged_seal(&f);
        assert_int_equal(forged_bring_by(&f, way), 0);
    }
    assert_int_equal(conns(), 1);
}

/* An instance is gone, and forgotten: its request for a connection makes none. Its next one would. */
static void test_request_of_the_dead(void **state)
{
    struct ha_secret secret;
    struct forged    f;

    (void)state;
    world_open(1308, "HEARTBEAT=0");
    ep_open(1, 0);
    am_post(1, 0, 4);
    pump_until(am_all_here());
    flush_all();
    forged_make(&f);
    f.record.dst_ep = HA_EP_ANY;
    memset(&f.record.state, 0, sizeof(f.record.state));
    for (int s = 0; s < HA_SLOTS; s++) {
        f.record.state.lane[s].st = f.record.state.lane[s].seen_st = HA_LANE_CLOSED;
    }
    secret = forged_iface(0)->pairs.secret;
    forged_seal(&f);
    forged_expect(&f, NOTHING, "a request for a connection that there is");
    am_post(1, 0, 4);
    pump_until(am_all_here());
    flush_all();
    forged_lose_peer(f.header.src_cookie);
    side_open(1, "");
    pump_until(conns() == 0);
    for (int way = 0; way < HA_CARRIERS; way++) {
        f.header.carrier = (uint8_t)way;
        forged_seal_by(&f, &secret);
        assert_int_equal(forged_bring_by(&f, way), 0);
    }
    assert_int_equal(conns(), 0);
    f.header.number += 1000;
    forged_seal_by(&f, &secret);
    assert_int_equal(forged_bring_by(&f, HA_CARRIER_TCP), 1);
    pump_until(conns() == 1);
    world.side[0].received[0] = 0;
    ep_open(0, 0); /* to the new one */
    am_post(0, 0, 20);
    pump_until(am_all_here());
}

/* Numbers go on where they were, when a peer is let go of and met again. */
static void test_numbers_outlive_peers(void **state)
{
    struct uct_ha_peer *peer;
    uint64_t            told, cookie, again, newest;

    (void)state;
    world_open(1309, "");
    ep_open(1, 0);
    am_post(1, 0, 8);
    pump_until(am_all_here());
    flush_all();
    told   = forged_peer(0)->told;
    cookie = forged_iface(1)->pairs.cookie;
    assert_true(told > 1);
    forged_lose_peer(cookie);
    pthread_mutex_lock(&forged_iface(0)->lanes.wake.lock);
    peer   = uct_ha_peer_create(&forged_iface(0)->pairs, cookie, HA_SLOTS, 8);
    again  = peer->told;
    newest = peer->newest;
    uct_ha_peer_destroy(peer);
    pthread_mutex_unlock(&forged_iface(0)->lanes.wake.lock);
    assert_true(again >= told);
    assert_true(newest > 1);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_seals_of_others),
    GLUE_TEST(test_every_byte_is_sealed),
    GLUE_TEST(test_turned_around),
    GLUE_TEST(test_only_one_has_an_address),
    GLUE_TEST(test_own_without_address),
    GLUE_TEST(test_brought_again),
    GLUE_TEST(test_overtaken),
    GLUE_TEST(test_overtaken_addresses),
    GLUE_TEST(test_request_brought_again),
    GLUE_TEST(test_request_of_the_dead),
    GLUE_TEST(test_numbers_outlive_peers),
};

int glue_sealed(void)
{
    return cmocka_run_group_tests_name("sealed", tests, NULL, NULL);
}
