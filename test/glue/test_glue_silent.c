/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Most operations that nobody waits for make no completion. Whoever waits after all must be told:
 * by a tail, an operation of no effect that is one packet more on the wire.
 */

#include "glue_tests.h"

#include "uct/iface.h"

#include <unistd.h>

#define LONG_AGO 4096 /* calls of progress, in which what is silent has been told of */

static uint64_t executed; /* packets, before what a test sends */

/* `count` short PUTs of side 0, which are executed; 1: nothing told. */
static int put_some(unsigned count)
{
    uint64_t silent = fake_counts().silent;

    executed = fake_counts().packets;
    for (unsigned n = 0; n < count; n++) {
        assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
    }
    for (unsigned n = 0; fake_counts().silent < silent + count - 1; n++) {
        pump();
        assert_true(n < LONG_AGO / 8);
    }
    for (unsigned n = 0; fake_counts().silent < silent + count && n < 100; n++) {
        pump(); /* it is acknowledged by now, or told */
    }
    return fake_counts().silent == silent + count;
}

/* Which of them tell is a matter of their places in the log: two in a row are not such. */
static void put_silently(unsigned count)
{
    if (!put_some(count)) {
        flush_all();
        assert_true(put_some(count));
    }
}

static int tails(unsigned count)
{
    return (int)(fake_counts().packets - executed - count);
}

static void test_flush_has_a_tail(void **state)
{
    struct counted done;

    (void)state;
    redundant_open(931, "HEARTBEAT=0");
    flush_all();
    put_silently(3);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, count_completion(&done)), UCS_INPROGRESS);
    for (unsigned n = 0; done.called == 0; n++) {
        pump();
        assert_true(n < LONG_AGO / 8);
    }
    assert_int_equal(done.status, UCS_OK);
    assert_int_equal(tails(3), 1);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, NULL), UCS_OK);
    rma_check(0);
}

static void test_flush_of_the_interface_has_a_tail(void **state)
{
    (void)state;
    redundant_open(932, "HEARTBEAT=0");
    flush_all();
    put_silently(3);
    for (unsigned n = 0; uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK; n++) {
        pump();
        assert_true(n < LONG_AGO / 8);
    }
    assert_int_equal(tails(3), 1);
    rma_check(0);
}

/* Nobody asks: buffers are to be had back, and a lane that has died is to be noticed. Once. */
static void test_tail_after_a_while(void **state)
{
    (void)state;
    redundant_open(933, "HEARTBEAT=0");
    flush_all();
    put_silently(5);
    for (unsigned n = 0; n < 2 * LONG_AGO; n++) {
        pump();
    }
    pump_until(tails(5) > 0);
    assert_int_equal(tails(5), 1);
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_OK);
    rma_check(0);
}

/* Thousands of connections are not all looked at each time, and who sends again in between needs no tail. */
static void test_tails_of_thousands(void **state)
{
    uint32_t *count;
    uint64_t  start;

    (void)state;
    redundant_open(938, "HEARTBEAT=0");
    flush_all();
    count = &uct_ha_iface(world.side[0].iface)->flows.count;
    *count += 4096;
    put_silently(5);
    start = now_ns();
    for (unsigned n = 0; n < 2 * LONG_AGO && now_ns() - start < 30000000; n++) {
        (void)uct_worker_progress(world.side[0].worker); /* all of them in some ms */
    }
    assert_int_equal(tails(5), 0);
    pump_until(tails(5) > 0);
    assert_int_equal(tails(5), 1);
    *count -= 4096;
    flush_all();
    rma_check(0);
}

static void test_who_goes_to_sleep_is_told(void **state)
{
    (void)state;
    redundant_open(934, "HEARTBEAT=0");
    flush_all();
    put_silently(2);
    (void)uct_iface_event_arm(world.side[0].iface, UCT_EVENT_SEND_COMP);
    for (unsigned n = 0; tails(2) == 0; n++) {
        pump();
        assert_true(n < LONG_AGO / 8);
    }
    rma_check(0);
}

static void test_destroyed_endpoint_has_a_tail(void **state)
{
    (void)state;
    redundant_open(935, "HEARTBEAT=0");
    flush_all();
    put_silently(2);
    ep_close(0, 0);
    for (unsigned n = 0; tails(2) == 0; n++) {
        pump();
        assert_true(n < LONG_AGO / 8);
    }
    rma_check(0);
}

/* Silence is no trouble; a program that looks seldom is told all the same. */
static void test_silence_is_no_alarm(void **state)
{
    (void)state;
    redundant_open(936, "HEARTBEAT=0 RTO=50ms RTO_MAX=50ms");
    flush_all();
    put_silently(2);
    for (unsigned n = 0; n < 100 || tails(2) == 0; n++) {
        pump();
        usleep(10000);
        assert_true(n < 900); /* less than it takes to be told by progress */
    }
    assert_int_equal(tails(2), 1);
    assert_int_equal(stats().failovers, 0);
    rma_check(0);
}

/* A lane that dies in silence is noticed by its tail. */
static void test_silent_loss_is_noticed(void **state)
{
    (void)state;
    redundant_open(937, "HEARTBEAT=0 RTO=50ms RTO_MAX=50ms TIMEOUT=20");
    flush_all();
    fake_set(A0, FAKE_LOSE_DATA_OUT, 1000);
    for (unsigned n = 0; n < 3; n++) {
        assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
    }
    pump_until(stats().failovers == 2);
    fake_set(A0, FAKE_LOSE_DATA_OUT, 0);
    flush_all();
    rma_check(0);
}

/* A full log always hears of something; so do the places in the queue, which all connections share. */
static void test_streams_of_silence(void **state)
{
    uint64_t silent;

    (void)state;
    redundant_open(938, "HEARTBEAT=0 TX_QUEUE_LEN=16");
    flush_all();
    silent = fake_counts().silent;
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned n = 0; n < PLACES; n++) {
            uint64_t start = now_ns();

            while (rma_put_one(0, 0, SHORT, NULL) == UCS_ERR_NO_RESOURCE) {
                pump();
                keep_patience(start);
            }
        }
        flush_all();
        rma_check(0);
    }
    assert_true(fake_counts().silent - silent >= 4 * PLACES / 2); /* three of four, but for those that waited */
}

/* The send queue has no place for a drain marker: it takes that of a send which came back. If none
 * does, the lane ends without. */
static void test_full_queue_is_cut(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 2; lost++) {
        unsigned puts = 0;
        uint64_t start;

        redundant_open(944 + lost, "HEARTBEAT=50ms DEAD_PEER=10s TX_QUEUE_LEN=16 PROOF=psn");
        flush_all();
        fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
        while (rma_put_one(0, 0, SHORT, NULL) == UCS_OK) {
            puts++;
        }
        assert_int_equal(puts, 16);
        pump_ms(2);
        fake_set(A0, FAKE_LOSE_FLUSHES, lost ? FAKE_FLUSHES_NO_SENDS : FAKE_FLUSHES_ALL);
        start = now_ns();
        fake_port(A0, 0);
        pump_until(stats().failovers == 2);
        flush_all();
        rma_check(0);                                          /* each once */
        assert_true(lost || now_ns() - start < 4000000000ull); /* not given up after half of DEAD_PEER */
        assert_int_equal(stats().retired, 16);
        assert_true((fake_counts().unheard > 0) == lost);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* A count tells nothing of a PUT behind the last message: there each operation tells. */
static void test_counting_peers_are_told_each(void **state)
{
    uint64_t silent;

    (void)state;
    redundant_open(939, "HEARTBEAT=0 PROOF=count");
    flush_all();
    silent = fake_counts().silent;
    rma_put(0, 0, 40);
    am_exchange(0, 20);
    flush_all();
    assert_int_equal(fake_counts().silent, silent);
    rma_check(0);
}

/* Executed, acknowledged, and nothing has told when the rail goes: the proof does. */
static void test_silent_across(void **state)
{
    (void)state;
    redundant_open(940, "HEARTBEAT=0");
    flush_all();
    for (unsigned round = 0; round < 4; round++) {
        put_silently(7);
        fake_port(A0 + (int)round % 2, 0);
        pump_until(stats().failovers == 2 * round + 2);
        flush_all();
        rma_check(0); /* each once */
        fake_port(A0 + (int)round % 2, 1);
        wait_standbys(2);
    }
    assert_true(stats().retired >= 7); /* a machine that stands still may have been told in time */
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_flush_has_a_tail),
    GLUE_TEST(test_flush_of_the_interface_has_a_tail),
    GLUE_TEST(test_tail_after_a_while),
    GLUE_TEST(test_tails_of_thousands),
    GLUE_TEST(test_who_goes_to_sleep_is_told),
    GLUE_TEST(test_destroyed_endpoint_has_a_tail),
    GLUE_TEST(test_silence_is_no_alarm),
    GLUE_TEST(test_silent_loss_is_noticed),
    GLUE_TEST(test_streams_of_silence),
    GLUE_TEST(test_full_queue_is_cut),
    GLUE_TEST(test_counting_peers_are_told_each),
    GLUE_TEST(test_silent_across),
};

int glue_silent(void)
{
    return cmocka_run_group_tests_name("silent", tests, NULL, NULL);
}
