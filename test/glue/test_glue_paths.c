/* SPDX-License-Identifier: BSD-3-Clause */

/* Ways between rails that change: an address that is another one afterwards, or at
 * another place in its table; hardware addresses that nobody announces. */

#include <stdlib.h>

#include "glue_rma.h"
#include "glue_tests.h"

static void open_pair(uint64_t seed, const char *settings, unsigned standbys)
{
    world_open(seed, settings);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    pump_until(stats().pairs == 2 && stats().standbys == standbys);
}

static void work_and_check(void)
{
    am_post(0, 0, 10);
    rma_put(0, 0, 10);
    am_post(1, 0, 10);
    rma_put(1, 0, 10);
    flush_all();
    pump_until(am_all_here());
    rma_check(0);
    rma_check(1);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
}

/* Every rail in turn gets another address, under work; afterwards each is of use again,
 * which the cut of the other one shows. */
static void test_address_changes(void **state)
{
    (void)state;
    open_pair(100, "HEARTBEAT=10ms", 2);
    for (int rail = A0; rail <= B1; rail++) {
        int other = rail ^ 1;

        am_post(0, 0, 10);
        fake_readdress(rail, 20 + (unsigned)rail);
        work_and_check();
        wait_standbys(2);
        fake_port(other, 0);
        work_and_check();
        fake_port(other, 1);
        wait_standbys(2);
    }
}

/* Its port was looked at in a bad moment, and no event will come: it is looked at again. */
static void test_look_that_fails(void **state)
{
    (void)state;
    open_pair(105, "HEARTBEAT=10ms", 2);
    fake_fail(FAKE_CALL_PORT_QUERY, A1, -5, 1);
    fake_readdress(A1, 22);
    pump_until(stats().standbys < 2);
    wait_standbys(2);
    fake_port(A0, 0);
    work_and_check();
}

/* Nobody else can tell the peer. */
static void test_address_of_the_only_rail_changes(void **state)
{
    (void)state;
    open_pair(101, "ENABLE_BACKUP=n HEARTBEAT=10ms", 0);
    fake_readdress(A0, 21);
    work_and_check();
    fake_readdress(B0, 22);
    work_and_check();
}

/* No traffic and no probes: the change itself has to be enough. */
static void test_address_of_an_idle_standby_changes(void **state)
{
    (void)state;
    open_pair(106, "HEARTBEAT=0", 2);
    flush_all();
    for (int rail = A1; rail <= B1; rail += 2) {
        fake_readdress(rail, 30 + (unsigned)rail);
        pump_until(stats().standbys == 0);
        wait_standbys(2);
    }
    assert_int_equal(stats().failovers, 0);
    fake_port(A0, 0);
    work_and_check();
}

/* The address is the same, its index is not: lanes go on, datagrams have to follow. */
static void test_address_moves_in_its_table(void **state)
{
    (void)state;
    open_pair(102, "HEARTBEAT=100ms", 2);
    for (int rail = A0; rail <= B1; rail++) {
        fake_move_gid(rail);
    }
    pump_ms(1500);
    work_and_check();
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().standbys, 2);
}

/* The port comes back with another hardware address: its peer's handle is stale. */
static void test_hardware_address_changes_with_a_flap(void **state)
{
    uint64_t start;

    (void)state;
    open_pair(103, "HEARTBEAT=10ms", 2);
    for (int rail = A0; rail <= B1; rail++) {
        fake_port(rail, 0);
        work_and_check();
        fake_change_mac(rail);
        start = now_ns();
        fake_port(rail, 1);
        wait_standbys(2);
        assert_soon(start, 5000000000ull);
        work_and_check();
    }
}

/* ... or without any event: silence, until the way is looked up again. */
static void test_hardware_address_changes_silently(void **state)
{
    (void)state;
    open_pair(104, "HEARTBEAT=10ms", 2);
    fake_change_mac(B0);
    work_and_check();
    pump_until(stats().failovers == 2);
    wait_standbys(2);
    fake_port(A1, 0);
    work_and_check();
}

/* A neighbour that does not answer takes long to look up, again and again; meanwhile the
 * other rail gets its lanes. */
static void test_silent_neighbour_holds_nobody_up(void **state)
{
    uint64_t start;

    (void)state;
    open_pair(105, "HEARTBEAT=10ms", 2);
    fake_set(A0, FAKE_BLOCK_MS, 6000);
    fake_port(A0, 0);
    work_and_check();
    fake_port_silently(B0, 0);
    fake_port(A0, 1);
    pump_ms(100); /* the look-up is under way */
    start = now_ns();
    fake_event_qp_fatal(A1);
    work_and_check();
    assert_soon(start, 4000000000ull);
    fake_set(A0, FAKE_BLOCK_MS, 0);
    fake_port_silently(B0, 1);
    wait_standbys(2);
}

/* The way to the peer takes longer to find than a handle lives without an answer. */
static void test_slow_way(void **state)
{
    const char *asked = getenv("GLUE_SLOW_WAY"); /* milliseconds; by hand: 5000 */
    unsigned    ms    = asked == NULL ? 1200 : (unsigned)atoi(asked);
    uint64_t    start, took;

    (void)state;
    redundant_open(1100, "HEARTBEAT=100ms");
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    fake_set(A0, FAKE_LOOKUP_MS, ms);
    start = now_ns();
    fake_port(A0, 1);
    wait_standbys(2);
    took = now_ns() - start;
    if (asked != NULL) {
        print_message("a standby again after %.1f s\n", (double)took * 1e-9);
        assert_true(took < ms * 1000000ull + 3000000000ull);
    }
    assert_true(took > ms * 1000000ull);
    fake_set(A0, FAKE_LOOKUP_MS, 0);
    redundant_check();
}

/* The same where the rail was silent, and the first way that is found gets no answer at once: else each side throws
 * its own away while the other one looks for its, some 25 times. */
static void test_slow_way_after_silence(void **state)
{
    uint64_t lookups;

    (void)state;
    redundant_open(1101, "HEARTBEAT=100ms");
    fake_port_silently(A0, 0);
    pump_until(stats().failovers == 2);
    fake_set(A0, FAKE_LOOKUP_MS, 1200);
    fake_set(B0, FAKE_LOOKUP_MS, 1500);
    pump_ms(1500);
    fake_port_silently(A0, 1);
    lookups = fake_counts().lookups; /* one of each side is under way */
    wait_standbys(2);
    assert_true(fake_counts().lookups <= lookups + 2);
    fake_set(A0, FAKE_LOOKUP_MS, 0);
    fake_set(B0, FAKE_LOOKUP_MS, 0);
    redundant_check();
}

/* A standby is built by what the first rail carries, before anybody has looked for a way by its own. Found none, it
 * protects nobody, so it is no standby; and it comes back with the way. */
static void test_standby_without_a_way(void **state)
{
    (void)state;
    world_open(1102, "HEARTBEAT=50ms");
    fake_set(A1, FAKE_LOOKUP_MS, 600);
    fake_set(B1, FAKE_LOOKUP_MS, 600);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 2);
    wait_standbys(2);
    fake_port_silently(A1, 0); /* neither side has found the way yet */
    pump_until(stats().standbys == 0);
    fake_port_silently(A1, 1);
    wait_standbys(2);
    assert_int_equal(stats().failovers, 0);
    rma_open();
    redundant_check();
}

/* Where the peer says that its port is down no queue pair is built: it would be of no use, and ask for its other end
 * until the port is up again. */
static void test_nothing_is_built_where_the_peer_is_down(void **state)
{
    uint32_t qpn;
    uint64_t sent;

    (void)state;
    open_pair(109, "HEARTBEAT=0 COOLDOWN=0", 2);
    qpn = fake_last_qpn(A0);
    fake_port(B0, 0);
    work_and_check();
    pump_until(stats().failovers == 2);
    pump_ms(300);
    sent = stats().ctl_tx_state;
    pump_ms(300);
    assert_int_equal(fake_last_qpn(A0), qpn);
    assert_int_equal(stats().ctl_tx_state, sent);
    assert_int_equal(stats().standbys, 0);
    fake_port(B0, 1);
    wait_standbys(2);
    fake_port(A1, 0);
    work_and_check();
    assert_int_equal(stats().failovers, 4);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_address_changes),
    GLUE_TEST(test_look_that_fails),
    GLUE_TEST(test_address_of_the_only_rail_changes),
    GLUE_TEST(test_address_of_an_idle_standby_changes),
    GLUE_TEST(test_address_moves_in_its_table),
    GLUE_TEST(test_hardware_address_changes_with_a_flap),
    GLUE_TEST(test_hardware_address_changes_silently),
    GLUE_TEST(test_silent_neighbour_holds_nobody_up),
    GLUE_TEST(test_slow_way),
    GLUE_TEST(test_slow_way_after_silence),
    GLUE_TEST(test_standby_without_a_way),
    GLUE_TEST(test_nothing_is_built_where_the_peer_is_down),
};

int glue_paths(void)
{
    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
