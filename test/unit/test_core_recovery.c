/* SPDX-License-Identifier: BSD-3-Clause */

/* Going back to the preferred lane, and rails that are left alone. */

#include "pair_world.h"

/* The slot in use on both sides after a failover to slot 1 and back. */
static void lose_and_mend_first_lane(void)
{
    rail(0, 0, 0);
    down(0, 0);
    pass(30);
    expect_active(1, 2);
    rail(0, 0, 1);
    while (ha_pair_standby(&side[0].pair) != 0 || ha_pair_standby(&side[1].pair) != 0) {
        pass(1);
    }
}

static void test_failback_after_a_time(void **state)
{
    (void)state;
    side[0].pair.cfg.failback = 100000;
    lose_and_mend_first_lane();
    pass(190);
    expect_active(1, 2);
    pass(40);
    expect_active(0, 3);
    assert_int_equal(side[1].pair.view[1].cause, HA_CAUSE_NONE); /* rebuilt already */
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
    assert_int_equal(side[0].pair.failback_at, 0);
    pass(1000);
    expect_active(0, 3); /* and there it stays */
}

static void test_failback_is_the_deciders(void **state)
{
    (void)state;
    side[1].pair.cfg.failback = 100000;
    lose_and_mend_first_lane();
    pass(1000);
    expect_active(1, 2);
}

static void test_failback_counts_from_the_last_failure(void **state)
{
    (void)state;
    side[0].pair.cfg.failback = 100000;
    lose_and_mend_first_lane();
    for (uint32_t i = 0; i < 5; i++) {
        pass(100);
        down(1, 0); /* the standby fails and is rebuilt */
        pass(30);
        expect_active(1, 2);
    }
    pass(220);
    expect_active(0, 3);
}

static void test_failback_auto_grows_with_the_hold(void **state)
{
    uint64_t mended;

    (void)state;
    side[0].pair.cfg.failback = HA_FAILBACK_AUTO;
    lose_and_mend_first_lane();
    assert_true(side[0].pair.failback_at <= now + HA_FAILBACK_AUTO_NS);
    give(0, (struct ha_event){.kind = HA_EV_HOLD, .slot = 0, .wait = HA_FAILBACK_AUTO_NS});
    mended = now;
    assert_true(side[0].pair.failback_at == mended + HA_FAILBACK_HOLDS * HA_FAILBACK_AUTO_NS);
    now = side[0].pair.failback_at - 1000;
    pass(1);
    expect_active(1, 2);
    assert_true(ha_pair_next_timer(&side[0].pair) <= now + 1000);
    pass(40);
    expect_active(0, 3);
}

static void test_no_failback_while_closing(void **state)
{
    (void)state;
    side[0].pair.cfg.failback = 100000;
    lose_and_mend_first_lane();
    give(1, (struct ha_event){.kind = HA_EV_CLOSE});
    pass(500);
    expect_active(1, 2);
}

/* The standby is lost while both sides hold its slot, and is not built anew. */
static void lose_held_standby(uint64_t wait, int passes)
{
    for (int x = 0; x < 2; x++) {
        give(x, (struct ha_event){.kind = HA_EV_HOLD, .slot = 1, .wait = wait});
    }
    down(0, 1);
    pass(passes);
    assert_int_equal(ha_pair_standby(&side[0].pair), HA_NO_SLOT);
}

static void test_a_held_rail_waits(void **state)
{
    (void)state;
    lose_held_standby(100000, 150);
    assert_true(ha_pair_next_timer(&side[0].pair) < UINT64_MAX);
    pass(80);
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
}

static void test_a_held_rail_is_used_when_needed(void **state)
{
    (void)state;
    lose_held_standby(1000000000, 100);
    rail(0, 0, 0);
    down(0, 0);
    pass(30);
    expect_active(1, 2);
}

/* The rail that carries all work is in doubt: it is not left, but the other one is built now. */
static void test_a_hold_ends_with_a_suspicion(void **state)
{
    (void)state;
    lose_held_standby(1000000000, 100);
    give(0, (struct ha_event){.kind = HA_EV_LANE_SUSPECT, .slot = 0, .gen = 1, .cause = HA_CAUSE_HEARTBEAT});
    expect_active(0, 1);
    pass(60);
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
    give(0, (struct ha_event){.kind = HA_EV_LANE_SUSPECT, .slot = 0, .gen = 1, .cause = HA_CAUSE_HEARTBEAT});
    pass(30);
    expect_active(1, 2);
}

/* The peer knows more: it has begun to build although we would wait. */
static void test_a_hold_does_not_keep_the_peer_waiting(void **state)
{
    (void)state;
    give(0, (struct ha_event){.kind = HA_EV_HOLD, .slot = 1, .wait = 1000000000});
    down(0, 1);
    pass(60);
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
}

/* Work cannot go anywhere else, and the standby's number of the epoch is not known here yet. */
static void test_suspected_standby_is_kept_while_work_waits(void **state)
{
    (void)state;
    cut = 1;
    down(1, 0);
    assert_int_equal(ha_pair_tx_slot(&side[1].pair), HA_NO_SLOT);
    give(1, (struct ha_event){.kind = HA_EV_LANE_SUSPECT, .slot = 1, .gen = 1, .cause = HA_CAUSE_HEARTBEAT});
    assert_int_equal(side[1].pair.lane[1].q, HA_QP_UP);
}

/* An outage after a failover has its own deadline. */
static void test_second_outage_ends(void **state)
{
    (void)state;
    down(0, 0);
    pass(30);
    expect_active(1, 2);
    assert_true(side[0].pair.deadline == 0);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        rail(0, slot, 0);
        down(0, slot);
    }
    assert_true(side[0].pair.deadline > now);
    now = side[0].pair.deadline;
    give(0, (struct ha_event){.kind = HA_EV_TIMER});
    assert_int_equal(side[0].pair.fail, HA_FAIL_DEADLINE);
}

static void ask_for_queue_pair(void)
{
    struct ha_action actions[HA_ACTIONS_MAX];

    assert_true(ha_pair_run(&side[0].pair, HA_CTX_PROGRESS, now, actions) >= 1);
    assert_int_equal(actions[0].kind, HA_ACT_CREATE_QP);
}

static void test_queue_pair_after_the_end(void **state)
{
    (void)state;
    ask_for_queue_pair();
    give(0, (struct ha_event){.kind = HA_EV_PEER_LOST, .value = HA_FAIL_CANCELED});
    assert_int_equal(side[0].fenced, 0);
    give(0, (struct ha_event){.kind = HA_EV_QP_CREATED, .slot = 0, .gen = 1, .qpn = 9, .mtu = 1024});
    assert_int_not_equal(side[0].pair.lane[0].q, HA_QP_INIT);
    assert_int_not_equal(side[0].pair.lane[0].st, HA_LANE_CONN);
}

static void test_queue_pair_of_a_rail_that_went_down(void **state)
{
    (void)state;
    ask_for_queue_pair();
    side[0].pair.lane[0].usable = 0;
    give(0, (struct ha_event){.kind = HA_EV_QP_CREATED, .slot = 0, .gen = 1, .qpn = 9, .mtu = 1024});
    assert_int_equal(side[0].pair.lane[0].usable, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_failback_after_a_time, pair_setup_connected),
        cmocka_unit_test_setup(test_failback_is_the_deciders, pair_setup_connected),
        cmocka_unit_test_setup(test_failback_counts_from_the_last_failure, pair_setup_connected),
        cmocka_unit_test_setup(test_failback_auto_grows_with_the_hold, pair_setup_connected),
        cmocka_unit_test_setup(test_no_failback_while_closing, pair_setup_connected),
        cmocka_unit_test_setup(test_a_held_rail_waits, pair_setup_connected),
        cmocka_unit_test_setup(test_a_held_rail_is_used_when_needed, pair_setup_connected),
        cmocka_unit_test_setup(test_a_hold_does_not_keep_the_peer_waiting, pair_setup_connected),
        cmocka_unit_test_setup(test_a_hold_ends_with_a_suspicion, pair_setup_connected),
        cmocka_unit_test_setup(test_suspected_standby_is_kept_while_work_waits, pair_setup_connected),
        cmocka_unit_test_setup(test_second_outage_ends, pair_setup_connected),
        cmocka_unit_test_setup(test_queue_pair_after_the_end, pair_setup),
        cmocka_unit_test_setup(test_queue_pair_of_a_rail_that_went_down, pair_setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
