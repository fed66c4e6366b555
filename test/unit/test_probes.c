/* SPDX-License-Identifier: BSD-3-Clause */

/* Whom a round of heartbeats asks, of one peer or of thousands, and when silence is noticed. */

#include "probes_world.h"

static void test_few_are_asked_each_time(void **state)
{
    (void)state;
    world_open(5);
    calm();
    run(10 * SEC);
    for (unsigned i = 0; i < 5; i++) {
        assert_in_range(w.entry[i].pings, 220, 240); /* 2 rails, 10 a second, the calm included */
    }
    world_close();
}

static void test_idle_thousands_within_the_budget(void **state)
{
    (void)state;
    for (unsigned count = 8; count <= MANY; count *= 8) {
        world_open(count);
        calm();
        run(60 * SEC);
        print_message("%u idle peers: %.1f probes a second\n", count, w.pings / 60.0);
        assert_in_range(w.pings, 60 * 98, 61 * 100);
        run(count * 20 * MS + 100 * MS);
        for (unsigned i = 0; i < count; i++) {
            assert_true(w.entry[i].asked + count * 20 * MS + 200 * MS >= w.now); /* nobody is left out */
        }
        assert_int_equal(uct_ha_stats_total.heartbeats_missed, 0);
        assert_int_equal(uct_ha_stats_total.probes_urgent, 0);
        world_close();
    }
}

/* One has work under way on a rail that dies, the others are idle. */
static void test_silence_is_noticed_among_any_number(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= MANY; count *= 8) {
        struct entry *entry;
        uint64_t      worst = 0;

        for (unsigned phase = 0; phase < 10; phase++) {
            world_open(count);
            entry = &w.entry[count / 2];
            calm();
            run(phase * 10 * MS);
            entry->mute[0] = 1;
            post(entry);
            run(SEC);
            assert_true(entry->suspected[0] != 0);
            worst = worst > entry->suspected[0] - (w.now - SEC) ? worst : entry->suspected[0] - (w.now - SEC);
            assert_int_equal(entry->suspected[1], 0);
            world_close();
        }
        print_message("one of %u is silent where work is: noticed after %lu ms at most\n", count,
                      (unsigned long)(worst / MS));
        assert_true(count == 1 ? worst <= 500 * MS : worst <= WINDOW / 4);
    }
}

/* All had work under way, which went through until now, on a rail of ours that dies. */
static void test_own_rail_dies_under_all(void **state)
{
    (void)state;
    for (unsigned count = 8; count <= MANY; count *= 8) {
        uint64_t start, last = 0;

        world_open(count);
        for (unsigned i = 0; i < count; i++) {
            post(&w.entry[i]);
            w.entry[i].moves = 1;
        }
        calm();
        assert_int_equal(uct_ha_stats_total.probes_urgent, 0); /* data is a sign of life */
        start = w.now;
        for (unsigned i = 0; i < count; i++) {
            w.entry[i].moves   = 0;
            w.entry[i].mute[0] = 1;
        }
        run(3 * SEC);
        for (unsigned i = 0; i < count; i++) {
            assert_true(w.entry[i].suspected[0] != 0);
            last = last > w.entry[i].suspected[0] - start ? last : w.entry[i].suspected[0] - start;
        }
        print_message("all %u work on a rail that dies: the last has left it after %lu ms, %u probes in 3 s\n", count,
                      (unsigned long)(last / MS), w.pings);
        assert_true(last <= WINDOW / 4 + 25 * MS);
        assert_true(w.pings <= 100 * (3 + HA_PROBE_SAVE_S + 2));
        world_close();
    }
}

/* A rail of one host of many: what is found for one of its processes holds for the others, and for nobody else. */
static void test_host_dies_under_all(void **state)
{
    uint64_t start, last = 0;

    (void)state;
    world_open(MANY);
    for (unsigned i = 0; i < MANY; i++) {
        post(&w.entry[i]);
        w.entry[i].moves = 1;
    }
    calm();
    start = w.now;
    for (unsigned i = 0; i < MANY; i++) {
        w.entry[i].moves   = i / PER_HOST > 3;
        w.entry[i].mute[0] = i / PER_HOST <= 3;
    }
    run(3 * SEC);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true((w.entry[i].suspected[0] != 0) == (i / PER_HOST <= 3));
        last = last > w.entry[i].suspected[0] ? last : w.entry[i].suspected[0];
    }
    print_message("4 hosts of 64 are silent on a rail: the last of their %u processes is left after %lu ms\n",
                  4 * PER_HOST, (unsigned long)((last - start) / MS));
    assert_true(last - start <= WINDOW / 4 + 25 * MS);
    world_close();
}

/* Work stands still on all of them, because nobody polls; the rails answer. No reason to leave any. */
static void test_work_that_rests_is_no_silence(void **state)
{
    (void)state;
    world_open(512);
    calm();
    for (unsigned i = 0; i < 512; i++) {
        post(&w.entry[i]);
    }
    w.entry[500].mute[0] = 1; /* another one than those that were asked */
    run(60 * SEC);
    for (unsigned i = 0; i < 512; i++) {
        assert_int_equal(w.entry[i].suspected[0] != 0, i == 500); /* others of its host were heard */
        assert_int_equal(w.entry[i].suspected[1], 0);
    }
    assert_true(uct_ha_stats_total.probes_held > 0);
    assert_true(w.pings <= 100 * (60 + HA_PROBE_SAVE_S + 2));
    world_close();
}

/* Both rails silent: the peer is dead, which takes DEAD_PEER and no verdict on a rail. */
static void test_dead_among_thousands(void **state)
{
    struct entry *entry;
    uint64_t      start;

    (void)state;
    world_open(MANY);
    calm();
    entry          = &w.entry[1000];
    start          = w.now;
    entry->mute[0] = entry->mute[1] = 1;
    post(entry);
    run(12 * SEC);
    assert_in_range(entry->lost, start + 10 * SEC, start + 10 * SEC + 500 * MS);
    assert_int_equal(entry->suspected[0] + entry->suspected[1], 0);
    world_close();
}

/* Questions to hundreds are lost; then all is well again. So many are in doubt that each is asked seldom, less often
 * than a way is looked for anew; but asked it is, and nobody is given up. */
static void test_lost_questions_of_hundreds(void **state)
{
    (void)state;
    world_open(MANY);
    calm();
    for (unsigned i = 0; i < MANY; i++) {
        w.entry[i].mute[0] = w.entry[i].mute[1] = 1;
    }
    run(6 * SEC);
    for (unsigned i = 0; i < MANY; i++) {
        w.entry[i].mute[0] = w.entry[i].mute[1] = 0;
    }
    run((uint64_t)MANY * 45 * MS);
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(w.entry[i].lost, 0);
        assert_false(w.entry[i].peer.rail[0].bad || w.entry[i].peer.rail[0].waiting);
    }
    world_close();
}

/* An idle one is found, too, when it is its turn, and asked at once again. */
static void test_idle_standby_that_is_dead(void **state)
{
    (void)state;
    world_open(512);
    calm();
    w.entry[77].mute[1] = 1;
    run(512 * 20 * MS + SEC);
    assert_true(w.entry[77].suspected[1] != 0);
    w.entry[77].mute[1] = 0;
    run(300 * MS); /* and does not wait for its turn to be well again */
    assert_int_equal(w.entry[77].peer.rail[1].bad, 0);
    assert_true(uct_ha_stats_total.probes_doubt > 0);
    world_close();
}

/* Silent rails of hundreds that nobody uses leave the others their turn. */
static void test_doubt_starves_nobody(void **state)
{
    (void)state;
    world_open(MANY);
    calm();
    for (unsigned i = 0; i < 1000; i++) {
        w.entry[i].mute[1] = 1;
    }
    run((uint64_t)MANY * 45 * MS);
    for (unsigned i = 1000; i < MANY; i++) {
        assert_true(w.entry[i].asked + (uint64_t)MANY * 45 * MS >= w.now);
    }
    world_close();
}

/* A world of one with work that moves, and its rails after a calm. */
static struct entry *one(uint64_t seed)
{
    world_open(1);
    w.random         = seed;
    w.entry[0].moves = 1;
    post(&w.entry[0]);
    run(10 * SEC);
    assert_int_equal(w.entry[0].suspected[0], 0);
    return &w.entry[0];
}

/* Half of the probes are lost, for 30 % of the packets are, and work stands still in half of the rounds. */
static void test_lossy_rail_is_left_soon(void **state)
{
    unsigned late = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct entry *entry = one(seed);
        uint64_t      start = w.now;

        entry->loss[0] = 510;
        entry->still   = 500;
        run(4 * SEC);
        assert_true(entry->suspected[0] != 0);
        late += entry->suspected[0] > start + 2 * SEC;
        assert_int_equal(entry->suspected[1], 0);
        world_close();
    }
    print_message("a rail that loses 30 %% is left within 2 s in %u of 200 cases, in 4 s in all\n", 200 - late);
    assert_true(late <= 20);
}

/* Bursts of 100 ms, five a second: each second probe. */
static void test_flapping_rail_is_left_soon(void **state)
{
    struct entry *entry = one(1);
    uint64_t      start = w.now;

    (void)state;
    entry->still = 400;
    for (unsigned i = 0; i < 20 && entry->suspected[0] == 0; i++) {
        entry->mute[0] = (uint8_t)(i % 2);
        run(100 * MS);
    }
    assert_true(entry->suspected[0] != 0 && entry->suspected[0] <= start + 2 * SEC);
    assert_int_equal(entry->cause, HA_CAUSE_SLOW);
    world_close();
}

/* Both alike, or a rail that is full and moves, or work that rests: nothing is gained by leaving. */
static void test_no_reason_to_leave(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct entry *entry = one(seed);

        entry->loss[0] = entry->loss[1] = 300; /* four in a row are lost every minute or so, and work moves between */
        entry->still                    = 100;
        run(600 * SEC);
        assert_int_equal(entry->cause == HA_CAUSE_SLOW, 0);
        world_close();
        entry          = one(seed);
        entry->loss[0] = 500;
        run(600 * SEC);
        assert_int_equal(entry->suspected[0], 0);
        world_close();
        entry        = one(seed);
        entry->still = 900;
        run(600 * SEC);
        assert_int_equal(entry->suspected[0], 0);
        world_close();
    }
}

/* With many peers each is asked rarely: what its rail lost minutes ago is no reason to leave it when work rests. */
static void test_old_losses_among_many(void **state)
{
    struct entry *entry;

    (void)state;
    world_open(512);
    calm();
    entry          = &w.entry[100];
    entry->loss[0] = 400;
    run(600 * SEC);
    assert_int_equal(entry->suspected[0], 0);
    entry->loss[0] = 0;
    entry->still   = 700;
    entry->moves   = 1;
    post(entry);
    run(30 * SEC);
    assert_int_equal(entry->suspected[0], 0);
    world_close();
}

/* When the port goes that all have their work on, those whose peers are gone for good hold up the others a little. */
static void test_gone_peers_hold_up_little(void **state)
{
    uint64_t began, last = 0;

    (void)state;
    for (unsigned each = 1; each <= 2; each++) { /* half of the peers are gone, or all */
        world_open(MANY);
        for (unsigned i = 0; i < MANY; i++) {
            w.entry[i].mute[1] = each == 2 || i % 2 == 0;
        }
        began           = w.now;
        w.pairs.down[0] = 1;
        uct_ha_fall_begin_locked(&w.ctl, 0, HA_CAUSE_PORT);
        while (uct_ha_fall_due(&w.ctl) != UINT64_MAX) {
            w.now = uct_ha_fall_due(&w.ctl);
            uct_ha_fall_run_locked(&w.ctl, w.now);
            assert_true(w.now - began < SEC); /* seen: 0.3 s */
        }
        for (unsigned i = 0; i < MANY; i++) {
            assert_true(w.entry[i].left != 0);
            last = w.entry[i].left > last ? w.entry[i].left : last;
        }
        print_message("%u of %u peers are gone: the last connection was told after %.0f ms\n", MANY / (3 - each), MANY,
                      (double)(last - began) / MS);
        world_close();
    }
}

/* A rail that was silent alone says nothing of its host: the other one that dies soon after has no more time. */
static void test_one_rail_away_is_no_busy_host(void **state)
{
    struct entry *entry;

    (void)state;
    world_open(1);
    entry = &w.entry[0];
    calm();
    post(entry);
    entry->mute[1] = 1;
    run(300 * MS);
    entry->mute[1] = 0;
    run(500 * MS);
    assert_int_equal(entry->suspected[0], 0);
    entry->mute[0] = 1;
    run(SEC);
    assert_int_not_equal(entry->suspected[0], 0);
    world_close();
}

/* Both rails were silent; one answers again. That is a host without a processor: the other rail has sixteen times as
 * long, a little less with every round. */
static void test_busy_host_answers_by_turns(void **state)
{
    struct entry *entry;

    (void)state;
    world_open(1);
    entry = &w.entry[0];
    calm();
    post(entry);
    entry->mute[0] = entry->mute[1] = 1;
    run(600 * MS);
    entry->mute[1] = 0;
    run(3 * SEC);
    assert_int_equal(entry->suspected[0], 0);
    run(SEC + SEC / 2);
    assert_int_not_equal(entry->suspected[0], 0);
    assert_int_equal(entry->suspected[1], 0);
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_are_asked_each_time),
        cmocka_unit_test(test_idle_thousands_within_the_budget),
        cmocka_unit_test(test_silence_is_noticed_among_any_number),
        cmocka_unit_test(test_own_rail_dies_under_all),
        cmocka_unit_test(test_host_dies_under_all),
        cmocka_unit_test(test_work_that_rests_is_no_silence),
        cmocka_unit_test(test_dead_among_thousands),
        cmocka_unit_test(test_lost_questions_of_hundreds),
        cmocka_unit_test(test_idle_standby_that_is_dead),
        cmocka_unit_test(test_doubt_starves_nobody),
        cmocka_unit_test(test_lossy_rail_is_left_soon),
        cmocka_unit_test(test_flapping_rail_is_left_soon),
        cmocka_unit_test(test_no_reason_to_leave),
        cmocka_unit_test(test_old_losses_among_many),
        cmocka_unit_test(test_gone_peers_hold_up_little),
        cmocka_unit_test(test_one_rail_away_is_no_busy_host),
        cmocka_unit_test(test_busy_host_answers_by_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
