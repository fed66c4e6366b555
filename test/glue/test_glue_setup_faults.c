/* SPDX-License-Identifier: BSD-3-Clause */

/* Connections under bad luck while they are made; hosts with less than two
 * rails; devices that refuse. */

#include "glue_tests.h"

#include <errno.h>
#include <string.h>

/* Many begin at once: nothing is done for a second rail before all have a lane and have
 * said their first words. Then it comes by itself. */
static void test_first_messages_come_first(void **state)
{
    struct fake_objects first;
    uint64_t            start;

    (void)state;
    world_open(75, "");
    start = now_ns();
    for (int i = 0; i < EPS_MAX; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_post(0, i, 1);
        am_post(1, i, 1);
    }
    pump_until(am_all_here());
    first = fake_objects();
    if (now_ns() - start < 90000000ull) { /* else this machine is too slow to tell */
        assert_in_range(first.ahs, 0, 2); /* one rail from either side, or TCP was faster */
        assert_int_equal(first.rcs, 2 * EPS_MAX);
    }
    wait_standbys(2 * EPS_MAX);
    assert_true(now_ns() - start > 90000000ull);
    pump_until(fake_objects().ahs == 4);
}

/* Side 1 never makes an endpoint of its own. */
static void test_never_bound(void **state)
{
    (void)state;
    world_open(60, "");
    ep_open(0, 0);
    am_post(0, 0, 300);
    pump_until(am_all_here());
    wait_standbys(2);
    fake_port(B0, 0);
    am_post(0, 0, 100);
    pump_until(am_all_here());
    ep_close(0, 0);
    pump_until(stats().pairs == 0);
}

static void test_single_rail(void **state)
{
    (void)state;
    world_open(61, "ENABLE_BACKUP=n");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 100);
    rma_put(0, 0, 50);
    flush_all();
    rma_check(0);
    assert_int_equal(stats().standbys, 0);
    /* the only rail has a hiccup: a new lane on the same rail */
    am_post(0, 0, 10);
    fake_event_qp_fatal(A0);
    am_exchange(0, 50);
    assert_int_equal(stats().ep_errors, 0);
}

static void test_one_side_single_rail(void **state)
{
    (void)state;
    world_open(62, "");
    side_close(1);
    side_open(1, "ENABLE_BACKUP=n");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 100);
    am_post(0, 0, 10);
    fake_port(B0, 0);
    pump_ms(50);
    fake_port(B0, 1);
    am_exchange(0, 50);
    assert_int_equal(stats().ep_errors, 0);
}

/* The primary is down on one side from the start: the standby carries. */
static void test_primary_down_at_start(void **state)
{
    (void)state;
    for (int rail = A0; rail <= B1; rail++) {
        world_open(6300 + (uint64_t)rail, "HEARTBEAT=10ms");
        fake_port(rail, 0);
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 30);
        fake_port(rail, 1);
        wait_standbys(2);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* A rail breaks at every moment of the set-up. */
static void test_cut_while_connecting(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 12; when++) {
        world_open(6400 + when, "HEARTBEAT=10ms");
        for (int rail = A0; rail <= B1; rail++) {
            fake_set(rail, FAKE_BLOCK_MS, when % 3);
        }
        ep_open(0, 0);
        ep_open(1, 0);
        am_post(0, 0, 5);
        pump_ms(when);
        fake_port((int)(when % 4), 0);
        am_post(1, 0, 5);
        pump_until(am_all_here());
        fake_port((int)(when % 4), 1);
        wait_standbys(2);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Address look-up and connecting take long: heartbeats and progress go on. */
static void test_slow_neighbour(void **state)
{
    uint64_t start;

    (void)state;
    world_open(65, "");
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_BLOCK_MS, 2000);
    }
    ep_open(0, 0);
    ep_open(1, 0);
    start = now_ns();
    for (int i = 0; i < 10; i++) {
        pump();
    }
    assert_soon(start, 1500000000ull);
    am_exchange(0, 20);
    assert_int_equal(stats().ep_errors, 0);
}

static void test_close_while_connecting(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 8; when++) {
        world_open(6600 + when, "");
        fake_set(A0, FAKE_BLOCK_MS, 20);
        fake_set(B1, FAKE_BLOCK_MS, 20);
        ep_open(0, 0);
        ep_open(1, 0);
        am_post(0, 0, 3);
        pump_ms(when * 5);
        ep_close((int)(when % 2), 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

static void test_refused_now_and_then(void **state)
{
    static const enum fake_call calls[] = {
        FAKE_CALL_RC_CREATE, FAKE_CALL_RC_CONNECT, FAKE_CALL_AH_CREATE,
        FAKE_CALL_UD_SEND,   FAKE_CALL_POST_RECV,  FAKE_CALL_CQ_RESIZE,
    };

    (void)state;
    for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
        world_open(6700 + c, "");
        fake_fail(calls[c], -1, -ENOMEM, 2);
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 50);
        wait_standbys(2);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* One rail has no room for a control queue pair: the other one speaks for it. */
static void test_control_on_one_rail(void **state)
{
    (void)state;
    world_open(68, "");
    side_close(0);
    fake_fail(FAKE_CALL_UD_CREATE, A0, -ENOMEM, 1);
    side_open(0, "HEARTBEAT=10ms");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 50);
    wait_standbys(2);
    fake_port(A0, 0);
    am_exchange(0, 50);
    fake_port(A0, 1);
    wait_standbys(2); /* used again although nothing answers on it */
    fake_port(B0, 0);
    am_exchange(0, 50);
    fake_port(B0, 1);
    wait_standbys(2);
}

/* Control packets over TCP alone, as for devices without user UD. */
static void test_control_by_tcp(void **state)
{
    (void)state;
    world_open(72, "CONTROL=tcp HEARTBEAT=10ms");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 50);
    wait_standbys(2);
    for (unsigned cut = 0; cut < 8; cut++) {
        rma_put(0, 0, 20);
        fake_port((int)(cut % 4), 0);
        am_exchange(0, 30);
        fake_port((int)(cut % 4), 1);
        wait_standbys(2);
    }
    flush_all();
    rma_check(0);
    assert_int_equal(stats().ep_errors, 0);
}

/* No rail can carry datagrams: TCP is found by itself. */
static void test_no_datagrams(void **state)
{
    (void)state;
    world_open(73, "");
    side_close(0);
    fake_fail(FAKE_CALL_UD_CREATE, -1, -ENOMEM, 2);
    side_open(0, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 50);
    wait_standbys(2);
    fake_port(A0, 0);
    am_exchange(0, 50);
    assert_int_equal(stats().ep_errors, 0);
}

#define FIT 9 /* connections: 8 + 4 + 2 completions each, 64 for all, of 200 */

/* Completions of one more connection do not fit: that endpoint ends with an error, the others do not notice. They are
 * there before it comes: of those that come at once the two sides may have chosen different ones. */
static void test_completion_queue_full(void **state)
{
    (void)state;
    world_open_small(69, 200, "CONNECT_TIMEOUT=5s SRQ_LEN=0 RAILS=a0:1,b0:1"); /* a second rail would have room */
    for (int i = 0; i < FIT; i++) {
        ep_open(0, i);
        am_post(0, i, 5);
    }
    pump_until(am_all_here());
    for (int i = FIT; i < EPS_MAX; i++) {
        ep_open(0, i);
    }
    for (int i = 0; i < FIT; i++) {
        am_post(0, i, 5);
    }
    pump_until(world.side[0].errors >= EPS_MAX - FIT);
    for (int i = 0; i < FIT; i++) {
        am_post(0, i, 5);
    }
    pump_until(am_all_here());
    assert_int_equal(world.side[0].errors, EPS_MAX - FIT);
    assert_int_equal(world.side[0].error, UCS_ERR_UNREACHABLE);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_first_messages_come_first),
    GLUE_TEST(test_never_bound),
    GLUE_TEST(test_single_rail),
    GLUE_TEST(test_one_side_single_rail),
    GLUE_TEST(test_primary_down_at_start),
    GLUE_TEST(test_cut_while_connecting),
    GLUE_TEST(test_slow_neighbour),
    GLUE_TEST(test_close_while_connecting),
    GLUE_TEST(test_refused_now_and_then),
    GLUE_TEST(test_control_on_one_rail),
    GLUE_TEST(test_control_by_tcp),
    GLUE_TEST(test_no_datagrams),
    GLUE_TEST(test_completion_queue_full),
};

int glue_setup_faults(void)
{
    return cmocka_run_group_tests_name("setup", tests, NULL, NULL);
}
