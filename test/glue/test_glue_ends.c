/* SPDX-License-Identifier: BSD-3-Clause */

/* How endpoints end: one error each, in bounded time, every completion called
 * once, nothing left behind. */

#include "glue_tests.h"

#include <string.h>

#define OPS 12

static struct counted ops[OPS], flushed;

/* Zero-copy operations with completions on endpoint 0 of side 0. */
static void start_operations(void)
{
    for (int i = 0; i < OPS; i++) {
        uct_completion_t *comp = count_completion(&ops[i]);

        ucs_status_t status;

        while ((status = i % 2 ? rma_put_one(0, 0, ZCOPY, comp) : am_send(0, 0, ZCOPY, 500, comp)) ==
               UCS_ERR_NO_RESOURCE) {
            pump(); /* few credits at the beginning */
        }
        assert_int_equal(status, UCS_OK);
    }
}

static unsigned operations_ended(void)
{
    unsigned ended = 0;

    for (int i = 0; i < OPS; i++) {
        assert_true(ops[i].called <= 1);
        ended += ops[i].called;
    }
    return ended;
}

static void open_pair(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    flush_all();
    wait_standbys(2);
}

static void cut_everything(void)
{
    for (int rail = A0; rail <= B1; rail++) {
        fake_port(rail, 0);
    }
}

static void test_both_rails_down(void **state)
{
    uint64_t start;

    (void)state;
    open_pair(80, "DEAD_PEER=1s RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 1000);
    start_operations();
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, count_completion(&flushed)), UCS_INPROGRESS);
    start = now_ns();
    cut_everything();
    pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
    assert_true(now_ns() - start > 900000000ull);
    assert_int_equal(operations_ended(), OPS);
    assert_int_equal(flushed.called, 1);
    assert_int_not_equal(flushed.status, UCS_OK);
    assert_int_not_equal(ops[OPS - 1].status, UCS_OK);
    /* whose time is over first tells the other one, by TCP */
    assert_true(world.side[0].error == UCS_ERR_ENDPOINT_TIMEOUT || world.side[1].error == UCS_ERR_ENDPOINT_TIMEOUT);
    assert_true(world.side[0].error == UCS_ERR_ENDPOINT_TIMEOUT || world.side[0].error == UCS_ERR_CONNECTION_RESET);
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), world.side[0].error);
    pump_ms(100);
    assert_int_equal(world.side[0].errors, 1);
    flush_all();
}

/* No events at all: silence on both rails. */
static void test_peer_silent(void **state)
{
    (void)state;
    open_pair(81, "DEAD_PEER=1s RX_QUEUE_INIT=32");
    for (int rail = A0; rail <= B1; rail++) {
        fake_port_silently(rail, 0);
    }
    start_operations();
    pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
    assert_int_equal(operations_ended(), OPS);
    flush_all();
}

/* The peer closes its interface in the middle of everything. */
static void test_peer_leaves(void **state)
{
    (void)state;
    open_pair(82, "");
    side_leave(1);
    pump_ms(20);
    assert_int_equal(world.side[0].errors, 0); /* it said good-bye, nothing was owed */
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK);
    pump_until(world.side[0].errors == 1);
    assert_int_not_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK);
    world.side[0].sent[0]--;
    assert_int_equal(ep_try(0, 1), UCS_ERR_UNREACHABLE);
}

/* Its answer to an atomic never comes: nothing is on a lane that could break. */
static void test_peer_leaves_with_atomic(void **state)
{
    struct side   *side = &world.side[0];
    struct counted done;
    uint64_t       old;

    (void)state;
    open_pair(92, "");
    assert_int_equal(uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old, (uintptr_t)rma_place(1, 0),
                                           side->rkey.rkey, count_completion(&done)),
                     UCS_INPROGRESS);
    for (int i = 0; i < 200; i++) { /* the request is acknowledged, not looked at */
        (void)uct_worker_progress(side->worker);
    }
    side_leave(1);
    pump_until(done.called == 1);
    flush_all_of(0);
}

/* The same name, another instance: the old endpoint must not talk to it. */
static void test_peer_comes_back(void **state)
{
    (void)state;
    open_pair(83, "");
    memory_close();
    side_close(0);
    side_close(1);
    side_open(0, "");
    side_open(1, "");
    ep_open(0, 0);
    am_exchange(0, 0);
    am_post(0, 0, 4);
    pump_until(am_all_here());
    flush_all();
    side_close(1);
    side_open(1, "");
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK);
    pump_until(world.side[0].errors == 1);
    assert_int_equal(world.side[1].received[0], 0);
    ep_close(0, 0);
    world.side[0].sent[0] = 0;
    ep_open(0, 0);
    am_post(0, 0, 20);
    pump_until(am_all_here());
}

/* Killed, and a new process has its place and numbers, which cannot prove that: it says nothing, and
 * the peer is gone like any that is silent. */
static void test_peer_is_restarted(void **state)
{
    uint32_t qpn[2] = {0, 0};

    (void)state;
    open_pair(94, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=1s");
    memory_close();
    side_close(0);
    side_close(1);
    side_open(0, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=1s");
    side_open(1, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=1s");
    ep_open(0, 0);
    am_post(0, 0, 4);
    pump_until(am_all_here());
    flush_all();
    for (int i = 0; i < 2; i++) {
        qpn[i] = fake_last_ud(B0 + i);
        fake_port_silently(B0 + i, 0);
    }
    side_close(1); /* nothing of its good-bye arrives */
    for (int i = 0; i < 2; i++) {
        fake_port_silently(B0 + i, 1);
        fake_next_ud(B0 + i, qpn[i]);
    }
    side_open(1, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=1s");
    pump_until(world.side[0].errors == 1);
    assert_int_equal(world.side[0].error, UCS_ERR_ENDPOINT_TIMEOUT);
    assert_int_equal(world.side[1].errors, 0);
    assert_int_equal(world.side[1].received[0], 0);
    ep_close(0, 0);
    world.side[0].sent[0] = 0;
    ep_open(0, 0);
    am_post(0, 0, 20);
    pump_until(am_all_here());
}

/* The user gives up: operations end, the peer hears of it. */
static void test_cancel(void **state)
{
    (void)state;
    open_pair(84, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 1000);
    start_operations();
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], UCT_FLUSH_FLAG_CANCEL, count_completion(&flushed)),
                     UCS_INPROGRESS);
    pump_until(flushed.called == 1);
    assert_int_equal(operations_ended(), OPS);
    fake_set(A0, FAKE_STALL, 0);
    pump_until(world.side[1].errors == 1);
    assert_int_equal(world.side[0].errors, 0); /* who asked for it is not told */
    ep_close(0, 0);
    ep_close(1, 0);
    pump_until(stats().pairs == 0);
    world.side[0].sent[0] = world.side[1].received[0] = 0;
    world.side[1].sent[0] = world.side[0].received[0] = 0;
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 20);
}

static void test_cancel_during_outage(void **state)
{
    (void)state;
    open_pair(85, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 1000);
    start_operations();
    cut_everything();
    pump_ms(20);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], UCT_FLUSH_FLAG_CANCEL, count_completion(&flushed)),
                     UCS_INPROGRESS);
    pump_until(flushed.called == 1);
    assert_int_equal(operations_ended(), OPS);
}

/* Destroyed with everything under way, as UCP does with its worker: who waits is told at once, once, and what was
 * sent arrives. */
static void test_destroy_tells_who_waits(void **state)
{
    struct side   *side = &world.side[0];
    struct counted added;
    uint64_t       old;

    (void)state;
    open_pair(95, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 1000);
    start_operations();
    assert_int_equal(uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old, (uintptr_t)rma_place(1, 500),
                                           side->rkey.rkey, count_completion(&added)),
                     UCS_INPROGRESS);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, count_completion(&flushed)), UCS_INPROGRESS);
    assert_int_equal(operations_ended() + added.called + flushed.called, 0);
    ep_close(0, 0);
    assert_int_equal(operations_ended(), OPS);
    assert_int_equal(added.called + flushed.called, 2);
    for (int i = 0; i < OPS; i++) {
        assert_int_equal(ops[i].status, UCS_ERR_CANCELED);
    }
    assert_int_equal(added.status, UCS_ERR_CANCELED);
    assert_int_equal(flushed.status, UCS_ERR_CANCELED);
    fake_set(A0, FAKE_STALL, 0);
    pump_until(am_all_here());
    flush_all();
    assert_int_equal(operations_ended(), OPS);
    assert_int_equal(added.called + flushed.called, 2);
}

/* Canceled, and destroyed before the card has been stopped: who asked is told by then. */
static void test_destroy_behind_a_cancel(void **state)
{
    (void)state;
    open_pair(96, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 1000);
    start_operations();
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], UCT_FLUSH_FLAG_CANCEL, count_completion(&flushed)),
                     UCS_INPROGRESS);
    assert_int_equal(flushed.called, 0);
    ep_close(0, 0);
    assert_int_equal(flushed.called, 1);
    assert_int_equal(flushed.status, UCS_ERR_CANCELED);
    assert_int_equal(operations_ended(), OPS);
    pump_until(world.side[1].errors == 1);
    assert_int_equal(flushed.called, 1);
}

/* Many endpoints come and go; nothing is kept, nothing goes astray. */
static void test_come_and_go(void **state)
{
    (void)state;
    world_open(86, "");
    for (unsigned round = 0; round < 60; round++) {
        int i = (int)(round % EPS_MAX);

        ep_close(0, i);
        ep_close(1, i);
        world.side[0].sent[i] = world.side[1].received[i] = 0;
        world.side[1].sent[i] = world.side[0].received[i] = 0;
        ep_open((int)(round % 2), i);
        if (round % 3) {
            am_post((int)(round % 2), i, 10);
        }
        ep_open(!(round % 2), i);
        if (round % 5) {
            am_post(!(round % 2), i, 10);
        }
        pump_until(am_all_here());
    }
}

/* Both users let go at once while a rail breaks: the pair still goes away. */
static void test_close_during_failover(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 10; when++) {
        world_open(8700 + when, "");
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 4);
        wait_standbys(2);
        am_post(0, 0, 10);
        am_post(1, 0, 10);
        fake_port((int)(when % 4), 0);
        for (unsigned i = 0; i < when * 3; i++) {
            pump();
        }
        ep_close(0, 0);
        ep_close(1, 0);
        pump_until(am_all_here());
        pump_until(stats().pairs == 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* The device does not tell its packet number. Messages are counted; of the PUTs each ends once, well or not,
 * and nobody guesses. */
static void test_no_proof(void **state)
{
    unsigned lost = 0;

    (void)state;
    open_pair(88, "RX_QUEUE_INIT=32");
    fake_set(A0, FAKE_STALL, 900);
    fake_fail(FAKE_CALL_EXPECTED_PSN, B0, -5, 1000000);
    start_operations();
    fake_port(A0, 0);
    pump_until(operations_ended() == OPS && am_all_here());
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
    assert_int_equal(stats().proofs_none, 1);
    for (int i = 0; i < OPS; i++) {
        assert_true(ops[i].status == UCS_OK || i % 2 == 1);
        assert_true(i % 2 == 0 || rma_executions(0, (unsigned)i / 2) <= 1);
        assert_true(i % 2 == 0 || ops[i].status != UCS_OK || rma_executions(0, (unsigned)i / 2) == 1);
        lost += ops[i].status != UCS_OK;
    }
    assert_int_equal(stats().in_doubt, lost);
    flush_all();
}

/* ... which is not said of one that refuses now and then, while its owner computes. */
static void test_proof_at_the_third_try(void **state)
{
    uint64_t start;

    (void)state;
    open_pair(93, "");
    fake_set(A0, FAKE_STALL, 900);
    fake_set(B0, FAKE_LATE, 1000);
    fake_fail(FAKE_CALL_EXPECTED_PSN, B0, -5, 2);
    start_operations();
    fake_port(A0, 0);
    start = now_ns();
    while (operations_ended() < OPS) {
        (void)uct_worker_progress(world.side[0].worker);
        keep_patience(start);
    }
    assert_int_equal(world.side[0].errors, 0);
    pump_until(am_all_here());
    flush_all();
}

/* ... nor when he looks: then the first question is the last one, more often than not. */
static void test_proof_at_the_third_final_try(void **state)
{
    (void)state;
    for (uint64_t seed = 97; seed < 103; seed++) {
        open_pair(seed, "");
        fake_set(A0, FAKE_STALL, 900);
        fake_fail(FAKE_CALL_EXPECTED_PSN, B0, -5, 2);
        start_operations();
        fake_port(A0, 0);
        pump_until(operations_ended() == OPS);
        for (int i = 0; i < OPS; i++) {
            assert_int_equal(ops[i].status, UCS_OK);
        }
        assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
        pump_until(am_all_here());
        assert_int_equal(stats().proofs_none, 0);
        flush_all();
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Nobody there, from the first word on. */
static void test_connect_to_nobody(void **state)
{
    (void)state;
    world_open(89, "CONNECT_TIMEOUT=500ms DEAD_PEER=1s");
    cut_everything();
    ep_open(0, 0);
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK);
    pump_until(world.side[0].errors == 1);
    assert_int_equal(stats().connect_failures, 1);
    assert_int_equal(stats().connecting + stats().connects, 0);
    world.side[0].sent[0] = 0;
    flush_all();
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_both_rails_down),
    GLUE_TEST(test_peer_silent),
    GLUE_TEST(test_peer_leaves),
    GLUE_TEST(test_peer_leaves_with_atomic),
    GLUE_TEST(test_peer_comes_back),
    GLUE_TEST(test_peer_is_restarted),
    GLUE_TEST(test_cancel),
    GLUE_TEST(test_cancel_during_outage),
    GLUE_TEST(test_destroy_tells_who_waits),
    GLUE_TEST(test_destroy_behind_a_cancel),
    GLUE_TEST(test_come_and_go),
    GLUE_TEST(test_close_during_failover),
    GLUE_TEST(test_no_proof),
    GLUE_TEST(test_proof_at_the_third_try),
    GLUE_TEST(test_proof_at_the_third_final_try),
    GLUE_TEST(test_connect_to_nobody),
};

int glue_ends(void)
{
    return cmocka_run_group_tests_name("ends", tests, NULL, NULL);
}
