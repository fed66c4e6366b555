/* SPDX-License-Identifier: BSD-3-Clause */

/* Many failovers, many endpoints: nothing is left behind, nobody is trampled down. */

#include "glue_tests.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define EPS_MANY 128

static void open_endpoints(int count)
{
    for (int i = 0; i < count; i++) {
        ep_open(0, i);
        am_post(0, i, 2);
        if (i % 16 == 15) {
            pump_until(am_all_here());
        }
    }
    pump_until(am_all_here());
    wait_standbys(2 * (unsigned)count);
}

/* ---- after thousands of failovers ------------------------------------------------ */

struct footprint {
    struct fake_objects objects;
    int                 fds;
    size_t              heap;
};

/* Rounding of large blocks to pages, tables that grow with how much was under way at most: seen are 70 KiB after
 * 1000 failovers, 270 KiB after 12000, and no more. A leak of a lane, or of a way to a peer, is more. */
#define HEAP_SLACK 524288

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int  fds = 0;

    while (readdir(dir) != NULL) {
        fds++;
    }
    closedir(dir);
    return fds;
}

/* Queue pairs rest for two seconds before they go, and so does their room in the
 * completion queues: how far those have grown depends on the speed of this machine. */
static struct footprint footprint(unsigned endpoints)
{
    struct footprint print;

    flush_all();
    wait_standbys(2 * endpoints);
    pump_until(fake_objects().rcs == (int)(4 * endpoints) && stats().standbys == 2 * endpoints);
    print.objects = fake_objects();
    print.fds     = count_fds();
    print.heap    = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (print.heap > 0) { /* sanitizers do not tell */
        print.heap -= fake_cq_bytes();
    }
    return print;
}

/* Work on every endpoint, one rail after the other. */
static void cut_and_mend(unsigned endpoints, unsigned count)
{
    for (unsigned cut = 0; cut < count; cut++) {
        int rail = (int)(cut % 2 + 2 * (cut / 2 % 2)); /* a0 a1 b0 b1 */

        for (int i = 0; i < (int)endpoints; i++) {
            am_post(i % 2, i, 1);
        }
        fake_port(rail, 0);
        pump_until(am_all_here() && stats().standbys == 0); /* all have seen it */
        fake_port(rail, 1);
        wait_standbys(2 * endpoints);
    }
}

static void test_nothing_is_left_behind(void **state)
{
    const char      *wanted = getenv("GLUE_FAILOVERS");
    unsigned         eps    = EPS_MAX;
    unsigned         cuts   = (wanted == NULL ? 2000 : (unsigned)atoi(wanted)) / (2 * eps) + 1;
    struct footprint before, after;

    (void)state;
    world_open(110, "HEARTBEAT=5ms RX_QUEUE_INIT=32");
    for (int i = 0; i < (int)eps; i++) {
        ep_open(i % 2, i);
        ep_open(!(i % 2), i);
        am_exchange(i, 4);
    }
    wait_standbys(2 * eps);
    cut_and_mend(eps, 4); /* what is made once is made now */
    before = footprint(eps);
    cut_and_mend(eps, cuts);
    after = footprint(eps);
    print_message("%lu failovers; queue pairs %d, %d; registrations %d, %d; objects %d, %d; "
                  "descriptors %d, %d; heap %zu, %zu\n",
                  stats().failovers, before.objects.rcs, after.objects.rcs, before.objects.mrs, after.objects.mrs,
                  before.objects.all, after.objects.all, before.fds, after.fds, before.heap, after.heap);
    assert_in_range(stats().failovers, 2 * eps * cuts, UINT64_MAX);
    assert_memory_equal(&before.objects, &after.objects, sizeof(before.objects));
    assert_int_equal(before.fds, after.fds);
    assert_in_range(after.heap, 0, before.heap + HEAP_SLACK);
}

/* ---- many endpoints ---------------------------------------------------------------- */

/* A rail comes back: its lanes are built a few at a time, while the others work. */
static void test_standbys_are_paced(void **state)
{
    uint64_t start;

    (void)state;
    world_open(111, "HEARTBEAT=10ms RX_QUEUE_LEN=16");
    open_endpoints(EPS_MANY);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2 * EPS_MANY);
    pump_ms(300); /* what was saved up is there again */
    fake_port(A0, 1);
    pump_until(stats().standbys > 0);
    start = now_ns();
    while (stats().standbys < 2 * EPS_MANY) {
        am_post(0, 0, 1);
        pump_until(am_all_here());
        keep_patience(start);
    }
    assert_true(stats().paced > 0);
    assert_true(now_ns() - start > 150000000ull);
}

/* ... but those who have nothing else are not held up. */
static void test_first_lanes_are_not_paced(void **state)
{
    uint64_t paced;

    (void)state;
    world_open(112, "HEARTBEAT=10ms RX_QUEUE_LEN=16 DEAD_PEER=20s");
    open_endpoints(EPS_MANY);
    for (int rail = A0; rail <= A1; rail++) {
        fake_port(rail, 0);
    }
    do { /* until all have noticed */
        paced = stats().paced;
        pump_ms(200);
    } while (stats().paced != paced);
    fake_port(A1, 1);
    pump_until(stats().pairs == 2 * EPS_MANY);
    assert_int_equal(stats().paced, paced);
    am_post(0, EPS_MANY - 1, 5);
    pump_until(am_all_here());
}

/* All endpoints go at once and as many come before anything was polled: the room in the
 * completion queue must not be given away before it is free. */
static void all_come_and_go(const char *settings)
{
    enum { PAIRS = 11 };

    world_open(113, "");
    side_close(0);
    side_close(1);
    assert_int_equal(fake_end(), 0);
    fake_begin(113);
    fake_limit_cqe(184);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fake_rail_add(world.names[i], (unsigned)i % 2, 1 + (unsigned)i / 2), i);
    }
    side_open(0, settings);
    side_open(1, settings);
    for (unsigned round = 0; round < 8; round++) {
        for (int i = 0; i < PAIRS; i++) {
            ep_open(0, i);
            am_post(0, i, 3);
        }
        pump_until(am_all_here());
        for (int i = 0; i < PAIRS; i++) {
            ep_close(0, i);
            world.side[0].sent[i] = world.side[1].received[i] = 0;
        }
        for (unsigned i = 0; i < round * 4; i++) {
            pump();
        }
    }
    assert_int_equal(stats().ep_errors, 0);
}

/* 8 + 4 + 2 completions each and 16 for all, of 184: the next ones have to wait. */
static void test_completions_of_the_dead_keep_their_room(void **state)
{
    (void)state;
    all_come_and_go("TX_QUEUE_LEN=16 RX_QUEUE_LEN=64 SRQ_LEN=0");
}

/* 2 each, 16 for all, and at most half of the queue for receives and lanes together. */
static void test_completions_beside_shared_receives(void **state)
{
    (void)state;
    all_come_and_go("TX_QUEUE_LEN=16 RX_QUEUE_LEN=64");
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_nothing_is_left_behind),
    GLUE_TEST(test_standbys_are_paced),
    GLUE_TEST(test_first_lanes_are_not_paced),
    GLUE_TEST(test_completions_of_the_dead_keep_their_room),
    GLUE_TEST(test_completions_beside_shared_receives),
};

int glue_many(void)
{
    return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
