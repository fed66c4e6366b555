/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Credits are conserved: whatever became of a message, its place in the window comes
 * back once, and nobody sends without one. What leaks shows when nothing moves any more.
 */

#include "glue_tests.h"

#include <string.h>

#define WINDOW  16 /* RX_QUEUE_INIT and RX_QUEUE_LEN */
#define RESERVE 4  /* receives beyond it */

static void progress_alone(int s, unsigned ms)
{
    uint64_t start = now_ns();

    while (now_ns() - start < ms * 1000000ull) {
        (void)uct_worker_progress(world.side[s].worker);
    }
}

/* PUTs that take a credit, and are refused. */
static void test_refused_put_gives_its_credit_back(void **state)
{
    struct side   *side = &world.side[0];
    uct_iov_t      iov;
    struct counted done;

    (void)state;
    redundant_open(410, "PROOF=count RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 HEARTBEAT=10ms");
    iov = (uct_iov_t){.buffer = rma_source(0, 0), .length = 100, .memh = side->memh, .count = 1};
    for (unsigned i = 0; i < WINDOW + RESERVE; i++) {
        pump_until(uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)rma_place(1, 0),
                                    side->rkey.rkey ^ 0x0000004000000040ull,
                                    count_completion(&done)) == UCS_INPROGRESS);
        pump_until(done.called == 1);
        assert_int_equal(done.status, UCS_ERR_IO_ERROR);
        wait_standbys(2);
    }
    am_exchange(0, 40);
    redundant_check();
}

/* The owner of the memory has no credits left: his answers wait for some. */
static void test_answers_wait_for_credits(void **state)
{
    struct side   *side = &world.side[0];
    uint64_t       old[WINDOW], *word;
    struct counted done[WINDOW];
    unsigned       asked = 0;

    (void)state;
    redundant_open(411, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 RETRY_COUNT=7 TIMEOUT=14");
    word  = (uint64_t *)(void *)rma_place(1, 0);
    *word = 0;
    flush_all();
    while (am_send(1, 0, SHORT, 8, NULL) == UCS_OK) { /* to side 0, which is deaf from here on */
    }
    for (; asked < WINDOW; asked++) {
        if (uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[asked], (uintptr_t)word, side->rkey.rkey,
                                  count_completion(&done[asked])) != UCS_INPROGRESS) {
            break;
        }
    }
    assert_true(asked > RESERVE);
    for (uint64_t start = now_ns(); *word < asked;) { /* all are executed */
        progress_alone(1, 1);
        keep_patience(start);
    }
    flush_all();
    for (unsigned i = 0; i < asked; i++) {
        assert_int_equal(done[i].status, UCS_OK);
        assert_int_equal(old[i], i);
    }
    redundant_check();
    assert_int_equal(fake_counts().rnr + stats().failovers, 0);
}

/* The message that grants credits is out, and its acknowledgement takes its time: what
 * is consumed meanwhile has to be told all the same. */
static void test_credits_while_acks_stay_out(void **state)
{
    (void)state;
    redundant_open(412, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 TIMEOUT=16");
    fake_set(B0, FAKE_LOSE_ACK_IN, 1000); /* of what side 1 sends: credits alone */
    am_post(0, 0, 5 * WINDOW);
    pump_until(am_all_here());
    assert_int_equal(stats().failovers, 0);
    fake_set(B0, FAKE_LOSE_ACK_IN, 0);
    flush_all();
    am_post(0, 0, 5 * WINDOW);
    redundant_check();
}

static unsigned post_some(int s, unsigned count)
{
    unsigned posted = 0;

    while (posted < count && am_send(s, 0, SHORT, 8, NULL) == UCS_OK) {
        posted++;
    }
    return posted;
}

/* Side 1 goes on over the new lane, and side 0 does not hear that it has resolved the old
 * one: its messages are held there, while PUTs, which wait for no turn, bring later
 * totals. When they are delivered at last, what they tell is old. */
static void test_old_totals_are_not_taken(void **state)
{
    (void)state;
    redundant_open(413, "PROOF=count CONTROL=ud RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 HEARTBEAT=0 DEAD_PEER=20s RTO=20s "
                        "RTO_MAX=20s");
    flush_all();
    fake_port(A0, 0);
    fake_port(B0, 0);
    progress_alone(1, 100); /* proves, and hears no proof: side 0 computes */
    fake_set(B1, FAKE_LOSE_CTL_OUT, 1000);
    progress_alone(0, 100);
    progress_alone(1, 100); /* resolves, closes and goes on */
    assert_int_equal(post_some(1, 1), 1);
    for (unsigned round = 0; round < WINDOW / 2; round++) {
        progress_alone(1, 2);
        progress_alone(0, 2);
        assert_int_equal(post_some(0, 4), 4);
        progress_alone(0, 2);
        progress_alone(1, 2);
        assert_int_equal(rma_put_one(1, 0, SHORT, NULL), UCS_OK);
    }
    assert_int_equal(world.side[0].received[0], world.side[1].sent[0] - 1); /* held all the time */
    fake_set(B1, FAKE_LOSE_CTL_OUT, 0);
    pump_until(am_all_here());
    am_post(0, 0, 4 * WINDOW);
    redundant_check();
}

/* Credits that there was no room to tell are told when there is. */
static void test_credits_wait_for_room(void **state)
{
    (void)state;
    redundant_open(414, "RX_QUEUE_INIT=16 RX_QUEUE_LEN=16 TX_QUEUE_LEN=32 RTO=4s");
    for (unsigned round = 0; round < 5; round++) {
        fake_set(B0, FAKE_STALL, 1000);
        while (rma_put_one(1, 0, SHORT, NULL) == UCS_OK) { /* its log is full */
        }
        for (unsigned idle = 0; idle < 2000; idle++) { /* all that the peer has granted */
            idle = am_send(0, 0, SHORT, 8, NULL) == UCS_OK ? 0 : idle;
            pump();
        }
        fake_set(B0, FAKE_STALL, 0);
        pump_until(am_send(0, 0, SHORT, 8, NULL) == UCS_OK);
        am_post(0, 0, 2 * WINDOW);
        flush_all();
        rma_check(1);
    }
    redundant_check();
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_refused_put_gives_its_credit_back),
    GLUE_TEST(test_answers_wait_for_credits),
    GLUE_TEST(test_credits_while_acks_stay_out),
    GLUE_TEST(test_old_totals_are_not_taken),
    GLUE_TEST(test_credits_wait_for_room),
};

int glue_credits(void)
{
    return cmocka_run_group_tests_name("credits", tests, NULL, NULL);
}
