/* SPDX-License-Identifier: BSD-3-Clause */

/* Receives that all connections of an interface share: how many there are, and what becomes of who finds none. */

#include "glue_tests.h"

#include "lane/shared.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <errno.h>
#include <unistd.h>

#define CROWD 12

static struct uct_ha_lanes *lanes_of(int s)
{
    return &uct_ha_iface(world.side[s].iface)->lanes;
}

static uint32_t receives_of(int s)
{
    struct uct_ha_lanes *lanes = lanes_of(s);
    uint32_t             count;

    pthread_mutex_lock(&lanes->wake.lock);
    count = lanes->shared[0].count;
    pthread_mutex_unlock(&lanes->wake.lock);
    return count;
}

/* Places in the completion queue for all that there are, and two of each lane: whatever may be sent. */
static void check_places(int s, unsigned lanes)
{
    for (int slot = 0; slot < 2; slot++) {
        assert_int_equal(lanes_of(s)->room[slot].reserved, lanes_of(s)->shared[slot].count + 2 * lanes);
    }
}

/* Does this side say that it has too few? */
static int is_scarce(int s)
{
    struct uct_ha_lanes *lanes = lanes_of(s);
    int                  scarce;

    pthread_mutex_lock(&lanes->wake.lock);
    scarce = uct_ha_shared_is_scarce_locked(&lanes->shared[0]);
    pthread_mutex_unlock(&lanes->wake.lock);
    return scarce;
}

static void open_eps(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ep_open(0, (int)i);
        ep_open(1, (int)i);
    }
    for (unsigned i = 0; i < count; i++) {
        am_exchange((int)i, 3);
    }
    wait_standbys(2 * count);
}

static void open_crowd(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    open_eps(CROWD);
}

/* As many buffers as all may send together, not more; none that grants credits or delivers late takes another's. */
static void test_shared_receives(void **state)
{
    const uint32_t all = CROWD * (16 + 4) + 32;

    (void)state;
    open_crowd(700, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16");
    for (int s = 0; s < 2; s++) {
        for (int slot = 0; slot < 2; slot++) {
            const struct uct_ha_shared *shared = &lanes_of(s)->shared[slot];

            assert_non_null(shared->srq);
            assert_int_equal(shared->wanted, CROWD * (16 + 4));
            assert_int_equal(shared->count, all);
        }
        check_places(s, CROWD);
    }
    for (int i = 0; i < CROWD; i++) {
        am_post(0, i, 50);
    }
    pump_until(am_all_here());
    fake_port(A0, 0);
    for (int i = 0; i < CROWD; i++) {
        am_exchange(i, 50);
    }
    assert_int_equal(fake_counts().rnr, 0);
    assert_int_equal(stats().ep_errors, 0);
    for (int i = 0; i < CROWD; i++) {
        ep_close(0, i);
        ep_close(1, i);
    }
    pump_until(stats().pairs == 0);
    pump_until(lanes_of(0)->shared[1].wanted == 0 && lanes_of(1)->shared[1].wanted == 0);
}

/* Fewer than all may send together: the card says when few are left, and there are more soon, although the receiver
 * does not look. Nobody takes that for a dead rail. */
static void test_shared_grows_when_low(void **state)
{
    unsigned sent = 0;

    (void)state;
    open_crowd(701, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SRQ_LEN=64");
    assert_true(lanes_of(1)->shared[0].wanted > 2 * 64);
    assert_true(receives_of(1) <= 64);
    assert_false(is_scarce(1)); /* more come as they are used */
    for (int i = 0; i < CROWD; i++) {
        while (am_send(0, i, SHORT, 8, NULL) == UCS_OK) {
            sent++;
        }
        for (unsigned k = 0; k < 20; k++) {
            uct_worker_progress(world.side[0].worker);
        }
    }
    assert_true(sent > 64);
    wait_until(stats().rx_shared_low > 0);
    wait_until(receives_of(1) > 64);
    pump_until(am_all_here());
    for (int i = 0; i < CROWD; i++) {
        am_exchange(i, 100);
    }
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
    assert_true(receives_of(1) <= 4 * 64);
    assert_in_range(fake_counts().srq_low, 1, 3); /* from 64 to 256, and once more: there are no more to be had */
    fake_forgive_rnr();                           /* of messages that came while there were none yet */
}

/* No job brings receives just now. */
static int is_idle(int s)
{
    struct uct_ha_lanes *lanes = lanes_of(s);
    int                  idle;

    pthread_mutex_lock(&lanes->wake.lock);
    idle = !lanes->shared[0].busy;
    pthread_mutex_unlock(&lanes->wake.lock);
    return idle;
}

static void low(int s)
{
    struct uct_ha_lanes *lanes = lanes_of(s);

    pthread_mutex_lock(&lanes->wake.lock);
    uct_ha_shared_low_locked(lanes, 0);
    pthread_mutex_unlock(&lanes->wake.lock);
}

/* The card says that few are left while a job is still bringing more: that job is not all there is to come. */
static void test_shared_low_again(void **state)
{
    (void)state;
    open_crowd(710, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SRQ_LEN=16");
    wait_until(is_idle(1));
    assert_int_equal(receives_of(1), 16);
    fake_hang(FAKE_CALL_SRQ_WATCH, B0, 300, 1);
    low(1);
    wait_until(fake_hangs(FAKE_CALL_SRQ_WATCH));
    assert_int_equal(receives_of(1), 2 * 16);
    low(1);
    wait_until(receives_of(1) == 4 * 16);
    am_exchange(0, 50);
    assert_int_equal(stats().ep_errors, 0);
}

/* It says so once. Who wanted nothing then asks it again when there are more connections. */
static void test_shared_watched_again(void **state)
{
    unsigned asked;

    (void)state;
    open_crowd(711, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SRQ_LEN=128");
    for (int i = 1; i < CROWD; i++) {
        ep_close(0, i);
        ep_close(1, i);
    }
    pump_until(lanes_of(1)->shared[0].wanted <= 16 + 4);
    wait_until(is_idle(1));
    low(1);
    assert_int_equal(receives_of(1), 128);
    fake_hang(FAKE_CALL_SRQ_WATCH, B0, 1, 1000);
    asked = fake_hung(FAKE_CALL_SRQ_WATCH);
    for (int i = 1; i < CROWD; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 3);
    }
    wait_standbys(2 * CROWD);
    wait_until(fake_hung(FAKE_CALL_SRQ_WATCH) > asked);
    assert_int_equal(stats().ep_errors, 0);
}

/* A queue that is empty keeps who sends waiting, and that is all. A card that does not say so is not asked with every
 * packet: peers hear that it may be. */
static void test_shared_empty(void **state)
{
    unsigned asked;

    (void)state;
    world_open(702, "RX_QUEUE_INIT=64 RX_QUEUE_LEN=64 SRQ_LEN=16");
    fake_fail(FAKE_CALL_SRQ_WATCH, -1, -EINVAL, 1000);
    fake_hang(FAKE_CALL_SRQ_WATCH, B0, 1, 1000);
    open_eps(4);
    for (unsigned round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++) {
            am_post(0, i, 60);
        }
        pump_until(am_all_here());
    }
    assert_true(fake_counts().rnr > 0);
    fake_forgive_rnr();
    assert_true(is_scarce(1));
    asked = fake_hung(FAKE_CALL_SRQ_WATCH);
    pump_ms(1000);
    assert_int_equal(fake_hung(FAKE_CALL_SRQ_WATCH), asked);
    assert_int_equal(receives_of(1), 16);
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

/* More receives are wanted, and what is under way holds all places. Where the queue could be deeper that is asked for;
 * else who comes is content with those that are there. */
static void test_shared_places_are_taken(void **state)
{
    struct uct_ha_lanes *lanes;
    struct uct_ha_room  *room;
    struct uct_ha_desc  *none = NULL;
    unsigned             sends;
    int                  refused, deeper, deepest;

    (void)state;
    world_open(715, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16");
    open_eps(1);
    lanes = lanes_of(1);
    room  = &lanes->room[0];
    pthread_mutex_lock(&lanes->wake.lock);
    sends       = room->sends;
    refused     = room->refused;
    room->sends = room->depth;
    uct_ha_shared_want(&lanes->shared[0], 100);
    deeper        = uct_ha_shared_fill_locked(lanes, 0, &none);
    room->refused = 1;
    deepest       = uct_ha_shared_fill_locked(lanes, 0, &none);
    uct_ha_shared_want(&lanes->shared[0], -100);
    room->sends   = sends;
    room->refused = refused;
    pthread_mutex_unlock(&lanes->wake.lock);
    assert_int_equal(deeper, -EAGAIN);
    assert_int_equal(deepest, 0);
    am_exchange(0, 20);
    assert_int_equal(stats().ep_errors, 0);
}

/* An interface that closes still speaks to its peers, but has the device asked nothing any more: no job would find it.
 */
static void test_shared_closing_asks_nothing(void **state)
{
    struct uct_ha_shared *shared;
    pthread_mutex_t      *lock;
    int                   closing, open;

    (void)state;
    open_crowd(716, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SRQ_LEN=64");
    wait_until(is_idle(1));
    shared = &lanes_of(1)->shared[0];
    lock   = &lanes_of(1)->wake.lock;
    pthread_mutex_lock(lock);
    shared->watched      = 0;
    lanes_of(1)->leaving = 1;
    (void)uct_ha_shared_is_scarce_locked(shared);
    closing              = shared->busy;
    lanes_of(1)->leaving = 0;
    (void)uct_ha_shared_is_scarce_locked(shared);
    open = shared->busy;
    pthread_mutex_unlock(lock);
    assert_false(closing);
    assert_true(open);
    wait_until(is_idle(1));
}

/* Side 0 looks, side 1 computes. */
static void compute(unsigned ms)
{
    uint64_t until = now_ns() + ms * 1000000ull;

    while (now_ns() < until) {
        uct_worker_progress(world.side[0].worker);
        usleep(200);
    }
}

static int peer_is_scarce(int s)
{
    struct uct_ha_iface *iface = uct_ha_iface(world.side[s].iface);
    struct uct_ha_peer  *peer;
    int                  scarce = 0;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    ucs_list_for_each (peer, &iface->pairs.peers, list) {
        scarce |= peer->scarce;
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return scarce;
}

static void post_to_all(unsigned count)
{
    for (int i = 0; i < 4; i++) {
        am_post(0, i, count);
    }
}

/* More is sent than there are receives to a process that computes, for far longer than the RTO: it says that few are
 * left, and its peer takes it for no loss. Nor does it say so any more when it has looked. */
static void test_shared_wait_is_no_loss(void **state)
{
    uint64_t start;

    (void)state;
    world_open(712, "RX_QUEUE_INIT=64 RX_QUEUE_LEN=64 SRQ_LEN=16");
    open_eps(4);
    for (int round = 0; round < 2; round++) {
        assert_false(is_scarce(1));
        post_to_all(60);
        compute(2000);
        assert_true(is_scarce(1));
        assert_true(peer_is_scarce(0));
        assert_int_equal(stats().failovers, 0);
        pump_until(am_all_here());
        assert_true(fake_counts().rnr > 0); /* as is seen when there are receives again */
        fake_forgive_rnr();
        start = now_ns();
        while (is_scarce(1) || peer_is_scarce(0)) {
            am_exchange(0, 20);
            keep_patience(start);
        }
    }
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

/* Who had few left has the device asked again, and before it is, all that there are have been taken. Not every device
 * says so then: it is not over before more were posted. */
static void test_shared_asked_too_late(void **state)
{
    (void)state;
    world_open(717, "RX_QUEUE_INIT=64 RX_QUEUE_LEN=64 SRQ_LEN=16");
    open_eps(4);
    post_to_all(60);
    compute(200);
    assert_true(is_scarce(1));
    wait_until(is_idle(1));
    fake_hang(FAKE_CALL_SRQ_WATCH, B0, 150, 1);
    pump_until(am_all_here());
    assert_true(is_scarce(1)); /* has it asked */
    wait_until(fake_hangs(FAKE_CALL_SRQ_WATCH));
    post_to_all(60);
    compute(250);
    assert_true(is_idle(1));
    assert_true(is_scarce(1));
    pump_until(am_all_here());
    fake_forgive_rnr();
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

/* Windows grow to their full length where that takes no buffers, whatever the queue can hold. */
static void test_shared_windows_grow(void **state)
{
    const uint32_t first = CROWD * (4 + 4), last = CROWD * (64 + 4), most = 4 * 32;

    (void)state;
    open_crowd(713, "RX_QUEUE_INIT=4 RX_QUEUE_LEN=64 SRQ_LEN=32 RX_MEM=1k");
    assert_int_equal(lanes_of(1)->shared[0].wanted, first);
    assert_int_equal(lanes_of(1)->shared[0].most, most);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < CROWD; i++) {
            am_post(0, i, 40);
        }
        pump_until(am_all_here());
    }
    assert_int_equal(lanes_of(1)->shared[0].wanted, last);
    assert_int_equal(lanes_of(1)->shared[1].wanted, last);
    assert_true(receives_of(1) <= most);
    check_places(1, CROWD);
    fake_forgive_rnr(); /* of messages that came while there were few yet */
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_shared_receives),         GLUE_TEST(test_shared_wait_is_no_loss),
    GLUE_TEST(test_shared_asked_too_late),   GLUE_TEST(test_shared_windows_grow),
    GLUE_TEST(test_shared_grows_when_low),   GLUE_TEST(test_shared_empty),
    GLUE_TEST(test_shared_places_are_taken), GLUE_TEST(test_shared_closing_asks_nothing),
    GLUE_TEST(test_shared_low_again),        GLUE_TEST(test_shared_watched_again),
};

int glue_shared(void)
{
    return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
