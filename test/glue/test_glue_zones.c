/* SPDX-License-Identifier: BSD-3-Clause */

/* Zones of the user decide who talks to whom. Net devices: eth0 and eth1 of side 0, eth2
 * and eth3 of side 1. */

#include "glue_tests.h"

static int reachable(int s)
{
    const struct side *peer = &world.side[!s];

    return uct_iface_is_reachable(world.side[s].iface, (const void *)peer->dev_addr,
                                  (const void *)peer->iface_addr);
}

static void open_zones(uint64_t seed, const char *zones0, const char *zones1)
{
    world_open(seed, "");
    side_close(0);
    side_close(1);
    side_open(0, zones0);
    side_open(1, zones1);
}

static void test_other_zone_is_not_reachable(void **state)
{
    (void)state;
    open_zones(300, "ZONES=eth0:x,eth1:y", "ZONES=eth2:z,eth3:y");
    assert_false(reachable(0));
    assert_false(reachable(1));
}

static void test_unknown_zone(void **state)
{
    (void)state;
    open_zones(301, "ZONES=eth0:x", "");
    assert_true(reachable(0));
    assert_true(reachable(1));
    side_close(0);
    side_open(0, "ZONES=eth0:x ALLOW_UNKNOWN_ZONE=n");
    assert_false(reachable(0));
    assert_true(reachable(1));
}

/* The side that accepts hears of zones only from the control packets of the other. */
static void test_accepting_side_believes_the_zones_it_is_told(void **state)
{
    (void)state;
    open_zones(302, "ALLOW_UNKNOWN_ZONE=n ZONES=eth0:x,eth1:y",
               "ALLOW_UNKNOWN_ZONE=n ZONES=eth2:x,eth3:y");
    assert_true(reachable(0));
    assert_true(reachable(1));
    ep_open(0, 0);
    am_post(0, 0, 50);
    pump_until(am_all_here());
    wait_standbys(2);
}

/* The standbys are in different zones: the connection works, without a standby. */
static void test_standby_in_another_zone(void **state)
{
    (void)state;
    open_zones(303, "ZONES=eth1:x", "ZONES=eth3:y");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 100);
    flush_all();
    pump_ms(500);
    assert_int_equal(stats().pairs, 2);
    assert_int_equal(stats().standbys, 0);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

int glue_zones(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_other_zone_is_not_reachable),
        GLUE_TEST(test_unknown_zone),
        GLUE_TEST(test_accepting_side_believes_the_zones_it_is_told),
        GLUE_TEST(test_standby_in_another_zone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
