/* SPDX-License-Identifier: BSD-3-Clause */

/* Cold connections: those of an interface with a twin have no standby before they need one, and move all the same. */

#include "glue_tests.h"

#include "pair/twins.h"
#include "uct/iface.h"

#define EPS   4
#define TWINS 16 /* connections of each interface's twin, which is made up here */

/* Side `s` has another interface, which has our standby as its own rail. */
static struct uct_ha_lanes twin_of(int s)
{
    const struct uct_ha_lanes *lanes = &uct_ha_iface(world.side[s].iface)->lanes;
    struct uct_ha_lanes        twin  = {.config = lanes->config, .slots = HA_SLOTS};

    twin.rail_no[0] = lanes->rail_no[1];
    twin.rail_no[1] = lanes->rail_no[0];
    return twin;
}

static struct uct_ha_lanes twins[2];

static void twins_join(int sides)
{
    for (int s = 0; s < sides; s++) {
        twins[s] = twin_of(s);
        for (int i = 0; i < TWINS; i++) {
            (void)uct_ha_twins_join(&twins[s]);
        }
    }
}

static void twins_leave(int sides)
{
    for (int i = 0; i < sides * TWINS; i++) {
        uct_ha_twins_leave(&twins[i / TWINS]);
    }
}

static void open_all(void)
{
    for (int i = 0; i < EPS; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 10);
    }
}

static void exchange_all(void)
{
    for (int i = 0; i < EPS; i++) {
        am_exchange(i, 10);
    }
}

/* A rail goes with messages under way: those that were sent when it had fallen silent already. */
static void lose(int rail)
{
    uint64_t resolved = stats().replayed + stats().retired;

    fake_port_silently(rail, 0);
    for (int i = 0; i < EPS; i++) {
        am_post(i % 2, i, 5);
    }
    fake_port(rail, 0);
    for (int i = 0; i < EPS; i++) {
        am_post(!(i % 2), i, 5);
    }
    pump_until(am_all_here());
    flush_all();
    assert_true(stats().replayed + stats().retired > resolved);
}

/* Two queue pairs a peer, so one for each connection, before and after each failover. */
static void test_cold_ones_move(void **state)
{
    (void)state;
    world_open(1300, "STANDBYS=0 STANDBY_WARN=100ms");
    twins_join(2);
    open_all();
    pump_ms(300);
    assert_int_equal(stats().cold, 2 * EPS);
    assert_int_equal(stats().standbys, 0);
    assert_int_equal(fake_objects().rcs, 2 * EPS);
    assert_int_equal(stats().unprotected, 0); /* all is as it should be */

    for (int round = 0; round < 4; round++) {
        lose(round % 2 == 0 ? A0 : A1);
        pump_until(stats().failovers == 2u * EPS * (unsigned)(round + 1));
        fake_port(round % 2 == 0 ? A0 : A1, 1);
        exchange_all();
        pump_until(fake_objects().rcs == 2 * EPS);
        pump_ms(100);
        assert_int_equal(fake_objects().rcs, 2 * EPS);
        assert_int_equal(stats().standbys, 0);
    }
    assert_int_equal(stats().ep_errors, 0);
    pump_until(stats().unprotected == 0);
    fake_port(A0, 0); /* the other rail, which nobody uses: now there is nothing to move to */
    pump_until(stats().unprotected > 0);
    twins_leave(2);
}

/* Silence makes nobody leave the only lane there is; so the other one is built, and then it is left. */
static void test_cold_one_leaves_a_silent_rail(void **state)
{
    uint64_t start;

    (void)state;
    world_open(1301, "STANDBYS=0 TIMEOUT=18 RTO=20s RTO_MAX=20s HEARTBEAT=20ms");
    twins_join(2);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    pump_ms(300); /* the other one answers, too */
    assert_int_equal(stats().standbys, 0);
    fake_port_silently(A0, 0);
    start = now_ns();
    am_post(0, 0, 5);
    pump_until(am_all_here());
    assert_soon(start, 3000000000ull); /* the card would take four times as long */
    assert_int_equal(stats().failovers, 2);
    assert_int_equal(stats().ep_errors, 0);
    fake_port_silently(A0, 1);
    am_exchange(0, 10);
    twins_leave(2);
}

/* Who wants a standby has one: the other side follows. */
static void test_cold_one_follows(void **state)
{
    (void)state;
    world_open(1302, "STANDBYS=0");
    twins_join(1);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    assert_int_equal(stats().cold, 1);
    fake_port(A0, 0);
    am_exchange(0, 10);
    pump_until(stats().failovers == 2);
    twins_leave(1);
}

/* The first STANDBYS connections have one, whoever has twins; without a twin all have. */
static void test_first_ones_are_not_cold(void **state)
{
    (void)state;
    world_open(1303, "STANDBYS=36"); /* of which the twins have 32 */
    twins_join(2);
    open_all();
    pump_until(stats().standbys == 4);
    pump_ms(100);
    assert_int_equal(stats().standbys, 4);
    assert_int_equal(stats().cold, 2 * EPS - 4);
    lose(A0);
    pump_until(stats().failovers == 2 * EPS);
    twins_leave(2);
    world_close();
    (void)glue_setup(NULL);

    world_open(1304, "STANDBYS=0");
    open_all();
    wait_standbys(2 * EPS);
    assert_int_equal(stats().cold, 0);
}

/* Work goes back to the rail that UCX chose, for which a lane is built there; then there is one again. */
static void test_cold_ones_go_back(void **state)
{
    (void)state;
    world_open(1305, "STANDBYS=0 FAILBACK=100ms");
    twins_join(2);
    open_all();
    lose(A0);
    pump_until(stats().failovers == 2 * EPS);
    fake_port(A0, 1);
    pump_until(stats().failbacks == 2 * EPS);
    exchange_all();
    pump_until(fake_objects().rcs == 2 * EPS);
    pump_ms(300);
    assert_int_equal(fake_objects().rcs, 2 * EPS);
    assert_int_equal(stats().standbys, 0);
    assert_int_equal(stats().ep_errors, 0);
    twins_leave(2);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_cold_ones_move),    GLUE_TEST(test_cold_one_leaves_a_silent_rail),
    GLUE_TEST(test_cold_one_follows),  GLUE_TEST(test_first_ones_are_not_cold),
    GLUE_TEST(test_cold_ones_go_back),
};

int glue_cold(void)
{
    return cmocka_run_group_tests_name("cold", tests, NULL, NULL);
}
