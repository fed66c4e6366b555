/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that are killed, come back, or never answer: nothing of them stays, and the
 * others do not wait for them. */

#include "glue_tests.h"

#include "base/now.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "pair/tell.h"
#include "uct/iface.h"

#include <string.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>

static struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static unsigned length_of(int s, const ucs_list_link_t *list)
{
    const ucs_list_link_t *link;
    unsigned               length = 0;

    pthread_mutex_lock(&iface_of(s)->lanes.wake.lock);
    for (link = list->next; link != list; link = link->next) {
        length++;
    }
    pthread_mutex_unlock(&iface_of(s)->lanes.wake.lock);
    return length;
}

static unsigned conns_of(int s)
{
    return length_of(s, &iface_of(s)->pairs.conns);
}

static unsigned peers_of(int s)
{
    return length_of(s, &iface_of(s)->pairs.peers);
}

/* Side 0 ends as by SIGKILL: nothing that it says at its end arrives. */
static void kill_side_0(void)
{
    fake_port_silently(A0, 0);
    fake_port_silently(A1, 0);
    ep_close(0, 0);
    side_close(0);
    fake_port_silently(A0, 1);
    fake_port_silently(A1, 1);
    world.side[0].sent[0] = world.side[1].received[0] = 0;
}

/* ---- what stays behind --------------------------------------------------------------- */

#define MORTAL "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=1s"

/* A server whose clients only send, and are killed: it has no endpoint that would tell. */
static void test_killed_clients(void **state)
{
    (void)state;
    world_open(200, MORTAL);
    side_close(0);
    for (unsigned round = 0; round < 4; round++) {
        side_open(0, MORTAL);
        ep_open(0, 0);
        am_post(0, 0, 10);
        pump_until(am_all_here());
        flush_all_of(0);
        kill_side_0();
        pump_until(fake_objects().rcs == 0);
        assert_int_equal(conns_of(1), 0);
        assert_int_equal(stats().pairs, 0);
    }
    pump_until(peers_of(1) == 0); /* a while: they might ask something yet */
}

/* ---- a partition that outlasts the patience ----------------------------------------------- */

/* A copy: it changes all the time. */
static struct uct_ha_peer peer_of(int s)
{
    struct uct_ha_peer copy;

    pthread_mutex_lock(&iface_of(s)->lanes.wake.lock);
    copy = *uct_ha_peer_find(&iface_of(s)->pairs, iface_of(!s)->pairs.cookie);
    pthread_mutex_unlock(&iface_of(s)->lanes.wake.lock);
    return copy;
}

static void open_pair(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    wait_standbys(2);
    flush_all();
}

static void part(int up)
{
    for (int rail = A0; rail <= A1; rail++) {
        fake_port_silently(rail, up);
    }
}

/* Both have given each other up, and both live: new endpoints work, whoever asks first.
 * What has failed stays failed. */
static void test_lost_and_found(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        open_pair(210 + (uint64_t)first, MORTAL);
        part(0);
        pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
        assert_true(peer_of(0).lost && peer_of(1).lost);
        part(1);
        if (first == 0) {
            ep_close(0, 0);
            ep_close(1, 0);
            pump_until(conns_of(0) + conns_of(1) == 0);
        }
        ep_open(first, 1);
        am_post(first, 1, 4);
        pump_until(am_all_here());
        ep_open(!first, 1);
        am_exchange(1, 20);
        assert_false(peer_of(0).lost || peer_of(1).lost);
        pump_until(stats().standbys == 2);
        fake_port(A0, 0);
        am_exchange(1, 20);
        assert_int_equal(world.side[0].errors + world.side[1].errors, 2);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Only one of two has given the other one up: that one is told, too, and soon, although it waits for nothing, and
 * whatever the first one has done meanwhile. */
static void one_sided(uint64_t seed, int closes, int sends)
{
    uint64_t start;

    world_open(seed, MORTAL);
    side_close(1);
    side_open(1, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=30s");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    wait_standbys(2);
    flush_all();
    part(0);
    pump_until(world.side[0].errors == 1);
    assert_int_equal(world.side[1].errors, 0);
    if (closes) {
        ep_close(0, 0);
        ep_open(0, 1); /* and tries again at once: else it would forget the peer as well */
    }
    part(1);
    start = now_ns();
    if (sends) {
        (void)am_send(1, 0, SHORT, 8, NULL);
    }
    pump_until(world.side[1].errors == 1);
    assert_int_equal(world.side[1].error, UCS_ERR_CONNECTION_RESET);
    assert_soon(start, 10000000000ull); /* a third of its own time */
}

static void test_one_sided_end(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        one_sided(214 + (uint64_t)i, i / 2, i % 2);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* Nobody asks where the rails of a lost peer are, whatever becomes of our own. */
static void test_lost_is_not_looked_for(void **state)
{
    (void)state;
    open_pair(212, MORTAL);
    fake_port_silently(B0, 0);
    fake_port_silently(B1, 0);
    pump_until(world.side[0].errors == 1);
    pump_until(uct_ha_now() > peer_of(0).last_rx + 5500000000ull); /* what it said last may have an answer */
    fake_port(A0, 0);
    fake_port(A0, 1);
    pump_until(peer_of(0).rail[0].way == NULL);
    pump_ms(300);
    assert_int_equal(peer_of(0).rail[0].retry_at, 0);
    assert_int_equal(peers_of(0), 1); /* an endpoint is still held */
    ep_close(0, 0);
    pump_until(peers_of(0) == 0);
    fake_port_silently(B0, 1);
    fake_port_silently(B1, 1);
    ep_close(1, 0);
    pump_until(conns_of(1) == 0);
    ep_open(0, 1); /* numbers go on where they were */
    am_post(0, 1, 4);
    pump_until(am_all_here());
    assert_int_equal(ucs_list_head(&iface_of(0)->pairs.conns, struct uct_ha_conn, list)->sn, 1);
}

/* ---- one rail is silent from the start ----------------------------------------------------- */

#define MANY 20

/* Each attempt on the silent rail blocks for long: the other one does not wait for that. */
static void test_silent_rail_holds_nobody_up(void **state)
{
    uint64_t start;

    (void)state;
    world_open(220, "");
    fake_set(A0, FAKE_BLOCK_MS, 500);
    fake_set(B0, FAKE_BLOCK_MS, 500);
    fake_port_silently(A0, 0);
    start = now_ns();
    for (int i = 0; i < MANY; i++) {
        ep_open(0, i);
        am_post(0, i, 1);
    }
    pump_until(am_all_here());
    assert_soon(start, 8000000000ull);                            /* one after the other it is 10 s */
    pump_until(peer_of(0).rail[0].bad && peer_of(1).rail[0].bad); /* no more attempts */
    fake_set(A0, FAKE_BLOCK_MS, 0);
    fake_set(B0, FAKE_BLOCK_MS, 0);
    fake_port_silently(A0, 1);
    wait_standbys(2 * MANY);
}

/* ---- what is said of it ------------------------------------------------------------------- */

static unsigned failures_said;

static ucs_log_func_rc_t count_failures(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                                        const ucs_log_component_config_t *config, const char *message, va_list args)
{
    (void)file, (void)line, (void)function, (void)config, (void)args;
    failures_said += level == UCS_LOG_LEVEL_ERROR && strstr(message, "failed:") != NULL;
    return UCS_LOG_FUNC_RC_STOP;
}

/* Once for all endpoints of a peer, again after a while though there was no pause in
 * between; another peer's failure is not hidden by that. */
static void test_failure_is_said_per_peer(void **state)
{
    ucs_log_level_t    level = ucs_global_opts.log_component.log_level;
    struct uct_ha_conn mine, other;
    struct uct_ha_peer peer[2];

    (void)state;
    open_pair(230, "");
    pthread_mutex_lock(&iface_of(0)->lanes.wake.lock);
    mine = other = *ucs_list_head(&iface_of(0)->pairs.conns, struct uct_ha_conn, list);
    peer[0] = peer[1] = *mine.peer;
    pthread_mutex_unlock(&iface_of(0)->lanes.wake.lock);
    mine.peer     = &peer[0];
    other.peer    = &peer[1];
    failures_said = 0;
    ucs_log_push_handler(count_failures);
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_ERROR;
    uct_ha_tell_failure(&mine, HA_FAIL_PEER_DEAD);
    peer[0].told_at -= 4000000000ull;
    uct_ha_tell_failure(&mine, HA_FAIL_PEER_DEAD);
    assert_int_equal(failures_said, 1);
    uct_ha_tell_failure(&other, HA_FAIL_PEER_DEAD);
    assert_int_equal(failures_said, 2);
    peer[0].told_at -= 2000000000ull;
    uct_ha_tell_failure(&mine, HA_FAIL_PEER_DEAD);
    assert_int_equal(failures_said, 3);
    ucs_log_pop_handler();
    ucs_global_opts.log_component.log_level = level;
}

/* A peer that has no receive is not a rail that fails. */
static void test_not_ready_blames_no_rail(void **state)
{
    uint64_t           now = uct_ha_now();
    struct uct_ha_peer peer;

    (void)state;
    open_pair(231, "COOLDOWN=1s COOLDOWN_MAX=1s");
    peer = peer_of(0);
    assert_int_equal(uct_ha_peer_rail_failed(&peer, 0, HA_CAUSE_NOT_READY, now, now), 0);
    assert_true(uct_ha_peer_rail_failed(&peer, 0, HA_CAUSE_COMPLETION, now, now) > 0);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_killed_clients),
    GLUE_TEST(test_lost_and_found),
    GLUE_TEST(test_one_sided_end),
    GLUE_TEST(test_lost_is_not_looked_for),
    GLUE_TEST(test_failure_is_said_per_peer),
    GLUE_TEST(test_not_ready_blames_no_rail),
    GLUE_TEST(test_silent_rail_holds_nobody_up),
};

int glue_peers(void)
{
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
