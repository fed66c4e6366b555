/* SPDX-License-Identifier: BSD-3-Clause */

/* Rails that break while operations are under way. Each message must arrive
 * once and in order, each PUT be executed once. */

#include "glue_tests.h"

#include <string.h>

static void post_some(void)
{
    for (int s = 0; s < 2; s++) {
        am_post(s, 0, 8);
        rma_put(s, 0, 12);
        rma_get_loose(s, 0, 3);
        am_post(s, 0, 4);
    }
}

static void test_cut_here(void **state)
{
    (void)state;
    redundant_open(40, "");
    post_some();
    fake_port(A0, 0);
    post_some();
    redundant_check();
    pump_until(stats().failovers == 2);
    assert_int_equal(stats().pairs, 2);
    assert_int_equal(stats().standbys, 0);
}

static void test_cut_there(void **state)
{
    (void)state;
    redundant_open(41, "");
    post_some();
    fake_port(B0, 0);
    post_some();
    redundant_check();
    pump_until(stats().failovers == 2);
}

/* No event tells: retries run out. */
static void test_silent_loss(void **state)
{
    (void)state;
    redundant_open(42, "");
    fake_set(A0, FAKE_LOSE_DATA_OUT, 1000);
    post_some();
    redundant_check();
    assert_true(fake_counts().retry_exceeded > 0);
    assert_int_equal(stats().failovers, 2);
}

/* The peer executes everything and cannot say so: nothing may run again. */
static void test_acks_lost(void **state)
{
    (void)state;
    redundant_open(43, "TIMEOUT=14");
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    fake_set(A0, FAKE_LOSE_ACK_OUT, 1000);
    post_some();
    redundant_check();
    pump_until(stats().failovers == 2);
    assert_true(stats().retired > 10);
    assert_true(stats().silent_ns_total > 100000000ull); /* the lanes were, though probes were answered */
}

static void test_late_packet(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        redundant_open(4400 + seed, "");
        for (int rail = A0; rail <= B1; rail++) {
            fake_set(rail, FAKE_LATE, 1000);
            fake_set(rail, FAKE_STALL, 700);
        }
        post_some();
        fake_event_qp_fatal(seed % 2 ? A0 : B0);
        pump_ms(1);
        post_some();
        redundant_check();
        pump_until(stats().failovers == 2);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Back and forth: the standby of one failover is the active lane of the next. */
static void test_many_cuts(void **state)
{
    (void)state;
    redundant_open(45, "HEARTBEAT=10ms");
    for (unsigned cut = 0; cut < 200; cut++) {
        int rail = (int)(cut % 2 + 2 * (cut / 2 % 2)); /* a0 a1 b0 b1 */

        post_some();
        fake_port(rail, 0);
        post_some();
        redundant_check();
        fake_port(rail, 1);
        wait_standbys(2);
    }
    assert_int_equal(stats().failovers, 400);
    assert_int_equal(stats().ep_errors, 0);
}

static void test_control_packets_lost(void **state)
{
    (void)state;
    redundant_open(46, "HEARTBEAT=0");
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LOSE_CTL, 300);
        fake_set(rail, FAKE_REPEAT_CTL, 300);
    }
    for (unsigned cut = 0; cut < 10; cut++) {
        int rail = (int)(cut % 2);

        post_some();
        fake_port(rail, 0);
        post_some();
        redundant_check();
        fake_port(rail, 1);
        wait_standbys(2);
    }
    assert_int_equal(stats().failovers, 20);
}

static void test_flapping(void **state)
{
    (void)state;
    redundant_open(47, "HEARTBEAT=10ms");
    for (unsigned i = 0; i < 100; i++) {
        post_some();
        fake_port(A0, (int)(i % 2));
        pump_ms(i % 5);
        if (i % 8 == 7) {
            redundant_check();
        }
    }
    redundant_check();
    fake_port(A0, 1);
    wait_standbys(2);
}

static void test_flush_across(void **state)
{
    struct counted flush[2];

    (void)state;
    redundant_open(48, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 900);
    post_some();
    for (int s = 0; s < 2; s++) {
        assert_int_equal(uct_ep_flush(world.side[s].ep[0], 0, count_completion(&flush[s])), UCS_INPROGRESS);
    }
    fake_port(A0, 0);
    pump_until(flush[0].called && flush[1].called);
    assert_int_equal(flush[0].status, UCS_OK);
    assert_int_equal(flush[1].status, UCS_OK);
    redundant_check();
}

/* The peer computes: its handler alone has to be enough for one failover. */
static void test_peer_does_not_poll(void **state)
{
    uint64_t start;

    (void)state;
    redundant_open(49, "");
    pump_ms(50);
    fake_port(A0, 0);
    rma_put(0, 0, 30);
    start = now_ns();
    while (uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK) {
        (void)uct_worker_progress(world.side[0].worker);
        keep_patience(start);
    }
    redundant_check();
}

/* Both rails go, one comes back in time. */
static void test_outage_in_time(void **state)
{
    (void)state;
    redundant_open(50, "HEARTBEAT=10ms");
    post_some();
    fake_port(A0, 0);
    fake_port(A1, 0);
    rma_put(0, 0, 5);
    pump_ms(100);
    fake_port(A1, 1);
    redundant_check();
    fake_port(A0, 1);
    wait_standbys(2);
    assert_int_equal(stats().ep_errors, 0);
}

/* The link is well but a queue pair is not. */
static void test_post_refused(void **state)
{
    (void)state;
    redundant_open(51, "");
    post_some();
    fake_fail(FAKE_CALL_POST_SEND, A0, -5, 1);
    post_some();
    redundant_check();
    wait_standbys(2);
}

/* Endpoints destroyed with work under way: it still arrives. */
static void test_destroy_during_failover(void **state)
{
    (void)state;
    redundant_open(52, "");
    fake_set(A0, FAKE_STALL, 950);
    am_post(0, 0, 20);
    rma_put(0, 0, 10);
    ep_close(0, 0);
    fake_port(A0, 0);
    redundant_check();
    ep_close(1, 0);
    pump_until(stats().pairs == 0);
}

static void test_many_endpoints_at_once(void **state)
{
    (void)state;
    world_open(53, "");
    for (int i = 0; i < EPS_MAX; i++) {
        ep_open(i % 2, i);
        ep_open(!(i % 2), i);
        am_exchange(i, 4);
    }
    wait_standbys(2 * EPS_MAX);
    for (int i = 0; i < EPS_MAX; i++) {
        am_post(i % 2, i, 10);
    }
    fake_port(B0, 0);
    pump_until(am_all_here());
    flush_all();
    pump_until(stats().failovers == 2 * EPS_MAX);
    fake_port(B0, 1);
    wait_standbys(2 * EPS_MAX);
}

/* Silence on the control plane of one rail, data goes through: no harm. */
static void test_rail_without_answers(void **state)
{
    (void)state;
    redundant_open(54, "HEARTBEAT=10ms");
    fake_set(A0, FAKE_LOSE_CTL, 1000);
    for (unsigned i = 0; i < 20; i++) {
        post_some();
        pump_ms(10);
        redundant_check();
    }
    fake_set(A0, FAKE_LOSE_CTL, 0);
    wait_standbys(2);
}

/* Answers take longer than a heartbeat, on the rail that is in use only: slow is not
 * dead, and the way does get used as the standby of the other one. */
static void test_rail_that_answers_late(void **state)
{
    (void)state;
    redundant_open(58, "HEARTBEAT=150ms");
    fake_set(A0, FAKE_CTL_DELAY_US, 200000);
    pump_ms(2000);
    assert_int_equal(stats().failovers, 0);
    post_some();
    redundant_check();
    fake_set(A0, FAKE_LOSE_CTL, 1000); /* now it is silent */
    fake_set(A0, FAKE_LOSE_DATA_OUT, 1000);
    post_some();
    redundant_check();
    assert_true(stats().failovers > 0);
    fake_set(A0, FAKE_CTL_DELAY_US, 0);
    fake_set(A0, FAKE_LOSE_CTL, 0);
    fake_set(A0, FAKE_LOSE_DATA_OUT, 0);
    wait_standbys(2);
}

/* Work goes back to the first rail, and the second one is a standby again. */
static void test_failback(void **state)
{
    uint64_t start;

    (void)state;
    redundant_open(55, "HEARTBEAT=10ms FAILBACK=300ms");
    for (unsigned round = 1; round <= 3; round++) {
        post_some();
        fake_port(round % 2 ? A0 : B0, 0);
        redundant_check();
        pump_until(stats().failovers == 4 * round - 2);
        start = now_ns();
        fake_port(round % 2 ? A0 : B0, 1);
        wait_standbys(2);
        if (now_ns() - start < 250000000ull) {
            assert_int_equal(stats().failbacks, 2 * round - 2);
        }
        while (stats().failbacks < 2 * round) {
            post_some();
            redundant_check();
            keep_patience(start);
        }
        assert_true(now_ns() - start > 250000000ull);
        assert_int_equal(stats().failovers, 4 * round);
        wait_standbys(2);
    }
    fake_port(A1, 0); /* now the standby: nobody moves */
    post_some();
    redundant_check();
    assert_int_equal(stats().failovers, 12);
}

/* The preferred rail fails again while it waits for its turn: the wait begins anew. */
static void test_failback_needs_calm(void **state)
{
    uint64_t up_at;

    (void)state;
    redundant_open(56, "HEARTBEAT=10ms FAILBACK=2s");
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    for (unsigned i = 0; i < 6; i++) { /* 3 s together */
        up_at = now_ns();
        fake_port(A0, 1);
        wait_standbys(2);
        pump_ms(500);
        fake_port(A0, 0);
        if (now_ns() - up_at > 1800000000ull) {
            return; /* the machine stood still: that was calm enough */
        }
        pump_ms(20);
        post_some();
        redundant_check();
    }
    assert_int_equal(stats().failovers, 2);
    fake_port(A0, 1);
    pump_until(stats().failbacks == 2);
}

static uint64_t ms_until_standby(int rail)
{
    uint64_t start;

    start = now_ns();
    fake_port(rail, 0);
    pump_until(stats().standbys == 0);
    fake_port(rail, 1);
    wait_standbys(2);
    return (now_ns() - start) / 1000000;
}

/* A rail that flaps is left alone for longer and longer, but not when it is needed. */
static void test_flaps_are_damped(void **state)
{
    uint64_t first, last = 0, start;

    (void)state;
    redundant_open(57, "HEARTBEAT=10ms COOLDOWN=200ms COOLDOWN_MAX=10s");
    first = ms_until_standby(A1);
    for (unsigned i = 0; i < 4; i++) {
        last = ms_until_standby(A1);
    }
    assert_true(last > 2500 && last > first);
    fake_port(A1, 0);
    pump_until(stats().standbys == 0);
    fake_port(A1, 1);
    pump_ms(100);
    assert_int_equal(stats().standbys, 0);
    start = now_ns();
    fake_port(B0, 0);
    post_some();
    redundant_check();
    assert_soon(start, 5000000000ull); /* it would be left alone for 6.4 s */
}

/* Nothing moves on that rail three heartbeats of four: less than the RTO. */
static void work_behind(int rail, uint64_t ms)
{
    struct side *side  = &world.side[0];
    uint64_t     value = 1, end = now_ns() + ms * 1000000;

    while (now_ns() < end) {
        fake_set(rail, FAKE_STALL, now_ns() / 80000000ull % 4 != 0 ? 1000 : 0);
        (void)uct_ep_put_short(side->ep[0], &value, sizeof(value), (uintptr_t)rma_place(1, PLACES - 1),
                               side->rkey.rkey);
        pump();
    }
    fake_set(rail, FAKE_STALL, 0);
    flush_all();
}

/* A rail answers, but takes a hundred times as long, and work falls behind: left when the other one does not. */
static void test_slow_rail(void **state)
{
    (void)state;
    redundant_open(58, "HEARTBEAT=80ms SLOW_RAIL=10 FAILBACK=500ms");
    pump_ms(2000);                          /* so it is always */
    fake_set(A1, FAKE_CTL_DELAY_US, 60000); /* of the standby: nobody's business */
    pump_ms(800);
    assert_int_equal(stats().failovers, 0);
    fake_set(A1, FAKE_CTL_DELAY_US, 0);
    pump_ms(800);
    fake_set(A0, FAKE_CTL_DELAY_US, 60000);
    pump_ms(1000);
    assert_int_equal(stats().failovers, 0); /* nobody has work that would gain by it */
    for (int i = 0; i < 20 && stats().failovers < 2; i++) {
        work_behind(A0, 500);
    }
    pump_until(stats().failovers == 2);
    post_some();
    redundant_check();
    wait_standbys(2); /* the slow one */
    pump_ms(1200);
    assert_int_equal(stats().failbacks, 0);
    fake_set(A0, FAKE_CTL_DELAY_US, 0);
    pump_until(stats().failbacks == 2);
    post_some();
    redundant_check();
}

/* Both rails are slow: it is the host that is busy. */
static void test_slow_host(void **state)
{
    (void)state;
    redundant_open(59, "HEARTBEAT=80ms SLOW_RAIL=10");
    pump_ms(2000);
    fake_set(A1, FAKE_CTL_DELAY_US, 60000); /* the standby first: between the two somebody may look */
    pump_ms(500);
    fake_set(A0, FAKE_CTL_DELAY_US, 60000);
    pump_ms(1000);
    assert_int_equal(stats().failovers, 0);
}

static void lose_control(unsigned per_mille)
{
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LOSE_CTL, per_mille);
    }
}

/* Half of all control packets are lost until everything is as it was, the last word among them, then none: in the end
 * everybody knows everything, and says no more. */
static void test_states_are_silent_in_the_end(void **state)
{
    uint64_t before;

    (void)state;
    redundant_open(61, "HEARTBEAT=0 COOLDOWN=0");
    for (int round = 0; round < 16; round++) {
        lose_control(500);
        fake_port(round % 2 ? A1 : A0, 0);
        pump_ms(5);
        fake_port(round % 2 ? A1 : A0, 1);
        wait_standbys(2);
        lose_control(0);
        pump_ms(200);
        before = stats().ctl_tx_state;
        pump_ms(200);
        assert_int_equal(stats().ctl_tx_state, before);
    }
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_cut_here),
    GLUE_TEST(test_cut_there),
    GLUE_TEST(test_silent_loss),
    GLUE_TEST(test_acks_lost),
    GLUE_TEST(test_late_packet),
    GLUE_TEST(test_many_cuts),
    GLUE_TEST(test_control_packets_lost),
    GLUE_TEST(test_flapping),
    GLUE_TEST(test_flush_across),
    GLUE_TEST(test_peer_does_not_poll),
    GLUE_TEST(test_outage_in_time),
    GLUE_TEST(test_post_refused),
    GLUE_TEST(test_destroy_during_failover),
    GLUE_TEST(test_many_endpoints_at_once),
    GLUE_TEST(test_rail_without_answers),
    GLUE_TEST(test_rail_that_answers_late),
    GLUE_TEST(test_failback),
    GLUE_TEST(test_failback_needs_calm),
    GLUE_TEST(test_flaps_are_damped),
    GLUE_TEST(test_slow_rail),
    GLUE_TEST(test_slow_host),
    GLUE_TEST(test_states_are_silent_in_the_end),
};

int glue_failover(void)
{
    return cmocka_run_group_tests_name("failover", tests, NULL, NULL);
}
