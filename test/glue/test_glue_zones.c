/* SPDX-License-Identifier: BSD-3-Clause */

/* Zones of the user decide who talks to whom. Net devices: eth0 and eth1 of side 0, eth2
 * and eth3 of side 1. */

#include "glue_tests.h"

#include <stdio.h>
#include <string.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

static int reachable(int s)
{
    const struct side *peer = &world.side[!s];

    return uct_iface_is_reachable(world.side[s].iface, (const void *)peer->dev_addr, (const void *)peer->iface_addr);
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
    open_zones(302, "ALLOW_UNKNOWN_ZONE=n ZONES=eth0:x,eth1:y", "ALLOW_UNKNOWN_ZONE=n ZONES=eth2:x,eth3:y");
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

/* Side 0 is in other partitions than side 1: none is reachable, or only the first rails. */
static void test_other_partition(void **state)
{
    (void)state;
    world_open(305, "");
    side_close(0);
    fake_partition(A0, 0x8001);
    fake_partition(A1, 0x8001);
    fake_partition(B0, 0x8002);
    side_close(1);
    side_open(0, "");
    side_open(1, "");
    assert_false(reachable(0));
    assert_false(reachable(1));
    side_close(0);
    fake_partition(A0, 0x0002); /* a limited member, of a full one */
    fake_partition(B1, 0x8003);
    side_close(1);
    side_open(0, "");
    side_open(1, "");
    assert_true(reachable(0));
    assert_true(reachable(1));
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 100);
    flush_all();
    pump_ms(500);
    assert_int_equal(stats().pairs, 2);
    assert_int_equal(stats().standbys, 0);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

static char     said[512];
static unsigned times_said;

static ucs_log_func_rc_t listen_for_unreachable(const char *file, unsigned line, const char *function,
                                                ucs_log_level_t level, const ucs_log_component_config_t *config,
                                                const char *message, va_list args)
{
    char text[512];

    (void)file, (void)line, (void)function, (void)config;
    vsnprintf(text, sizeof(text), message, args);
    if (level == UCS_LOG_LEVEL_DIAG && strstr(text, "does not reach") != NULL) {
        memcpy(said, text, sizeof(said));
        times_said++;
    }
    return UCS_LOG_FUNC_RC_STOP;
}

static void expect_said(const char *why, const char *remedy, unsigned times)
{
    assert_int_equal(times_said, times);
    assert_non_null(strstr(said, why));
    assert_non_null(strstr(said, remedy));
}

/* UCX only says that a destination is unreachable. */
static void test_says_why_it_is_not_reachable(void **state)
{
    ucs_log_level_t level = ucs_global_opts.log_component.log_level;

    (void)state;
    open_zones(304, "ZONES=eth0:p,eth1:q", "ZONES=eth2:r,eth3:q");
    times_said = 0;
    ucs_log_push_handler(listen_for_unreachable);
    assert_false(reachable(0)); /* nobody listens on that level */
    assert_int_equal(times_said, 0);
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_DIAG;
    assert_false(reachable(0));
    assert_false(reachable(0));
    expect_said("a0:1 (10.0.0.1/24) does not reach a peer's rail (10.0.0.2/24): another zone", "UCX_HA_RC_ZONES", 1);
    assert_false(reachable(1));
    expect_said("b0:1 (10.0.0.2/24) does", "UCX_HA_RC_ZONES", 2);
    side_close(0);
    side_open(0, "ALLOW_UNKNOWN_ZONE=n");
    assert_false(reachable(0));
    expect_said("no zone on one side", "UCX_HA_RC_ALLOW_UNKNOWN_ZONE", 3);
    side_close(0);
    side_open(0, "");
    assert_true(reachable(0));
    assert_int_equal(times_said, 3);
    ucs_log_pop_handler();
    ucs_global_opts.log_component.log_level = level;
}

int glue_zones(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_other_zone_is_not_reachable),
        GLUE_TEST(test_unknown_zone),
        GLUE_TEST(test_accepting_side_believes_the_zones_it_is_told),
        GLUE_TEST(test_standby_in_another_zone),
        GLUE_TEST(test_other_partition),
        GLUE_TEST(test_says_why_it_is_not_reachable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
