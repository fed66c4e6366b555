/* SPDX-License-Identifier: BSD-3-Clause */

/* What is noticed by its silence, and what is not to be taken for silence. */

#include "glue_tests.h"

#include "core/ha_packet.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <string.h>
#include <unistd.h>

static void one_put(int s)
{
    struct side *side  = &world.side[s];
    uint64_t     value = 1;
    ucs_status_t status;

    status = uct_ep_put_short(side->ep[0], &value, sizeof(value), (uintptr_t)world.side[!s].memory, side->rkey.rkey);
    assert_true(status == UCS_OK || status == UCS_ERR_NO_RESOURCE);
}

/* The lane that follows a stuck one has an RTO of its own, though nothing has ended yet and a standby is ready. */
static void test_stuck_lane_is_left_once(void **state)
{
    (void)state;
    redundant_open(315, "RTO=2s RTO_MAX=2s");
    fake_set(A0, FAKE_STALL, 1000);
    fake_set(A1, FAKE_STALL, 1000);
    am_post(0, 0, 4);
    pump_until(stats().failovers == 2);
    fake_set(A0, FAKE_STALL, 0);
    wait_standbys(2);
    pump_ms(150); /* looked at every 100 ms */
    assert_int_equal(stats().failovers, 2);
    fake_set(A1, FAKE_STALL, 0);
    redundant_check();
    assert_int_equal(stats().failovers, 2);
}

/* Connections of this side that the timer looks at. */
static unsigned awake(int s)
{
    struct uct_ha_iface *iface = uct_ha_iface(world.side[s].iface);
    struct uct_ha_conn  *conn;
    unsigned             sum = 0;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    uct_ha_awake_collect(&iface->pairs.wakes);
    ucs_list_for_each (conn, &iface->pairs.wakes.awake, awake.link) {
        sum++;
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return sum;
}

/* Idle connections sleep: the timer does not look at them. One that posts is looked at, alone, and what is stuck there
 * is found though it has slept for longer than its RTO, and not before that. */
static void test_idle_connections_sleep(void **state)
{
    struct uct_ha_stats before;
    uint64_t            start;

    (void)state;
    world_open(317, "");
    for (int i = 0; i < 12; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 4);
    }
    wait_standbys(24);
    flush_all();
    pump_until(awake(0) == 0 && awake(1) == 0);
    pump_ms(500); /* the RTO is 400 ms */
    before = stats();
    fake_set(A0, FAKE_STALL, 1000);
    fake_set(A1, FAKE_STALL, 1000);
    start = now_ns();
    assert_int_equal(am_send(0, 7, SHORT, 8, NULL), UCS_OK);
    assert_int_equal(awake(0), 1); /* at once, not when it is found by a look at some of the others */
    assert_int_equal(uct_ep_flush(world.side[0].ep[7], 0, NULL), UCS_INPROGRESS); /* what is silent has no RTO */
    pump_until(stats().failovers > before.failovers);
    assert_true(now_ns() - start >= 400000000ull);
    fake_set(A0, FAKE_STALL, 0);
    fake_set(A1, FAKE_STALL, 0);
    pump_until(am_all_here());
    flush_all();
    wait_standbys(24);
    pump_until(awake(0) == 0 && awake(1) == 0);
    assert_int_equal(stats().ep_errors, 0);
}

/* Does side 0 wait for the peer's answer by this rail? */
static int waits(int slot)
{
    struct uct_ha_iface *iface = uct_ha_iface(world.side[0].iface);
    struct uct_ha_peer  *peer;
    int                  yes;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    peer = ucs_list_head(&iface->pairs.peers, struct uct_ha_peer, list);
    yes  = peer->rail[slot].waiting;
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return yes;
}

/* So often does the timer of side 0 look in so many milliseconds. */
static unsigned looks_in(unsigned ms)
{
    struct uct_ha_iface *iface = uct_ha_iface(world.side[0].iface);
    uint64_t             last  = 0;
    unsigned             sum   = 0;

    for (uint64_t end = now_ns() + ms * 1000000ull; now_ns() < end;) {
        pump_ms(1);
        pthread_mutex_lock(&iface->lanes.wake.lock);
        sum += iface->ctl.checked_at != last;
        last = iface->ctl.checked_at;
        pthread_mutex_unlock(&iface->lanes.wake.lock);
    }
    return sum;
}

/* Who only waits for an answer to a heartbeat has nothing to do before the next one. */
static void test_missing_answer_keeps_nobody_awake(void **state)
{
    (void)state;
    world_open(318, "HEARTBEAT=2s");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 4);
    wait_standbys(2);
    flush_all();
    pump_until(awake(0) == 0 && awake(1) == 0);
    fake_set(B0, FAKE_LOSE_CTL_OUT, 1000);
    pump_until(waits(0) && !waits(1));
    pump_ms(150);
    assert_true(waits(0));
    assert_true(looks_in(1200) <= 4); /* one at the start, one a second; not one in each tenth */
    fake_set(B0, FAKE_LOSE_CTL_OUT, 0);
    am_exchange(0, 4);
    assert_int_equal(stats().failovers, 0);
}

/* As when something has happened in between. */
static void rounds_disturb(struct uct_ha_iface *iface, int64_t by)
{
    pthread_mutex_lock(&iface->lanes.wake.lock);
    iface->ctl.check_at += (uint64_t)by;
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    pump_ms(500);
}

/* Of 200 looks. */
static unsigned rounds_apart(struct uct_ha_iface *iface)
{
    unsigned apart = 0;

    for (int i = 0; i < 200; i++) {
        pump_ms(2);
        pthread_mutex_lock(&iface->lanes.wake.lock);
        apart += iface->ctl.check_at != iface->ctl.heartbeat_at;
        pthread_mutex_unlock(&iface->lanes.wake.lock);
    }
    return apart;
}

/* Heartbeats and the look at who is awake take one wake-up of the thread, not one each. */
static void test_rounds_come_together(void **state)
{
    struct uct_ha_iface *iface;

    (void)state;
    world_open(320, "HEARTBEAT=100ms");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 4);
    wait_standbys(2);
    iface = uct_ha_iface(world.side[0].iface);
    rounds_disturb(iface, 30000000);
    assert_in_range(rounds_apart(iface), 0, 20);
    rounds_disturb(iface, -30000000);
    assert_in_range(rounds_apart(iface), 0, 20);
}

/* The rail answers and nobody tells of an error, but nothing ends: the RTO finds it, once. */
static void test_stuck_lane(void **state)
{
    (void)state;
    redundant_open(310, "");
    fake_set(A0, FAKE_STALL, 1000);
    am_post(0, 0, 20);
    rma_put(0, 0, 10);
    redundant_check();
    pump_until(stats().failovers == 2);
    fake_set(A0, FAKE_STALL, 0);
    wait_standbys(2);
    fake_set(B1, FAKE_STALL, 990); /* slow, but it moves */
    am_post(0, 0, 20);
    pump_ms(1500);
    assert_int_equal(stats().failovers, 2);
    fake_set(B1, FAKE_STALL, 0);
    redundant_check();
}

/* A card hangs, and so does who gives it a command: on the other rail heartbeats are
 * answered all the same, and the work goes there when it has been silent for too long. */
static void test_card_that_hangs(void **state)
{
    struct uct_ha_stats before;
    uint64_t            start;

    (void)state;
    world_open(316, "HEARTBEAT=10ms DEAD_PEER=2s");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 20);
    wait_standbys(2);
    pump_ms(200);
    fake_set(A0, FAKE_HANG_MS, 5000);
    fake_set(A0, FAKE_LOSE_CTL, 1000);
    fake_set(A0, FAKE_STALL, 1000);
    fake_set(B0, FAKE_STALL, 1000);
    before = stats();
    start  = now_ns();
    am_post(0, 0, 4);
    pump_until(stats().failovers == 2 && am_all_here());
    if (now_ns() - start < 4000000000ull) { /* it hangs still, and was not waited for */
        assert_true(stats().proofs_none > 0);
    }
    pump_until(stats().ctl_rx - before.ctl_rx > 60);
    assert_true(fake_counts().fences > 0); /* the other side's: this one hangs */
    assert_int_equal(stats().failovers, 2);
    fake_set(A0, FAKE_HANG_MS, 0);
    fake_set(A0, FAKE_STALL, 0);
    fake_set(B0, FAKE_STALL, 0);
    fake_set(A0, FAKE_LOSE_CTL, 0);
    am_exchange(0, 20);
    wait_standbys(2); /* it is one again, with buffers that the card does not know */
    assert_int_equal(stats().ep_errors, 0);
    am_exchange(0, 20);
}

/* A long operation may take longer than the RTO. */
static void test_long_operation(void **state)
{
    struct side   *side   = &world.side[0];
    size_t         length = 16u << 20;
    uct_iov_t      iov;
    struct counted done;

    (void)state;
    world_open(311, "");
    memory_open(length);
    ep_open(0, 0);
    am_post(0, 0, 4);
    pump_until(am_all_here());
    flush_all();
    wait_standbys(2);
    iov = (uct_iov_t){.buffer = side->memory, .length = length, .memh = side->memh, .count = 1};
    fake_set(A0, FAKE_STALL, 1000);
    assert_int_equal(uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)world.side[1].memory, side->rkey.rkey,
                                      count_completion(&done)),
                     UCS_INPROGRESS);
    pump_ms(750); /* the RTO is 400 ms, and the length adds 512 */
    assert_int_equal(stats().failovers, 0);
    fake_set(A0, FAKE_STALL, 0);
    pump_until(done.called == 1);
    assert_int_equal(done.status, UCS_OK); /* in time, or on the other lane: this network may be slow */
    flush_all();
    memory_close();
}

/* The rail loses half of its probes, and work on it stands still again and again. No probe is missed often enough, and
 * nothing lasts as long as the RTO. */
static void test_lossy_rail_is_left(void **state)
{
    uint64_t start = now_ns();

    (void)state;
    redundant_open(318, "LOSSY_RAIL=y HEARTBEAT=20ms HEARTBEAT_MISSES=1000 RTO=60s RTO_MAX=60s");
    pump_ms(500);
    assert_int_equal(stats().failovers, 0);
    fake_set(A0, FAKE_LOSE_CTL, 500);
    while (stats().failovers == 0) {
        fake_set(A0, FAKE_STALL, now_ns() / 70000000ull % 2 ? 1000 : 0);
        one_put(0);
        pump();
        keep_patience(start);
    }
    fake_set(A0, FAKE_STALL, 0);
    fake_set(A0, FAKE_LOSE_CTL, 0);
    redundant_check();
}

/* Its probes get lost, and its program hears nothing of the PUTs that arrive: the device
 * knows that the rail works. */
static void test_rail_that_only_carries_puts(void **state)
{
    uint64_t before, start;

    (void)state;
    redundant_open(312, "HEARTBEAT=250ms"); /* on a busy machine PUTs stand still for a while */
    fake_set(A0, FAKE_LOSE_CTL, 1000);
    fake_set(B0, FAKE_LOSE_CTL, 1000);
    before = start = now_ns();
    for (unsigned anew = 0; now_ns() - start < 3000000000ull || stats().heartbeats_missed <= 20;) {
        one_put(0);
        pump();
        if (now_ns() - before > 100000000ull && anew++ < 5 && stats().failovers > 0) {
            print_message("this machine stood still for too long\n");
            return;
        }
        before = now_ns();
    }
    assert_int_equal(stats().failovers, 0);
    pump_until(stats().failovers == 2); /* and that it is silent */
    flush_all();
}

/* Without heartbeats it is UCX's own keepalive that asks. */
static void test_check_without_heartbeats(void **state)
{
    struct side *side = &world.side[0];

    (void)state;
    world_open(313, "HEARTBEAT=0 DEAD_PEER=1s");
    ep_open(0, 0);
    am_post(0, 0, 4);
    pump_until(am_all_here());
    flush_all();
    for (int i = 0; i < 40; i++) {
        assert_int_equal(uct_ep_check(side->ep[0], 0, NULL), UCS_OK);
        pump_ms(50);
    }
    assert_int_equal(side->errors, 0);
    fake_port_silently(B0, 0);
    fake_port_silently(B1, 0);
    for (int i = 0; i < 300 && side->errors == 0; i++) {
        (void)uct_ep_check(side->ep[0], 0, NULL);
        pump_ms(50);
    }
    assert_int_equal(side->errors, 1);
    assert_int_equal(side->error, UCS_ERR_ENDPOINT_TIMEOUT);
}

static void progress_alone(int s, unsigned ms)
{
    uint64_t start = now_ns();

    while (now_ns() - start < ms * 1000000ull) {
        (void)uct_worker_progress(world.side[s].worker);
    }
}

/* Both rails fail one after the other, and the peer's program computes for longer than DEAD_PEER: a
 * new lane needs its progress. It answers all the time, so it is waited for. */
static void test_peer_computes_without_a_lane(void **state)
{
    (void)state;
    redundant_open(314, "HEARTBEAT=20ms DEAD_PEER=2s"); /* an answer within 1 s is a sign of life */
    am_post(0, 0, 8);
    fake_port(A0, 0);
    progress_alone(0, 200);
    fake_port(A1, 0);
    fake_port(A0, 1);
    progress_alone(0, 5000);
    assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
    redundant_check();
    fake_port(A1, 1);
    wait_standbys(2);
}

/* States as the network sees them: by carrier, said for the first time and said again. */
static unsigned states[HA_CARRIERS][2];

static void count_state(const void *data, size_t length)
{
    struct ha_packet_header header;

    if (ha_packet_decode_header(data, length, &header) == 0 && header.type == HA_PACKET_STATE) {
        states[header.carrier][(header.flags & HA_PACKET_WANT) != 0]++;
    }
}

/* What is said first goes by the rail that answers, what is said again by the other one as well. */
static void test_states_go_everywhere_again(void **state)
{
    (void)state;
    redundant_open(260, "HEARTBEAT=20ms");
    fake_port_silently(A1, 0);
    pump_until(stats().standbys == 0);
    pump_ms(500); /* both sides know */
    memset(states, 0, sizeof(states));
    fake_on_datagram(count_state);
    fake_set(A0, FAKE_LOSE_CTL, 500);
    for (int i = 1; i < 9; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 5);
    }
    fake_set(A0, FAKE_LOSE_CTL, 0);
    fake_on_datagram(NULL);
    assert_true(states[0][0] > 0 && states[0][1] > 0);
    assert_int_equal(states[1][0], 0);
    assert_true(states[1][1] > 0);
    fake_port_silently(A1, 1);
    wait_standbys(18);
}

static void lose_control(unsigned per_mille)
{
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LOSE_CTL, per_mille);
    }
}

/* This process comes to a stand in the middle of a failover, for longer than that may take: nobody could have kept
 * the deadline, so it is not looked at before the pause is forgiven. */
static void test_own_pause_is_forgiven(void **state)
{
    pthread_mutex_t *lock;

    (void)state;
    redundant_open(969, "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=2s");
    lock = &uct_ha_iface(world.side[0].iface)->lanes.wake.lock;
    lose_control(1000);
    fake_port(A0, 0);
    am_post(0, 0, 4);
    pump_ms(200);
    pthread_mutex_lock(lock); /* which the asynchronous thread wants */
    usleep(2500000);
    lose_control(0);
    pthread_mutex_unlock(lock);
    redundant_check();
    pump_until(stats().failovers == 2);
    assert_int_equal(stats().ep_errors, 0);
}

int glue_detect(void)
{
    const struct CMUnitTest tests[] = {
        GLUE_TEST(test_stuck_lane),
        GLUE_TEST(test_idle_connections_sleep),
        GLUE_TEST(test_missing_answer_keeps_nobody_awake),
        GLUE_TEST(test_rounds_come_together),
        GLUE_TEST(test_stuck_lane_is_left_once),
        GLUE_TEST(test_card_that_hangs),
        GLUE_TEST(test_long_operation),
        GLUE_TEST(test_rail_that_only_carries_puts),
        GLUE_TEST(test_lossy_rail_is_left),
        GLUE_TEST(test_check_without_heartbeats),
        GLUE_TEST(test_peer_computes_without_a_lane),
        GLUE_TEST(test_states_go_everywhere_again),
        GLUE_TEST(test_own_pause_is_forgiven),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
