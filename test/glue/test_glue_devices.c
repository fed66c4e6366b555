/* SPDX-License-Identifier: BSD-3-Clause */

/* Devices with ways and limits of their own, whatever they are called. */

#include "glue_tests.h"

#include "uct/iface.h"

static const struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static void open_world_without(int s, const char *settings)
{
    world_open(310, settings);
    side_close(s);
}

/* RETRY_COUNT=6: (6 * 536.9 - 96) ms by mlx5's rule, nominally 0.94 s. */
static void test_rto_fits_the_slowest_card(void **state)
{
    static const char settings[] = "TIMEOUT=15 RETRY_COUNT=6 RTO=2s RTO_MAX=5s";

    (void)state;
    open_world_without(0, settings);
    assert_true(iface_of(1)->config.rto == 2);
    fake_limits(A1)->mlx5 = 1;
    side_open(0, settings);
    assert_in_range((uint64_t)(iface_of(0)->config.rto * 1000), 6240, 6260);
    assert_true(iface_of(0)->config.rto_max >= iface_of(0)->config.rto);
}

static void test_retries_for_ever_on_either_rail(void **state)
{
    (void)state;
    for (int rail = A0; rail <= A1; rail++) {
        open_world_without(0, "RETRY_COUNT=7");
        assert_int_equal(iface_of(1)->config.retry_count, 7);
        fake_limits(rail)->retry7_forever = 1;
        side_open(0, "RETRY_COUNT=7");
        assert_int_equal(iface_of(0)->config.retry_count, 6);
        world_close();
        (void)glue_setup(NULL);
    }
}

static void test_shallow_queues_carry(void **state)
{
    (void)state;
    open_world_without(0, "");
    fake_limits(A1)->max_qp_wr = 16;
    side_open(0, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 200);
    wait_standbys(2);
    fake_port(A0, 0);
    am_exchange(0, 200);
    assert_int_equal(stats().ep_errors, 0);
}

static void test_too_shallow_queues_are_refused(void **state)
{
    static const uint32_t depths[] = {0, 3, 15};

    (void)state;
    open_world_without(0, "");
    for (int i = 0; i < 3; i++) {
        fake_limits(A1)->max_qp_wr = depths[i];
        side_open_fails(0, "", UCS_ERR_UNSUPPORTED);
    }
}

int glue_devices(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_rto_fits_the_slowest_card),
        GLUE_TEST(test_retries_for_ever_on_either_rail),
        GLUE_TEST(test_shallow_queues_carry),
        GLUE_TEST(test_too_shallow_queues_are_refused),
    };

    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
