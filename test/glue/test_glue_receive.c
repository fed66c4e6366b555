/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Receives go back in chains: the peer must never count on one that waits in a chain, and must get
 * each of them in the end, whatever becomes of the lane. And where progress looks for completions.
 */

#include "glue_tests.h"

#include "lane/ring.h"
#include "uct/ep.h"

#include <stdlib.h>

static unsigned side_0_fills_the_window(void)
{
    unsigned sent = 0;

    for (unsigned idle = 0; idle < 500; idle++) {
        if (am_send(0, 0, SHORT, 20, NULL) == UCS_OK) {
            sent++;
            idle = 0;
        }
        (void)uct_worker_progress(world.side[0].worker);
    }
    pump_until(am_all_here());
    return sent;
}

/* Few doorbells where the window is large; none that is missed where it is small. */
static void test_receives_go_back_in_chains(void **state)
{
    static const struct {
        const char *settings;
        unsigned    window, messages; /* each doorbell is for so many, at least */
    } cases[] = {
        {"RX_QUEUE_INIT=128 RX_QUEUE_LEN=128 SRQ_LEN=0", 128, 16},
        {"RX_QUEUE_INIT=64 RX_QUEUE_LEN=64 SRQ_LEN=0", 64, 8},
        {"RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 SRQ_LEN=0", 16, 2},
        {"RX_QUEUE_INIT=4 RX_QUEUE_LEN=16 RX_MEM=1k SRQ_LEN=0", 4, 1},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake_counts before;
        uint64_t           posted;

        redundant_open(1200 + i, cases[i].settings);
        flush_all();
        before = fake_counts();
        am_post(0, 0, 10 * 128);
        pump_until(am_all_here());
        posted = fake_counts().recvs - before.recvs;
        assert_true(posted >= 10 * 128 - cases[i].window);
        assert_true((fake_counts().recv_doorbells - before.recv_doorbells) * cases[i].messages <= posted);
        assert_true(side_0_fills_the_window() * 2 > cases[i].window);
        redundant_check();
        assert_int_equal(fake_counts().rnr + stats().failovers, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Some receives wait in the chain, and a message of the other direction tells what was consumed:
 * not those. Else the peer's next window would meet a receiver without buffers. */
static void test_only_posted_receives_are_told(void **state)
{
    (void)state;
    redundant_open(1210, "RX_QUEUE_INIT=64 RX_QUEUE_LEN=64 HEARTBEAT=0 SRQ_LEN=0");
    for (unsigned n = 1; n <= 33; n++) {
        am_post(0, 0, n);
        pump_until(am_all_here());
        am_post(1, 0, 1);
        pump_until(am_all_here());
        assert_true(side_0_fills_the_window() >= 64 - 31 - 15);
    }
    redundant_check();
    assert_int_equal(fake_counts().rnr + stats().failovers, 0);
}

/* What was in a chain when its lane ended is told all the same: no credit is lost. */
static void test_chains_of_lanes_that_ended(void **state)
{
    (void)state;
    redundant_open(1220, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 FAILBACK=0 HEARTBEAT=20ms SRQ_LEN=0");
    for (unsigned round = 0; round < 10; round++) {
        am_post(0, 0, 3); /* no chain is full */
        pump_until(am_all_here());
        fake_port(A0 + (int)(round % 2), 0);
        pump_until(stats().failovers >= 2 * (round + 1));
        fake_port(A0 + (int)(round % 2), 1);
        wait_standbys(2);
    }
    am_post(0, 0, 200);
    redundant_check();
    assert_true(side_0_fills_the_window() >= 16 - 7 - 3);
    assert_int_equal(fake_counts().rnr, 0);
}

/* A stream one way fills windows, which grow. Rings of their own do so beyond 128 only while the memory for it is an
 * eighth of what is left: here 2 MiB are taken for the first 128. */
static void test_long_windows_leave_memory(void **state)
{
    static const struct {
        const char *settings;
        uint16_t    window;
    } cases[] = {
        {"RX_QUEUE_INIT=8 RX_QUEUE_LEN=512 SEG_SIZE=8k SRQ_LEN=0 RX_MEM=64m", 512},
        {"RX_QUEUE_INIT=8 RX_QUEUE_LEN=512 SEG_SIZE=8k SRQ_LEN=0 RX_MEM=5m", 128},
        {"RX_QUEUE_INIT=8 RX_QUEUE_LEN=512 SEG_SIZE=8k RX_MEM=5m", 256},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        redundant_open(1230 + i, cases[i].settings);
        flush_all();
        am_post(0, 0, 5000);
        pump_until(am_all_here());
        assert_int_equal(uct_ha_ep_flow(world.side[1].ep[0])->road.rx_window, cases[i].window);
        redundant_check();
        world_close();
        (void)glue_setup(NULL);
    }
}

/* What waits for its turn when the window grows keeps its order. */
static void test_held_messages_as_the_window_grows(void **state)
{
    struct uct_ha_lane lane = {.held_head = 5, .held_tail = 5};

    (void)state;
    assert_int_equal(uct_ha_ring_hold_more(&lane, 12), 0);
    while (lane.held_tail != 17) {
        lane.held[lane.held_tail % lane.held_len].imm = lane.held_tail;
        lane.held_tail++;
    }
    assert_int_equal(uct_ha_ring_hold_more(&lane, 20), 0);
    assert_int_equal(lane.held_len, 20);
    for (uint32_t i = 5; i < 17; i++) {
        assert_int_equal(lane.held[i % 20].imm, i);
    }
    free(lane.held);
}

/* ---- where progress looks -------------------------------------------------------------- */

#define CALLS 3200

/* How often 3200 calls of progress look at the queues of a rail of side 0. */
static uint64_t looks(int rail)
{
    uint64_t before = fake_cq_polls(rail);

    for (unsigned i = 0; i < CALLS; i++) {
        (void)uct_worker_progress(world.side[0].worker);
    }
    return fake_cq_polls(rail) - before;
}

static int is_looked_at_rarely(int rail)
{
    uint64_t count = looks(rail);

    assert_true(count >= CALLS / 32);
    return count <= CALLS / 16;
}

static void test_standby_is_looked_at_rarely(void **state)
{
    (void)state;
    redundant_open(1230, "FAILBACK=0 HEARTBEAT=20ms");
    flush_all();
    pump_until(is_looked_at_rarely(A1));
    assert_true(looks(A0) >= CALLS);

    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    am_exchange(0, 20);
    pump_until(is_looked_at_rarely(A0)); /* once its lane is closed */
    assert_true(looks(A1) >= CALLS);

    fake_port(A0, 1); /* the standby is on the first rail now */
    wait_standbys(2);
    am_exchange(0, 20);
    pump_until(is_looked_at_rarely(A0));
    assert_true(looks(A1) >= CALLS);
    redundant_check();
}

/* A lane is stopped, and the peer, which computes, does not say what it has received: all queues are
 * looked at, since flushes and markers are awaited. */
static void test_all_queues_during_a_failover(void **state)
{
    uint64_t start = now_ns();

    (void)state;
    redundant_open(1240, "PROOF=count HEARTBEAT=0 DEAD_PEER=40s RTO=40s RTO_MAX=40s");
    flush_all();
    pump_until(is_looked_at_rarely(A1));
    fake_port(A0, 0);
    while (looks(A1) < CALLS) { /* until side 0 has stopped its lane */
        keep_patience(start);
    }
    assert_true(looks(A0) >= CALLS && looks(A1) >= CALLS);
    assert_int_equal(stats().failovers, 0);
    pump_until(stats().failovers == 2);
    am_exchange(0, 20);
    redundant_check();
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_receives_go_back_in_chains),
    GLUE_TEST(test_only_posted_receives_are_told),
    GLUE_TEST(test_chains_of_lanes_that_ended),
    GLUE_TEST(test_long_windows_leave_memory),
    GLUE_TEST(test_standby_is_looked_at_rarely),
    GLUE_TEST(test_all_queues_during_a_failover),
    cmocka_unit_test(test_held_messages_as_the_window_grows),
};

int glue_receive(void)
{
    return cmocka_run_group_tests_name("receive", tests, NULL, NULL);
}
