/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A life with failovers on each kind of card, and on two kinds at once. GLUE_PERSONALITY=name gives all other
 * tests such cards as well; those fail then that assume another kind.
 */

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

/* Nothing is told: packets or answers are lost on network `net` until work has moved. */
static void lose(int net, enum fake_knob knob)
{
    uint64_t before = stats().failovers;

    fake_set(A0 + net, knob, 1000);
    fake_set(B0 + net, knob, 1000);
    post_some();
    redundant_check();
    pump_until(stats().failovers >= before + 2);
    fake_set(A0 + net, knob, 0);
    fake_set(B0 + net, knob, 0);
    wait_standbys(2);
}

static void cut(int rail)
{
    post_some();
    fake_port(rail, 0);
    post_some();
    redundant_check();
    fake_port(rail, 1);
    wait_standbys(2);
}

static void late_packets(void)
{
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LATE, 1000);
        fake_set(rail, FAKE_STALL, 500);
    }
    post_some();
    fake_event_qp_fatal(A0);
    fake_event_qp_fatal(A1);
    pump_ms(1);
    post_some();
    redundant_check();
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_STALL, 0);
    }
    wait_standbys(2);
}

/* Messages alone: they are exact whatever the card says. */
static void lose_card(void)
{
    uint64_t before = stats().failovers;
    int      rail   = before % 4 == 0 ? A0 : A1;

    am_post(0, 0, 30);
    am_post(1, 0, 30);
    fake_card_reset(rail, FAKE_CARD_DEAD);
    am_exchange(0, 60);
    pump_until(stats().proofs_none >= 1);
    redundant_check();
}

/* Where a port takes its queue pairs along when something is sent: something is, sometime. */
static void cut_until_killed(void)
{
    uint64_t start = now_ns();

    for (int rail = A0; fake_counts().port_kills == 0; rail = (rail + 1) % 4) {
        keep_patience(start);
        cut(rail);
    }
}

static void live(uint64_t seed, const char *mine, const char *its)
{
    world.personality[0] = mine;
    world.personality[1] = its;
    redundant_open(seed, "HEARTBEAT=20ms");
    lose(0, FAKE_LOSE_DATA_OUT);
    lose(1, FAKE_LOSE_ACK_OUT);
    for (int rail = A0; rail <= B1; rail++) {
        cut(rail);
    }
    if (strncmp(mine, "rxe", 3) == 0) {
        cut_until_killed();
    }
    late_packets();
    lose_card();
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
    assert_int_equal(stats().in_doubt, 0);
    assert_true(stats().retired > 0 && stats().replayed > 0);
}

static void test_life_on_plain(void **state)
{
    (void)state;
    live(900, "plain", "plain");
}

static void test_life_on_mlx5(void **state)
{
    (void)state;
    live(901, "mlx5", "mlx5");
}

/* Its packet number is not the one expected: receives are counted instead. */
static void test_life_on_irdma(void **state)
{
    (void)state;
    live(902, "irdma", "irdma");
    assert_true(stats().proofs_count > 0);
    assert_int_equal(stats().proofs_psn, 0);
}

/* An event about a queue pair that we have stopped ourselves is no failure. */
static void test_life_on_bnxt_re(void **state)
{
    (void)state;
    live(903, "bnxt_re", "bnxt_re");
    assert_true(fake_counts().err_events > 0);
}

static void test_life_on_hns(void **state)
{
    (void)state;
    live(904, "hns", "hns");
}

static void test_life_on_rxe(void **state)
{
    (void)state;
    live(905, "rxe", "rxe");
    assert_true(fake_counts().port_kills > 0);
}

static void test_life_on_rxe_old(void **state)
{
    (void)state;
    live(906, "rxe-old", "rxe-old");
    assert_true(fake_counts().port_kills > 0);
}

static void test_life_on_two_kinds(void **state)
{
    (void)state;
    live(907, "irdma", "mlx5");
    assert_true(stats().proofs_count > 0 && stats().proofs_psn > 0);
}

int glue_personality(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_life_on_plain),   GLUE_TEST(test_life_on_mlx5),      GLUE_TEST(test_life_on_irdma),
        GLUE_TEST(test_life_on_bnxt_re), GLUE_TEST(test_life_on_hns),       GLUE_TEST(test_life_on_rxe),
        GLUE_TEST(test_life_on_rxe_old), GLUE_TEST(test_life_on_two_kinds),
    };

    return cmocka_run_group_tests_name("personalities", tests, NULL, NULL);
}
