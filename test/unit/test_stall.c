/* SPDX-License-Identifier: BSD-3-Clause */

/* A process that is stopped is not dead: a peer, or this one. */

#include "probes_world.h"

/* Both rails are silent. Who is stopped is waited for, six times as long; who runs, or is gone, is not. */
static void test_stopped_is_not_dead(void **state)
{
    static const struct {
        uint8_t  exists, runs;
        unsigned patience; /* times DEAD_PEER */
    } peer[] = {{1, 0, 6}, {1, 1, 1}, {0, 0, 1}};
    struct entry *entry;
    uint64_t      began, limit;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        world_open(8);
        calm();
        entry          = &w.entry[3];
        entry->exists  = peer[i].exists;
        entry->runs    = peer[i].runs;
        entry->mute[0] = entry->mute[1] = 1;
        limit                           = w.pairs.dead_peer;
        began                           = w.now;
        run((peer[i].patience - 1) * limit + limit * 9 / 10);
        assert_int_equal(entry->lost, 0);
        run(limit / 2);
        assert_in_range(entry->lost - began, peer[i].patience * limit, peer[i].patience * limit + limit / 3);
        assert_in_range(entry->calls, 1, 8 * peer[i].patience);
        world_close();
    }
}

/* It goes on: of its pause nothing is left, and when it stops once more its patience begins anew. */
static void test_stopped_again(void **state)
{
    struct entry *entry;

    (void)state;
    world_open(8);
    calm();
    entry         = &w.entry[3];
    entry->exists = 1;
    for (unsigned i = 0; i < 4; i++) {
        entry->mute[0] = entry->mute[1] = 1;
        run(3 * w.pairs.dead_peer);
        assert_int_equal(entry->peer.stall.stalled, 1);
        entry->mute[0] = entry->mute[1] = 0;
        run(SEC);
        assert_int_equal(entry->peer.stall.stalled, 0);
        assert_int_equal(entry->lost, 0);
        assert_null(entry->peer.tcp_link);
    }
    world_close();
}

/* Each call takes a descriptor: no more than so many at once. Who is not called is given up as ever. */
static void test_many_stopped(void **state)
{
    unsigned called = 0, lost = 0;

    (void)state;
    world_open(512);
    calm();
    for (unsigned i = 0; i < 512; i++) {
        w.entry[i].exists = w.entry[i].mute[0] = w.entry[i].mute[1] = 1;
    }
    run(5 * w.pairs.dead_peer);
    for (unsigned i = 0; i < 512; i++) {
        called += w.entry[i].peer.tcp_link != NULL;
        lost += w.entry[i].lost != 0;
        assert_true(w.entry[i].peer.tcp_link == NULL || w.entry[i].lost == 0);
    }
    assert_int_equal(called, 64);
    assert_true(lost > 0);
    run(15 * w.pairs.dead_peer);
    for (unsigned i = 0; i < 512; i++) {
        assert_true(w.entry[i].lost != 0);
        assert_null(w.entry[i].peer.tcp_link);
    }
    assert_int_equal(w.ctl.calls, 0);
    world_close();
}

/* Who cannot be called takes nobody's place. */
static void test_who_has_no_tcp(void **state)
{
    (void)state;
    world_open(128);
    calm();
    for (unsigned i = 0; i < 128; i++) {
        w.entry[i].mute[0] = w.entry[i].mute[1] = 1;
        w.entry[i].exists                       = 1;
        w.entry[i].no_tcp                       = i != 127;
    }
    run(2 * w.pairs.dead_peer);
    assert_int_equal(w.ctl.calls, 1);
    assert_int_equal(w.entry[127].peer.stall.stalled, 1);
    assert_int_equal(w.entry[127].lost, 0);
    assert_true(w.entry[0].lost != 0);
    world_close();
}

/* How many are waited for now, one can see. */
static void test_stopped_ones_are_counted(void **state)
{
    (void)state;
    world_open(8);
    calm();
    for (unsigned i = 0; i < 3; i++) {
        w.entry[i].exists = w.entry[i].mute[0] = w.entry[i].mute[1] = 1;
    }
    run(2 * w.pairs.dead_peer);
    assert_int_equal(uct_ha_stats_total.stalled, 3);
    w.entry[0].mute[0] = w.entry[0].mute[1] = 0; /* goes on */
    w.entry[1].runs                         = 1; /* computes, as it says itself: as dead as ever */
    run(SEC);
    assert_int_equal(uct_ha_stats_total.stalled, 1);
    run(6 * w.pairs.dead_peer);
    assert_true(w.entry[2].lost != 0);
    assert_int_equal(uct_ha_stats_total.stalled, 0);
    world_close();
}

/* This process was stopped: what it did not hear meanwhile is no silence, and a rail that was never heard stays one. */
static void test_own_pause(void **state)
{
    struct entry *entry;
    uint64_t      heard;

    (void)state;
    world_open(8);
    calm();
    entry                       = &w.entry[3];
    entry->peer.rail[1].last_rx = 0;
    heard                       = entry->peer.rail[0].last_rx;
    w.now += 10 * SEC;
    uct_ha_stall_forgive_locked(&w.ctl, w.now);
    assert_in_range(entry->peer.rail[0].last_rx, heard + 9 * SEC, w.now);
    assert_int_equal(entry->peer.rail[1].last_rx, 0);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_is_not_dead),
        cmocka_unit_test(test_stopped_again),
        cmocka_unit_test(test_many_stopped),
        cmocka_unit_test(test_who_has_no_tcp),
        cmocka_unit_test(test_stopped_ones_are_counted),
        cmocka_unit_test(test_own_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
