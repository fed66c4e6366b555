/* SPDX-License-Identifier: BSD-3-Clause */

/* Receives that all connections of an interface share: those that do not come back, whose each of them is, and cards
 * that have none such. */

#include "glue_tests.h"

#include "lane/number.h"
#include "lane/shared.h"
#include "uct/iface.h"

#include <errno.h>
#include <stdlib.h>

static struct uct_ha_lanes *lanes_of(int s)
{
    return &uct_ha_iface(world.side[s].iface)->lanes;
}

/* Messages of several packets are cut off, and their receives do not come back: they are found, and used again. */
static void test_shared_lost_are_found(void **state)
{
    uint64_t before, start, moved;
    unsigned rail = 0;

    (void)state;
    world.personality[0] = world.personality[1] = "rxe";
    world_open(703, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SEG_SIZE=8k DEAD_PEER=20s");
    for (int i = 0; i < 2; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 3);
    }
    wait_standbys(4);
    for (unsigned cut = 0; cut < 60 && fake_counts().taken_along < 3; cut++) {
        fake_set(A0 + (int)(cut % 2), FAKE_LOSE_DATA_OUT, 400);
        for (int i = 0; i < 2; i++) {
            for (unsigned k = 0; k < 8; k++) {
                (void)am_send(0, i, BCOPY, 8000, NULL);
            }
        }
        pump_ms(2);
        fake_event_qp_fatal(A0 + (int)(cut % 2));
        fake_set(A0 + (int)(cut % 2), FAKE_LOSE_DATA_OUT, 0);
        pump_until(am_all_here());
        wait_standbys(4);
    }
    assert_true(fake_counts().taken_along >= 3);
    before = stats().rx_bytes;
    start  = now_ns();
    moved  = start;
    while (stats().rx_lost == 0) {              /* when their queue pairs have been destroyed, after their rest */
        if (now_ns() - moved > 6000000000ull) { /* and when messages come by the rail that lacks them */
            moved = now_ns();
            fake_event_qp_fatal(A0 + (int)(rail++ % 2));
            wait_standbys(4);
        }
        am_exchange(0, 40);
        am_exchange(1, 40);
        keep_patience(start);
    }
    assert_true(stats().rx_lost <= fake_counts().taken_along);
    assert_int_equal(stats().rx_bytes, before);
    assert_int_equal(stats().ep_errors, 0);
}

/* The number of a queue pair that is gone leads nowhere, nor does another lane get it, until its completion queue was
 * seen empty behind the destruction. */
static void test_shared_number_comes_again(void **state)
{
    struct uct_ha_shared *shared;
    struct uct_ha_lane   *grave = calloc(1, sizeof(*grave)), *lane;
    pthread_mutex_t      *lock;

    (void)state;
    world_open(704, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 20);
    wait_standbys(2);
    shared        = &lanes_of(1)->shared[0];
    lock          = &lanes_of(1)->wake.lock;
    lane          = uct_ha_number_find_locked(shared, fake_last_qpn(B0));
    grave->lanes  = lanes_of(1);
    grave->shared = shared;
    grave->qpn    = lane->qpn;
    pthread_mutex_lock(lock);
    uct_ha_number_park_locked(lane);
    assert_null(uct_ha_number_find_locked(shared, lane->qpn));
    assert_int_equal(uct_ha_number_enter_locked(lane), -EAGAIN);
    pthread_mutex_unlock(lock);
    uct_ha_number_bury(grave);
    assert_ptr_equal(uct_ha_number_take_graves(lanes_of(1), 0), grave);
    assert_null(uct_ha_number_find_locked(shared, lane->qpn));
    uct_ha_number_forget(lanes_of(1), 0, grave);
    pthread_mutex_lock(lock);
    assert_int_equal(uct_ha_number_enter_locked(lane), 0);
    assert_ptr_equal(uct_ha_number_find_locked(shared, lane->qpn), lane);
    pthread_mutex_unlock(lock);
    am_exchange(0, 20);
    assert_int_equal(stats().failovers, 0);
}

static uintptr_t came_to[1024];
static unsigned  came;

static ucs_status_t note(void *arg, void *data, size_t length, unsigned flags)
{
    if (came < sizeof(came_to) / sizeof(*came_to)) {
        came_to[came++] = (uintptr_t)data;
    }
    return am_received(arg, data, length, flags);
}

/* Messages come to the same buffers in the same order, one behind the other as they lie in memory: who reads them, a
 * processor that looks ahead, knows the next one. */
static void test_shared_in_turn(void **state)
{
    unsigned turn = 1, ahead = 0;

    (void)state;
    world_open(708, "SRQ_LEN=64");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 300);
    wait_standbys(2);
    assert_non_null(lanes_of(1)->shared[0].srq);
    assert_int_equal(uct_iface_set_am_handler(world.side[1].iface, AM_ID, note, &world.side[1], 0), UCS_OK);
    came = 0;
    am_post(0, 0, sizeof(came_to) / sizeof(*came_to));
    pump_until(am_all_here());
    while (turn < came && came_to[turn] != came_to[0]) {
        turn++;
    }
    assert_in_range(turn, 16, 128);
    for (unsigned i = 0; i + turn < came; i++) {
        assert_int_equal(came_to[i + turn], came_to[i]);
        ahead += came_to[i + 1] > came_to[i] && came_to[i + 1] - came_to[i] < 3 * 8192;
    }
    assert_true(ahead >= (came - turn) * 3 / 4);
}

/* Cards without such queues, and those that refuse one: each connection has its own, as with SRQ_LEN=0. */
static void test_no_shared_queue(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        world.personality[0] = world.personality[1] = i == 0 ? "irdma" : NULL;
        world_open(705 + i, i == 1 ? "SRQ_LEN=0" : "");
        if (i == 2) {
            side_close(1);
            fake_fail(FAKE_CALL_SRQ_CREATE, -1, -ENOMEM, 2);
            side_open(1, "");
        }
        assert_null(lanes_of(1)->shared[0].srq);
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 50);
        wait_standbys(2);
        fake_port(A0, 0);
        am_exchange(0, 50);
        assert_int_equal(stats().failovers, 2);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
    world.personality[0] = world.personality[1] = NULL;
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_shared_lost_are_found),
    GLUE_TEST(test_shared_number_comes_again),
    GLUE_TEST(test_shared_in_turn),
    GLUE_TEST(test_no_shared_queue),
};

int glue_repost(void)
{
    return cmocka_run_group_tests_name("repost", tests, NULL, NULL);
}
