/* SPDX-License-Identifier: BSD-3-Clause */

/* Each transition and each end of an endpoint pair once, on a perfect wire. */

#include <string.h>

#include "pair_world.h"

static void test_quiet_when_both_know(void **state)
{
    unsigned sent = side[0].sent + side[1].sent;

    (void)state;
    pass(100);
    assert_int_equal(side[0].sent + side[1].sent, sent);
    for (int x = 0; x < 2; x++) {
        assert_true(ha_pair_next_timer(&side[x].pair) == UINT64_MAX);
    }
}

static void test_lost_packets_are_sent_again(void **state)
{
    (void)state;
    cut = 1;
    pass(40);
    assert_true(side[0].sent >= 4 && side[0].sent < 12); /* growing intervals */
    cut = 0;
    pass(40);
    expect_active(0, 1);
}

static void test_failover_by_either_side(void **state)
{
    uint32_t epoch = 1;
    int      slot;

    (void)state;
    for (int round = 0; round < 20; round++) {
        slot = ha_pair_tx_slot(&side[0].pair);
        if (round % 3 != 0) {
            down(0, slot);
        }
        if (round % 3 != 1) {
            down(1, slot);
        }
        pass(30);
        expect_active(!slot, ++epoch);
        assert_int_equal(ha_pair_standby(&side[0].pair), slot); /* rebuilt */
    }
    assert_int_equal(side[0].destroyed, 20);
}

/* What one side says last is lost: that it has heard. The other one says the same again, which is no news, and has to
 * hear that it is known; then both are silent. */
static void test_last_word_is_lost(void **state)
{
    unsigned sent;

    (void)state;
    for (int x = 0; x < 2; x++) {
        for (unsigned lost = 0; lost < 40; lost++) { /* from this word on, the next ones of side x */
            down(x, ha_pair_tx_slot(&side[x].pair));
            pass((int)lost);
            cut = 1;
            pass(1);
            cut = 0;
            pass(4000);
            assert_false(side[0].pair.dirty || side[1].pair.dirty);
            sent = side[0].sent + side[1].sent;
            pass(4000);
            assert_int_equal(side[0].sent + side[1].sent, sent);
            assert_true(ha_pair_standby(&side[0].pair) != HA_NO_SLOT);
        }
    }
}

static void test_passive_peer_survives_one(void **state)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    struct ha_record record;
    int              n;

    (void)state;
    down(0, 0);
    ha_pair_snapshot(&side[0].pair, &record);
    give(1, (struct ha_event){.kind = HA_EV_RECORD, .record = &record});
    while ((n = ha_pair_run(&side[1].pair, HA_CTX_ASYNC, now, actions)) >= 0) {
        for (int i = 0; i < n; i++) {
            perform(1, &actions[i]);
        }
    }
    ha_pair_snapshot(&side[1].pair, &record);
    give(0, (struct ha_event){.kind = HA_EV_RECORD, .record = &record});
    run(0);
    assert_int_equal(ha_pair_tx_slot(&side[0].pair), 1);
}

static void test_suspicion_needs_a_standby(void **state)
{
    struct ha_event suspect = {.kind = HA_EV_LANE_SUSPECT, .slot = 0, .gen = 1, .cause = HA_CAUSE_RTO};

    (void)state;
    rail(0, 1, 0);
    down(0, 1);
    pass(20);
    give(0, suspect);
    assert_int_equal(side[0].pair.lane[0].q, HA_QP_UP);
    rail(0, 1, 1);
    pass(20);
    give(0, suspect);
    pass(20);
    expect_active(1, 2);
}

static void test_suspected_standby_is_replaced(void **state)
{
    (void)state;
    give(1, (struct ha_event){.kind = HA_EV_LANE_SUSPECT, .slot = 1, .gen = 1, .cause = HA_CAUSE_HEARTBEAT});
    pass(30);
    expect_active(0, 1);
    assert_int_equal(side[0].pair.lane[1].gen, 2);
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
}

/* Side 0 builds the standby, side 1's rail is gone; side 0's rail flaps, too. */
static void test_generation_without_a_queue_pair(void **state)
{
    unsigned created;

    (void)state;
    rail(1, 1, 0);
    down(1, 1);
    pass(30);
    assert_int_equal(side[0].pair.lane[1].gen, 2);
    assert_int_equal(side[0].pair.lane[1].st, HA_LANE_CONN);
    assert_int_equal(side[1].pair.lane[1].gen, 1);
    created = side[1].created;
    for (uint32_t gen = 2; gen < 6; gen++) {
        rail(0, 1, 0);
        pass(30);
        assert_int_equal(side[0].pair.lane[1].gen, gen);
        assert_int_equal(side[1].pair.lane[1].gen, gen);
        assert_int_equal(side[1].pair.lane[1].st, HA_LANE_CLOSED);
        rail(0, 1, 1);
        pass(30);
    }
    assert_int_equal(side[1].created, created);
    rail(1, 1, 1);
    pass(30);
    expect_active(0, 1);
    assert_int_equal(ha_pair_standby(&side[1].pair), 1);
}

static void test_queue_pair_that_cannot_be_created(void **state)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              n = ha_pair_run(&side[0].pair, HA_CTX_PROGRESS, now, actions);

    (void)state;
    assert_true(n >= 1);
    assert_int_equal(actions[0].kind, HA_ACT_CREATE_QP);
    give(0, (struct ha_event){.kind = HA_EV_QP_FAILED, .slot = 0, .gen = 1});
    assert_true(ha_pair_next_timer(&side[0].pair) < UINT64_MAX);
    pass(60);
    expect_active(1, 1); /* the other one was quicker */
    assert_int_equal(ha_pair_standby(&side[0].pair), 0);
}

static void expect_failed(int first, uint32_t why)
{
    pass(40);
    for (int x = 0; x < 2; x++) {
        assert_int_equal(side[x].failed, 1);
        assert_int_equal(side[x].fail, x == first ? why : HA_FAIL_PEER_FAILED);
        assert_int_equal(ha_pair_tx_slot(&side[x].pair), HA_NO_SLOT);
    }
}

static void test_both_rails_gone(void **state)
{
    (void)state;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        for (int x = 0; x < 2; x++) {
            rail(x, slot, 0);
            down(x, slot);
        }
    }
    pass(99);
    assert_int_equal(side[0].failed + side[1].failed, 0);
    pass(40);
    assert_int_equal(side[0].failed & side[1].failed, 1);
    assert_true(side[0].fail == HA_FAIL_DEADLINE || side[1].fail == HA_FAIL_DEADLINE);
}

/* No lane, but the peer answers: it may only be slow. For some time. */
static void test_patience_with_a_peer_that_answers(void **state)
{
    (void)state;
    peer_answers = 1;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        for (int x = 0; x < 2; x++) {
            rail(x, slot, 0);
            down(x, slot);
        }
    }
    pass(99 * (int)HA_PATIENCE);
    assert_int_equal(side[0].failed + side[1].failed, 0);
    pass(60);
    assert_int_equal(side[0].failed & side[1].failed, 1);
}

static void test_peer_answers_until_it_moves(void **state)
{
    (void)state;
    peer_answers = 1;
    for (int round = 0; round < 3; round++) { /* patience begins anew each time */
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            for (int x = 0; x < 2; x++) {
                rail(x, slot, 0);
                down(x, slot);
            }
        }
        pass(99 * (int)HA_PATIENCE - 20);
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            for (int x = 0; x < 2; x++) {
                rail(x, slot, 1);
            }
        }
        pass(60);
        assert_int_not_equal(ha_pair_tx_slot(&side[0].pair), HA_NO_SLOT);
        assert_int_not_equal(ha_pair_tx_slot(&side[1].pair), HA_NO_SLOT);
    }
    assert_int_equal(side[0].failed + side[1].failed, 0);
}

static void test_never_connected(void **state)
{
    (void)state;
    cut = 1;
    pass(250);
    for (int x = 0; x < 2; x++) {
        assert_int_equal(side[x].failed, 1);
        assert_int_equal(side[x].fail, HA_FAIL_CONNECT);
    }
}

static void test_wrong_message_count(void **state)
{
    (void)state;
    side[1].value = 1;
    down(0, 0);
    expect_failed(1, HA_FAIL_COUNT);
}

static void test_proof_that_moves(void **state)
{
    (void)state;
    side[0].moves = 1;
    down(0, 0);
    expect_failed(0, HA_FAIL_PROOF_MOVED);
}

/* Every kind reaches the peer as it is; what is read again must be the same. */
static void test_proof_by_count(void **state)
{
    (void)state;
    side[1].kind     = HA_PROOF_COUNT;
    side[1].received = 77;
    down(0, 0);
    pass(20);
    assert_int_equal(side[0].failed + side[1].failed, 0);
    assert_int_equal(side[0].peer.kind, HA_PROOF_COUNT);
    assert_int_equal(side[0].peer.received, 77);
    assert_int_equal(side[0].peer.word, 0);
}

/* Where the marks go is known when a lane is connected, and only of a peer that
 * wants them; the proof itself comes in the same fields later. */
static void test_proof_by_ledger(void **state)
{
    (void)state;
    side[1].offer = HA_PROOF_LEDGER;
    pass(20);
    assert_true(side[0].marks);
    assert_true(side[0].ledger_addr == 0x1122334455667788ull + 1);
    assert_int_equal(side[0].ledger_key, 0xaabbccddu);
    assert_false(side[1].marks);
    side[1].kind     = HA_PROOF_LEDGER;
    side[1].psn      = 0x123456;
    side[1].received = 9;
    down(0, 0);
    pass(20);
    assert_int_equal(side[0].failed + side[1].failed, 0);
    assert_int_equal(side[0].peer.kind, HA_PROOF_LEDGER);
    assert_int_equal(side[0].peer.word, 0x123456);
    assert_int_equal(side[0].peer.received, 9);
}

static void test_count_that_moves(void **state)
{
    (void)state;
    side[1].kind           = HA_PROOF_COUNT;
    side[1].received_later = 1;
    down(0, 0);
    expect_failed(1, HA_FAIL_PROOF_MOVED);
}

static void test_proof_in_another_way(void **state)
{
    (void)state;
    side[1].pair.lane[0].proof = HA_PROOF_LEDGER;
    side[0].pair.view[0].offer = HA_PROOF_LEDGER;
    down(0, 0);
    expect_failed(0, HA_FAIL_PROOF_KIND);
}

static void test_device_without_proof(void **state)
{
    (void)state;
    side[1].no_proof = 1;
    side[1].received = 5;
    down(0, 0);
    pass(20);
    expect_active(1, 2);
    assert_int_equal(side[0].peer.kind, HA_PROOF_NONE);
    assert_int_equal(side[0].peer.received, 5);
    assert_int_equal(side[1].peer.kind, HA_PROOF_PSN);
}

/* NONE is not EMPTY: only who numbers the epochs knows that a lane was never used. */
static void test_standby_without_proof(void **state)
{
    (void)state;
    side[0].no_proof = side[1].no_proof = 1;
    down(0, 1);
    pass(3);
    assert_int_equal(side[1].pair.view[1].proof, HA_PROOF_EMPTY);
    assert_int_equal(side[0].pair.view[1].proof, HA_PROOF_NONE);
    pass(20);
    expect_active(0, 1);
    assert_int_equal(ha_pair_standby(&side[0].pair), 1);
}

/* Who cannot stop his end says so: the peer stops the other one, however often that is lost. */
static void test_lane_that_does_not_stop(void **state)
{
    struct ha_event settled = {.kind = HA_EV_SETTLED, .slot = 0, .gen = 1, .proof = HA_PROOF_NONE};

    (void)state;
    side[0].stuck = 1;
    cut           = 1;
    down(0, 0);
    pass(10);
    assert_int_equal(side[1].fenced, 0);
    assert_false(ha_pair_peer_stopped(&side[0].pair, 0));
    cut = 0;
    pass(20);
    assert_int_equal(side[1].fenced, 1);
    assert_true(ha_pair_peer_stopped(&side[0].pair, 0));
    assert_int_equal(side[0].pair.lane[0].st, HA_LANE_READY);
    give(0, settled);
    settled.kind = HA_EV_DRAINED;
    give(0, settled);
    pass(20);
    expect_active(1, 2);
}

static void test_peer_far_ahead(void **state)
{
    struct ha_record record;

    (void)state;
    ha_pair_snapshot(&side[0].pair, &record);
    record.lane[0].gen += 2;
    give(1, (struct ha_event){.kind = HA_EV_RECORD, .record = &record});
    expect_failed(1, HA_FAIL_GENERATION);
}

static void test_lost_peer(void **state)
{
    (void)state;
    cut = 1;
    give(0, (struct ha_event){.kind = HA_EV_PEER_LOST, .value = HA_FAIL_PEER_DEAD});
    pass(10);
    assert_int_equal(side[0].failed, 1);
    assert_int_equal(side[0].fail, HA_FAIL_PEER_DEAD);
    give(0, (struct ha_event){.kind = HA_EV_CLOSE});
    pass(1);
    assert_int_equal(side[0].gone, 1);
}

static void test_close_needs_both(void **state)
{
    (void)state;
    give(0, (struct ha_event){.kind = HA_EV_CLOSE});
    pass(200);
    assert_int_equal(side[0].gone, 0);
    assert_true(ha_pair_peer_closing(&side[1].pair));
    down(0, 0); /* the other user is still there: it must be served */
    pass(30);
    expect_active(1, 2);
    give(1, (struct ha_event){.kind = HA_EV_CLOSE});
    pass(20);
    for (int x = 0; x < 2; x++) {
        assert_int_equal(side[x].gone, 1);
        assert_int_equal(side[x].failed, 0);
        assert_true(ha_pair_next_timer(&side[x].pair) == UINT64_MAX);
    }
}

static void test_close_when_the_last_packet_is_lost(void **state)
{
    (void)state;
    give(0, (struct ha_event){.kind = HA_EV_CLOSE});
    give(1, (struct ha_event){.kind = HA_EV_CLOSE});
    pass(1); /* both have heard of it, nothing after that arrives */
    cut     = 1;
    on_wire = 0;
    pass(110);
    for (int x = 0; x < 2; x++) {
        assert_int_equal(side[x].gone, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lost_packets_are_sent_again, pair_setup),
        cmocka_unit_test_setup(test_queue_pair_that_cannot_be_created, pair_setup),
        cmocka_unit_test_setup(test_patience_with_a_peer_that_answers, pair_setup_connected),
        cmocka_unit_test_setup(test_peer_answers_until_it_moves, pair_setup_connected),
        cmocka_unit_test_setup(test_never_connected, pair_setup),
        cmocka_unit_test_setup(test_quiet_when_both_know, pair_setup_connected),
        cmocka_unit_test_setup(test_failover_by_either_side, pair_setup_connected),
        cmocka_unit_test_setup(test_last_word_is_lost, pair_setup_connected),
        cmocka_unit_test_setup(test_passive_peer_survives_one, pair_setup_connected),
        cmocka_unit_test_setup(test_suspicion_needs_a_standby, pair_setup_connected),
        cmocka_unit_test_setup(test_suspected_standby_is_replaced, pair_setup_connected),
        cmocka_unit_test_setup(test_generation_without_a_queue_pair, pair_setup_connected),
        cmocka_unit_test_setup(test_both_rails_gone, pair_setup_connected),
        cmocka_unit_test_setup(test_wrong_message_count, pair_setup_connected),
        cmocka_unit_test_setup(test_proof_that_moves, pair_setup_connected),
        cmocka_unit_test_setup(test_proof_by_count, pair_setup_connected),
        cmocka_unit_test_setup(test_proof_by_ledger, pair_setup),
        cmocka_unit_test_setup(test_count_that_moves, pair_setup_connected),
        cmocka_unit_test_setup(test_proof_in_another_way, pair_setup_connected),
        cmocka_unit_test_setup(test_device_without_proof, pair_setup_connected),
        cmocka_unit_test_setup(test_standby_without_proof, pair_setup_connected),
        cmocka_unit_test_setup(test_lane_that_does_not_stop, pair_setup_connected),
        cmocka_unit_test_setup(test_peer_far_ahead, pair_setup_connected),
        cmocka_unit_test_setup(test_lost_peer, pair_setup_connected),
        cmocka_unit_test_setup(test_close_needs_both, pair_setup_connected),
        cmocka_unit_test_setup(test_close_when_the_last_packet_is_lost, pair_setup_connected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
