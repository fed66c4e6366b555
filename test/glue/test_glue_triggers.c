/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Which lanes a trigger takes: what a card says of a queue pair or of a port, and what it refuses.
 */

#include "glue_tests.h"

#include "ctl/watch.h"
#include "uct/iface.h"

#include <string.h>

#define PAIRS 6

static void open_pairs(uint64_t seed)
{
    world_open(seed, "");
    for (int i = 0; i < PAIRS; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 4);
    }
    wait_standbys(2 * PAIRS);
}

static void exchange_all(void)
{
    for (int i = 0; i < PAIRS; i++) {
        am_exchange(i, 4);
    }
}

/* The others of that rail have nothing to do with it. */
static void test_one_queue_pair_dies(void **state)
{
    uint64_t connects;

    (void)state;
    open_pairs(426);
    connects = fake_counts().connects;
    fake_event_one_qp_fatal(A0);
    exchange_all();
    pump_until(stats().failovers >= 2);
    wait_standbys(2 * PAIRS);
    pump_ms(100);
    assert_int_equal(stats().failovers, 2);
    assert_int_equal(fake_counts().connects, connects + 2);
}

/* Each takes its own connection along, not whichever comes first; without shared receives, too. */
static void each_dies(const char *kind, uint64_t seed)
{
    world.personality[0] = kind;
    world.personality[1] = kind;
    open_pairs(seed);
    fake_event_qp_fatal(A0);
    exchange_all();
    pump_until(stats().failovers >= 2 * PAIRS);
    wait_standbys(2 * PAIRS);
    pump_ms(100);
    assert_int_equal(stats().failovers, 2 * PAIRS);
}

static void test_each_queue_pair_dies(void **state)
{
    (void)state;
    each_dies(NULL, 438);
}

static void test_each_dies_without_srq(void **state)
{
    (void)state;
    each_dies("irdma", 439);
}

static void test_one_post_is_refused(void **state)
{
    (void)state;
    open_pairs(427);
    fake_fail(FAKE_CALL_POST_SEND, A0, -5, 1);
    exchange_all();
    pump_until(stats().failovers >= 2);
    wait_standbys(2 * PAIRS);
    pump_ms(100);
    assert_int_equal(stats().failovers, 2);
}

/* A port that goes down takes every lane there, though nothing is under way and nobody asks. */
static void test_port_takes_all_lanes(void **state)
{
    (void)state;
    world_open(434, "HEARTBEAT=0");
    for (int i = 0; i < PAIRS; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 4);
    }
    wait_standbys(2 * PAIRS);
    flush_all();
    fake_port(A0, 0);
    pump_until(stats().failovers == 2 * PAIRS);
    exchange_all();
}

/* A standby that dies is made anew, and work stays where it is. */
static void test_standby_dies_alone(void **state)
{
    uint64_t connects;

    (void)state;
    open_pairs(428);
    connects = fake_counts().connects;
    fake_event_qp_fatal(B1);
    exchange_all();
    pump_until(fake_counts().connects >= connects + 2 * PAIRS);
    wait_standbys(2 * PAIRS);
    exchange_all();
    assert_int_equal(stats().failovers, 0);
}

/* Of queue pairs, and of the port. */
static unsigned heard[2];

static void hear(void *arg, int slot, const struct ha_rail_event *event, int kept)
{
    (void)arg, (void)slot, (void)kept;
    __atomic_add_fetch(&heard[event->qpn == 0], 1, __ATOMIC_RELAXED);
}

/* What a card says of a queue pair is for the interface that has made it, what it says of the port for all there. */
static void test_events_of_others(void **state)
{
    struct uct_ha_watch  other = {.owner = &other};
    struct uct_ha_lanes *lanes;

    (void)state;
    open_pairs(435);
    memset(heard, 0, sizeof(heard));
    lanes = &uct_ha_iface(world.side[1].iface)->lanes;
    assert_int_equal(uct_ha_watch_add(&other, lanes->rail[0], lanes->rail_no[0], hear, NULL, 0), UCS_OK);
    fake_event_qp_fatal(B0);
    pump_until(stats().failovers == 2 * PAIRS);
    exchange_all();
    fake_port(B0, 0);
    pump_until(__atomic_load_n(&heard[1], __ATOMIC_RELAXED) > 0);
    uct_ha_watch_remove(&other);
    assert_int_equal(heard[0], 0);
    fake_port(B0, 1);
    wait_standbys(2 * PAIRS);
    exchange_all();
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_one_queue_pair_dies),  GLUE_TEST(test_each_queue_pair_dies), GLUE_TEST(test_each_dies_without_srq),
    GLUE_TEST(test_one_post_is_refused),  GLUE_TEST(test_standby_dies_alone),   GLUE_TEST(test_events_of_others),
    GLUE_TEST(test_port_takes_all_lanes),
};

int glue_triggers(void)
{
    return cmocka_run_group_tests_name("triggers", tests, NULL, NULL);
}
