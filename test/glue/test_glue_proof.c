/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Devices that do not say which packet they expect, or not truly, and the ways
 * to prove what was executed without that.
 */

#include "glue_tests.h"

#include "lane/selftest.h"

#include <string.h>

/* ---- the self-test ---------------------------------------------------------------- */

static void add_rail(void)
{
    fake_begin(70);
    assert_int_equal(fake_rail_add("t0:1", 0, 1), 0);
}

static enum uct_ha_selftest_verdict verdict_of(enum fake_psn psn, const char *model)
{
    static const struct ha_rail_opts opts;
    struct uct_ha_selftest_result    result;
    struct ha_rail                  *rail;

    fake_model(0, model);
    fake_set(0, FAKE_PSN, psn);
    assert_int_equal(ha_rail_open("t0:1", &opts, &rail), 0);
    result = uct_ha_selftest(rail);
    ha_rail_close(rail);
    return result.verdict;
}

static void test_selftest_finds_liars(void **state)
{
    (void)state;
    add_rail();
    assert_int_equal(verdict_of(FAKE_PSN_LIVE, "live"), UCT_HA_SELFTEST_PASSED);
    assert_int_equal(verdict_of(FAKE_PSN_STALE, "stale"), UCT_HA_SELFTEST_FAILED);
    assert_int_equal(verdict_of(FAKE_PSN_ZERO, "zero"), UCT_HA_SELFTEST_FAILED);
    assert_int_equal(verdict_of(FAKE_PSN_GARBAGE, "garbage"), UCT_HA_SELFTEST_FAILED);
    assert_int_equal(verdict_of(FAKE_PSN_STALE_ERR, "stale when stopped"), UCT_HA_SELFTEST_FAILED);
    assert_int_equal(verdict_of(FAKE_PSN_BEHIND_ERR, "behind"), UCT_HA_SELFTEST_FAILED);
    fake_fail(FAKE_CALL_EXPECTED_PSN, 0, -22, 100);
    assert_int_equal(verdict_of(FAKE_PSN_LIVE, "mute"), UCT_HA_SELFTEST_FAILED);
    fake_fail(FAKE_CALL_EXPECTED_PSN, 0, 0, 0);
    /* late packets and lost acknowledgements are no lie */
    fake_set(0, FAKE_LATE, 1000);
    fake_set(0, FAKE_LOSE_ACK_OUT, 300);
    assert_int_not_equal(verdict_of(FAKE_PSN_LIVE, "unlucky"), UCT_HA_SELFTEST_FAILED);
    assert_int_equal(fake_end(), 0);
}

/* Nothing is concluded from a test that could not be run, and it is run again;
 * what was found out is kept for the model. */
static void test_selftest_is_remembered(void **state)
{
    uint64_t connects;

    (void)state;
    add_rail();
    fake_port(0, 0);
    assert_int_equal(verdict_of(FAKE_PSN_LIVE, "down at first"), UCT_HA_SELFTEST_NOT_RUN);
    fake_port(0, 1);
    fake_fail(FAKE_CALL_RC_CONNECT, 0, -110, 1);
    assert_int_equal(verdict_of(FAKE_PSN_LIVE, "down at first"), UCT_HA_SELFTEST_NOT_RUN);
    assert_int_equal(verdict_of(FAKE_PSN_LIVE, "down at first"), UCT_HA_SELFTEST_PASSED);
    connects = fake_counts().connects;
    assert_int_equal(verdict_of(FAKE_PSN_STALE, "down at first"), UCT_HA_SELFTEST_PASSED);
    assert_int_equal(fake_counts().connects, connects);
    assert_int_equal(fake_end(), 0);
}

/* Every call of it may fail: no verdict, and nothing is left behind. */
static void test_selftest_cleans_up(void **state)
{
    static const enum fake_call calls[] = {FAKE_CALL_CQ_CREATE,  FAKE_CALL_MR_REG,    FAKE_CALL_RC_CREATE,
                                           FAKE_CALL_RC_CONNECT, FAKE_CALL_POST_SEND, FAKE_CALL_POST_RECV};

    (void)state;
    add_rail();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        fake_fail(calls[i], 0, -12, 1);
        assert_int_equal(verdict_of(FAKE_PSN_LIVE, "failing"), UCT_HA_SELFTEST_NOT_RUN);
    }
    assert_int_equal(fake_end(), 0);
}

/* ---- traffic ------------------------------------------------------------------------ */

static void post_mix(void)
{
    for (int s = 0; s < 2; s++) {
        am_post(s, 0, 6);
        rma_put(s, 0, 12);
        rma_get_loose(s, 0, 3);
        am_post(s, 0, 3);
        rma_put(s, 0, 3);
    }
}

static void cut_often(unsigned cuts)
{
    for (unsigned cut = 0; cut < cuts; cut++) {
        int rail = (int)(cut % 2 + 2 * (cut / 2 % 2)); /* a0 a1 b0 b1 */

        post_mix();
        fake_port(rail, 0);
        post_mix();
        redundant_check();
        fake_port(rail, 1);
        wait_standbys(2);
    }
    assert_int_equal(stats().failovers, 2 * cuts);
    assert_int_equal(stats().ep_errors + stats().in_doubt, 0);
}

/* The device must not be asked: every answer would end the endpoint. */
static void silence_psn(void)
{
    fake_fail(FAKE_CALL_EXPECTED_PSN, -1, -95, 1u << 30);
}

static void test_count_many_cuts(void **state)
{
    (void)state;
    redundant_open(71, "PROOF=count HEARTBEAT=10ms");
    silence_psn();
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LATE, 300);
    }
    cut_often(60);
    assert_true(stats().proofs_count > 100);
    assert_int_equal(stats().proofs_psn, 0);
}

/* The peer executes everything and cannot say so. */
static void test_count_acks_lost(void **state)
{
    (void)state;
    redundant_open(72, "PROOF=count TIMEOUT=14");
    silence_psn();
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    fake_set(A0, FAKE_LOSE_ACK_OUT, 1000);
    post_mix();
    redundant_check();
    pump_until(stats().failovers == 2);
    assert_true(stats().retired > 10);
}

/* Only PUTs: the receives that they take are given back in time. */
static void test_count_flow_of_puts(void **state)
{
    (void)state;
    redundant_open(73, "PROOF=count RX_QUEUE_LEN=16");
    for (unsigned round = 0; round < 20; round++) {
        rma_put(0, 0, 50);
        redundant_check();
    }
    assert_int_equal(stats().failovers, 0);
}

/* Each side proves in its own way. */
static void test_count_on_one_side(void **state)
{
    (void)state;
    world_open(74, "HEARTBEAT=10ms");
    side_close(1);
    side_open(1, "PROOF=count HEARTBEAT=10ms");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    cut_often(20);
    assert_true(stats().proofs_count > 15 && stats().proofs_psn > 15);
}

/* One rail of one side lies: found out, and nobody notices. */
static void test_auto_with_a_liar(void **state)
{
    static const enum fake_psn lies[]   = {FAKE_PSN_STALE, FAKE_PSN_ZERO, FAKE_PSN_GARBAGE, FAKE_PSN_STALE_ERR};
    static const char *const   models[] = {"auto stale", "auto zero", "auto garbage", "auto stale when stopped"};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        world_open(75 + i, "HEARTBEAT=10ms");
        side_close(1);
        fake_model(B0, models[i]);
        fake_set(B0, FAKE_PSN, lies[i]);
        side_open(1, "HEARTBEAT=10ms");
        rma_open();
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 10);
        wait_standbys(2);
        cut_often(6);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* The message for it names the way out; the interface does not open. */
static void test_psn_of_a_liar_is_refused(void **state)
{
    (void)state;
    world_open(80, "");
    side_close(1);
    fake_model(B1, "refused");
    fake_set(B1, FAKE_PSN, FAKE_PSN_STALE);
    side_open_fails(1, "PROOF=psn", UCS_ERR_UNSUPPORTED);
    side_open(1, "PROOF=auto");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
}

/* A peer that computes cannot give its count: the failover waits for it, and is
 * exact all the same. */
static void test_count_waits_for_progress(void **state)
{
    uint64_t until;

    (void)state;
    redundant_open(81, "PROOF=count RX_QUEUE_INIT=32");
    pump_ms(50);
    rma_put(0, 0, 10);
    fake_port(A0, 0);
    rma_put(0, 0, 10);
    until = now_ns() + 300000000ull;
    while (now_ns() < until) {
        (void)uct_worker_progress(world.side[0].worker);
    }
    assert_int_equal(stats().failovers, 0);
    redundant_check();
    pump_until(stats().failovers == 2);
}

/* ---- a device that does not stop ----------------------------------------------------- */

/* Asked again it does; until then nothing is proved, though the number stands still, and
 * what was posted before executes once. */
static void test_fence_refused_at_first(void **state)
{
    (void)state;
    redundant_open(86, "HEARTBEAT=10ms");
    for (unsigned round = 0; round < 8; round++) {
        int rail = (int)(round % 2);

        pump_until(stats().failovers == 2 * round);
        fake_set(A0 + rail, FAKE_STALL, 1000);
        fake_set(B0 + rail, FAKE_STALL, 1000);
        post_mix();
        fake_fail(FAKE_CALL_RC_FENCE, -1, -4, 1 + round % 4);
        fake_event_qp_fatal(B0 + rail);
        pump_ms(round * 5);
        fake_set(A0 + rail, FAKE_STALL, 0);
        fake_set(B0 + rail, FAKE_STALL, 0);
        redundant_check();
        wait_standbys(2);
    }
    assert_int_equal(stats().ep_errors + stats().in_doubt, 0);
}

#define PUTS 20

static struct counted put_done[2][PUTS];

static void put_with_completions(int s)
{
    for (unsigned n = 0; n < PUTS; n++) {
        uct_completion_t *comp = count_completion(&put_done[s][n]);

        while (rma_put_one(s, 0, ZCOPY, comp) != UCS_OK) {
            pump();
        }
        if (n % 4 == 0) {
            am_post(s, 0, 1);
            rma_get_loose(s, 0, 1);
        }
    }
}

/* Every PUT ended once: well, and was executed once; or with an error, and was
 * executed once at most. Returns how many of these. */
static unsigned check_puts(int s)
{
    unsigned lost = 0;

    for (unsigned n = 0; n < PUTS; n++) {
        assert_int_equal(put_done[s][n].called, 1);
        if (put_done[s][n].status == UCS_OK) {
            assert_int_equal(rma_executions(s, n), 1);
        } else {
            assert_int_equal(put_done[s][n].status, UCS_ERR_IO_ERROR);
            assert_true(rma_executions(s, n) <= 1);
            lost++;
        }
    }
    rma_forget(s);
    return lost;
}

/* Never: no marker of ours among the messages, and the peer judges by what it has posted there. Of the PUTs
 * some end with an error, the rest goes on; nothing is lost or runs twice. */
static void test_fence_refused_for_good(void **state)
{
    static const char *const settings[] = {"DEAD_PEER=25s RX_QUEUE_INIT=32",
                                           "DEAD_PEER=25s RX_QUEUE_INIT=32 PROOF=count"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start;

        redundant_open(88 + i, settings[i]);
        fake_fail(FAKE_CALL_RC_FENCE, B0, -5, 1u << 30);
        fake_set(A0, FAKE_STALL, 1000);
        fake_set(B0, FAKE_STALL, 1000);
        put_with_completions(0);
        start = now_ns();
        fake_event_qp_fatal(B0);
        pump_ms(30);
        fake_set(A0, FAKE_STALL, 0);
        fake_set(B0, FAKE_STALL, 0);
        flush_all();
        pump_until(am_all_here() && stats().failovers == 2);
        assert_soon(start, 5000000000ull);
        assert_int_equal(stats().proofs_none, 1);
        assert_int_equal(stats().in_doubt, check_puts(0));
        assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
        fake_fail(FAKE_CALL_RC_FENCE, -1, 0, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* ---- ledger ----------------------------------------------------------------------------- */

/* One PUT per failover and side may be in doubt; nothing else is lost or runs twice. */
static void test_ledger_many_cuts(void **state)
{
    unsigned cuts = 60, lost = 0, here;

    (void)state;
    redundant_open(82, "PROOF=ledger HEARTBEAT=10ms");
    silence_psn();
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LATE, 300);
    }
    for (unsigned cut = 0; cut < cuts; cut++) {
        int rail = (int)(cut % 2 + 2 * (cut / 2 % 2));

        cuts += cut + 1 == cuts && cuts < 600 && stats().retired == 0; /* until there was some */
        put_with_completions(0);
        put_with_completions(1);
        fake_port(rail, 0);
        flush_all();
        pump_until(am_all_here());
        for (int s = 0; s < 2; s++) {
            here = check_puts(s);
            assert_true(here <= 1);
            lost += here;
        }
        pump_until(stats().standbys == 0); /* seen, though the work may have been done before */
        fake_port(rail, 1);
        wait_standbys(2);
    }
    assert_int_equal(stats().failovers, 2 * cuts);
    assert_int_equal(stats().in_doubt, lost);
    assert_int_equal(stats().ep_errors, 0);
    assert_true(stats().proofs_ledger > cuts && stats().proofs_psn + stats().proofs_count == 0);
    assert_true(stats().retired > 0);
    print_message("ledger: %u cuts, %u of %u PUTs in doubt\n", cuts, lost, 2 * cuts * PUTS);
}

/* Everything was executed, nothing acknowledged: the marks prove all but what has none. */
static void test_ledger_acks_lost(void **state)
{
    (void)state;
    redundant_open(83, "PROOF=ledger TIMEOUT=14");
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    put_with_completions(0);
    flush_all();
    assert_true(check_puts(0) <= 1);
    assert_true(stats().retired > PUTS / 2);
    am_exchange(0, 10);
}

/* A PUT without completion cannot say that it is in doubt: its endpoint ends, once. */
static void test_ledger_doubt_without_completion(void **state)
{
    (void)state;
    redundant_open(84, "PROOF=ledger");
    for (unsigned round = 0; stats().in_doubt == 0; round++) {
        assert_true(round < 50);
        fake_set(A0, FAKE_STALL, 900);
        assert_int_equal(rma_put_one(0, 0, round % 2 ? SHORT : BCOPY, NULL), UCS_OK);
        fake_port(A0, 0);
        pump_until(stats().failovers > 2 * round || world.side[0].errors > 0);
        fake_set(A0, FAKE_STALL, 0);
        fake_port(A0, 1);
        pump_until(world.side[0].errors > 0 || stats().standbys == 2);
    }
    pump_until(world.side[0].errors == 1);
    assert_int_equal(world.side[0].error, UCS_ERR_IO_ERROR);
    pump_ms(50);
    assert_int_equal(world.side[0].errors, 1);
    assert_true(rma_executions(0, 0) <= 1);
}

/* One side marks, the other one does not; and no traffic at all is in doubt without PUTs. */
static void test_ledger_on_one_side(void **state)
{
    (void)state;
    world_open(85, "HEARTBEAT=10ms");
    side_close(1);
    side_open(1, "PROOF=ledger HEARTBEAT=10ms");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    for (unsigned cut = 0; cut < 12; cut++) {
        am_post(0, 0, 10);
        rma_get_loose(0, 0, 3);
        am_post(1, 0, 10);
        rma_put(1, 0, 20); /* to side 0, which proves by packet number */
        fake_port((int)(cut % 4), 0);
        flush_all();
        pump_until(am_all_here());
        rma_check(1);
        pump_until(stats().standbys == 0);
        fake_port((int)(cut % 4), 1);
        wait_standbys(2);
    }
    assert_int_equal(stats().in_doubt + stats().ep_errors, 0);
    assert_true(stats().proofs_ledger > 10 && stats().proofs_psn > 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_selftest_finds_liars),
    cmocka_unit_test(test_selftest_is_remembered),
    cmocka_unit_test(test_selftest_cleans_up),
    GLUE_TEST(test_count_many_cuts),
    GLUE_TEST(test_count_acks_lost),
    GLUE_TEST(test_count_flow_of_puts),
    GLUE_TEST(test_count_on_one_side),
    GLUE_TEST(test_auto_with_a_liar),
    GLUE_TEST(test_psn_of_a_liar_is_refused),
    GLUE_TEST(test_count_waits_for_progress),
    GLUE_TEST(test_fence_refused_at_first),
    GLUE_TEST(test_fence_refused_for_good),
    GLUE_TEST(test_ledger_many_cuts),
    GLUE_TEST(test_ledger_acks_lost),
    GLUE_TEST(test_ledger_doubt_without_completion),
    GLUE_TEST(test_ledger_on_one_side),
};

int glue_proof(void)
{
    return cmocka_run_group_tests_name("proof", tests, NULL, NULL);
}
