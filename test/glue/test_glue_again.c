/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What ends things, said once more. The good-byes and the ends by error that side 1 has really said, as the network
 * saw them, are brought again, and those that never arrived late: to the same peer, to the connection after, to the
 * instance after. Nobody ends by that.
 */

#include "forged.h"

#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <pthread.h>
#include <string.h>

#define KEPT 64

/* What was heard of the instance that was listened to. */
static struct kept {
    uint64_t      from;
    unsigned      count;
    struct forged packet[KEPT];
} kept;

static void keep(const void *data, size_t length)
{
    struct forged *f = &kept.packet[kept.count];

    if (kept.count == KEPT || ha_packet_decode_header(data, length, &f->header) != 0 ||
        f->header.src_cookie != kept.from) {
        return;
    }
    if (f->header.type == HA_PACKET_STATE &&
        (f->header.count == 0 || ha_packet_decode_record(data, length, 0, &f->record) != 0 ||
         !(f->record.state.flags & HA_PAIR_FAILED))) {
        return;
    }
    if (f->header.type != HA_PACKET_STATE && f->header.type != HA_PACKET_BYE) {
        return;
    }
    memcpy(f->bytes, data, length);
    f->length = length;
    kept.count++;
}

static void listen_to(int s)
{
    kept.count = 0;
    kept.from  = forged_iface(s)->pairs.cookie;
    fake_on_datagram(keep);
}

static unsigned kept_by(int carrier)
{
    unsigned count = 0;

    fake_on_datagram(NULL);
    for (unsigned i = 0; i < kept.count; i++) {
        count += kept.packet[i].header.carrier == carrier;
    }
    return count;
}

/* Bring all that this carrier was given: how many are taken for news. What they are answered is over then. */
static unsigned bring_kept(int carrier)
{
    unsigned news = 0;

    for (unsigned i = 0; i < kept.count; i++) {
        if (kept.packet[i].header.carrier == carrier) {
            news += forged_bring_by(&kept.packet[i], carrier) != 0;
            forged_quiet();
        }
    }
    return news;
}

/* What has not arrived by rail 0, while nothing does: it is news there. */
static void bring_late(void)
{
    pthread_mutex_t        *lock  = &forged_iface(0)->lanes.wake.lock;
    const struct ha_window *heard = &forged_peer(0)->heard[0];
    uint64_t                newest;

    for (unsigned i = 0; i < kept.count; i++) {
        if (kept.packet[i].header.carrier == 0) {
            fake_ud_bring(forged_iface(0)->ctl.ud[0], kept.packet[i].bytes, kept.packet[i].length);
            do {
                pump();
                pthread_mutex_lock(lock);
                newest = heard->newest;
                pthread_mutex_unlock(lock);
            } while (newest < kept.packet[i].header.number);
            assert_int_equal(newest, kept.packet[i].header.number);
        }
    }
    pump_ms(20);
}

/* Side 0 does not mind: it works, and goes on when a rail is cut. */
static void is_well(int s, int rail, unsigned standbys)
{
    assert_int_equal(world.side[0].errors, 0);
    assert_int_equal(forged_peer(0)->bye_rx, 0);
    assert_false(ha_pair_failed(&forged_conn(0)->pair));
    am_post(s, 0, 10);
    fake_port(rail, 0);
    am_post(s, 0, 10);
    pump_until(am_all_here());
    fake_port(rail, 1);
    wait_standbys(standbys);
    assert_int_equal(world.side[0].errors, 0);
}

static void open_from(int s)
{
    ep_open(s, 0);
    am_post(s, 0, 4);
    pump_until(am_all_here());
    wait_standbys(2);
    flush_all();
    forged_quiet();
}

/* The same bytes as if they came from the instance that there is now, to the one that there is now. */
static void bring_renamed(void)
{
    struct uct_ha_stats before = stats();
    struct forged       f;

    for (unsigned i = 0; i < kept.count; i++) {
        f                   = kept.packet[i];
        f.header.src_cookie = forged_iface(1)->pairs.cookie;
        f.header.dst_cookie = forged_iface(0)->pairs.cookie;
        f.header.number += 1000;
        (void)ha_packet_encode_header(f.bytes, &f.header);
        assert_int_equal(forged_bring(&f), 0);
    }
    assert_int_equal(stats().ctl_forged - before.ctl_forged, kept.count);
}

/* Nobody is answered, either. */
static void bring_in_vain(void)
{
    struct uct_ha_stats before = stats();

    assert_int_equal(bring_kept(0), 0);
    assert_int_equal(bring_kept(1), 0);
    assert_int_equal(stats().ctl_tx, before.ctl_tx);
    bring_renamed();
}

/* Side 1 leaves, and comes back under another name. By rail 0 nothing of its good-bye has arrived. */
static void test_good_bye_again(void **state)
{
    struct uct_ha_stats before;
    unsigned            said[HA_SLOTS];

    (void)state;
    world_open(1330, "HEARTBEAT=0");
    open_from(1);
    listen_to(1);
    fake_set(B0, FAKE_LOSE_CTL_OUT, 1000);
    side_close(1);
    fake_set(B0, FAKE_LOSE_CTL_OUT, 0);
    said[0] = kept_by(0);
    said[1] = kept_by(1);
    assert_true(said[0] > 0 && said[1] > 0);
    before = stats();
    assert_int_equal(bring_kept(1), 0);
    assert_int_equal(stats().ctl_stale - before.ctl_stale, said[1]);
    assert_int_equal(bring_kept(0), said[0]); /* late, and true */
    assert_int_equal(bring_kept(0), 0);
    forged_lose_peer(kept.from);
    side_open(1, "HEARTBEAT=0");
    world.side[0].received[0] = 0;
    open_from(1);
    before = stats();
    bring_in_vain();
    assert_int_equal(stats().ctl_stray - before.ctl_stray, said[0] + said[1]);
    is_well(1, A0, 2);
}

/* Side 0 leaves and comes back; side 1, which lives, had said good-bye to the one before. */
static void test_good_bye_of_the_living(void **state)
{
    struct uct_ha_stats before;
    unsigned            said;

    (void)state;
    world_open(1331, "HEARTBEAT=0");
    open_from(0);
    listen_to(1);
    side_close(0);
    said = kept_by(0) + kept_by(1);
    assert_true(said > 0);
    side_open(0, "HEARTBEAT=0");
    world.side[1].received[0] = 0;
    open_from(0);
    before = stats();
    bring_in_vain();
    assert_int_equal(stats().ctl_stray - before.ctl_stray, said);
    is_well(0, A0, 2);
}

/* The peers stay, by endpoint 1; side 1 gives up endpoint 0, and both have forgotten that. */
static void end_connection(void)
{
    struct counted flushed;

    (void)uct_ep_flush(world.side[1].ep[0], UCT_FLUSH_FLAG_CANCEL, count_completion(&flushed));
    pump_until(world.side[0].errors == 1);
    world.side[0].errors = 0;
    for (int s = 0; s < 2; s++) {
        ep_close(s, 0);
        pump_until(ucs_list_length(&forged_iface(s)->pairs.conns) == 1);
        world.side[s].sent[0] = world.side[!s].received[0] = 0;
    }
}

static void open_two(uint64_t seed)
{
    world_open(seed, "HEARTBEAT=0");
    for (int i = 1; i >= 0; i--) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 4);
    }
    wait_standbys(4);
    flush_all();
    forged_quiet();
}

/* There is another connection with the same number of an endpoint; then another side 1. By rail 0 nothing of the end
 * has arrived. */
static void test_end_again(void **state)
{
    struct uct_ha_stats before;
    uint64_t            errors;

    (void)state;
    open_two(1332);
    listen_to(1);
    fake_set(B0, FAKE_LOSE_CTL_OUT, 1000);
    end_connection();
    assert_true(kept_by(0) > 0 && kept_by(1) > 0);
    errors = stats().ep_errors;
    ep_open(0, 0); /* it is not asked by the peer: that would count for all that was said before */
    am_post(0, 0, 4);
    pump_until(am_all_here());
    assert_ptr_equal(forged_iface(0)->pairs.table[kept.packet[0].record.dst_ep],
                     ucs_list_tail(&forged_iface(0)->pairs.conns, struct uct_ha_conn, list));
    bring_late();
    assert_int_equal(stats().ep_errors, errors);
    fake_set(B0, FAKE_LOSE_CTL_OUT, 0);
    wait_standbys(4);
    flush_all();
    forged_quiet();
    before = stats();
    assert_int_equal(bring_kept(0), 0);
    assert_int_equal(bring_kept(1), 0);
    assert_int_equal(stats().ctl_stale - before.ctl_stale, kept.count);
    bring_renamed();
    is_well(0, A0, 4);
    assert_int_equal(stats().ep_errors, errors);
    ep_close(0, 0);
    ep_close(0, 1);
    forged_lose_peer(kept.from);
    side_open(1, "HEARTBEAT=0");
    memset(world.side[0].received, 0, sizeof(world.side[0].received));
    memset(world.side[0].sent, 0, sizeof(world.side[0].sent));
    open_from(1);
    bring_in_vain();
    is_well(1, A0, 2);
}

/* A word about the end of a connection comes when both have forgotten it: who hears that it is forgotten there has
 * nothing to answer. */
static void test_end_is_answered_once(void **state)
{
    struct uct_ha_stats before;
    struct forged       f;

    (void)state;
    open_two(1333);
    forged_make(&f); /* of endpoint 1 */
    f.record.state.flags = HA_PAIR_FAILED | HA_PAIR_CLOSING;
    f.record.src_ep++;
    f.record.dst_ep++;
    f.record.sn++;
    f.record.tag = ha_pair_tag(f.header.src_cookie, f.header.dst_cookie, f.record.sn);
    forged_seal(&f);
    end_connection();
    forged_quiet();
    before = stats();
    assert_int_equal(forged_bring(&f), 1);
    pump_ms(300);
    assert_in_range(stats().ctl_tx - before.ctl_tx, 1, HA_CARRIERS);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_good_bye_again),
    GLUE_TEST(test_good_bye_of_the_living),
    GLUE_TEST(test_end_again),
    GLUE_TEST(test_end_is_answered_once),
};

int glue_again(void)
{
    return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
