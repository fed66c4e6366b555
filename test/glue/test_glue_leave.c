/* SPDX-License-Identifier: BSD-3-Clause */

/* How programs leave while there is work, each side on a thread of its own. */

#include "glue_tests.h"

#include <pthread.h>
#include <string.h>

static int      left[2];       /* atomic: this side has closed its interface */
static uint32_t taken[2];      /* messages, before it began to */
static uint32_t sent_until[2]; /* likewise */

static void *close_in_the_middle(void *arg)
{
    int s = (int)(intptr_t)arg;

    for (unsigned i = 0; i < 40; i++) {
        (void)am_send(s, 0, (enum how)(i % 2), i * 50, NULL);
        (void)uct_worker_progress(world.side[s].worker);
    }
    ep_close(s, 0);
    taken[s]      = world.side[s].received[0];
    sent_until[s] = world.side[s].sent[0];
    side_leave(s);
    __atomic_store_n(&left[s], 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Both leave at once, with work under way: what was sent has arrived, and
 * neither waits for the other one for ever. */
static void test_both_leave_at_once(void **state)
{
    pthread_t threads[2];
    uint64_t  start;

    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        world_open(9000 + round, "");
        ep_open(0, 0);
        ep_open(1, 0);
        if (round % 2) {
            am_exchange(0, 4);
        }
        start = now_ns();
        for (intptr_t s = 0; s < 2; s++) {
            assert_int_equal(pthread_create(&threads[s], NULL, close_in_the_middle, (void *)s), 0);
        }
        for (int s = 0; s < 2; s++) {
            pthread_join(threads[s], NULL);
        }
        assert_soon(start, 20000000000ull);
        assert_int_equal(world.side[0].errors + world.side[1].errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* One leaves while the other one is still sending to it: one error there, every
 * operation ends once. */
static void test_leave_while_peer_sends(void **state)
{
    pthread_t thread;
    uint64_t  start;
    unsigned  sent = 0;

    (void)state;
    world_open(91, "DEAD_PEER=2s");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    wait_standbys(2);
    left[1] = 0;
    assert_int_equal(pthread_create(&thread, NULL, close_in_the_middle, (void *)1), 0);
    do {
        sent += am_send(0, 0, BCOPY, 100, NULL) == UCS_OK;
        (void)uct_worker_progress(world.side[0].worker);
    } while (!__atomic_load_n(&left[1], __ATOMIC_ACQUIRE));
    pthread_join(thread, NULL);
    assert_true(sent > 0);
    assert_int_equal(world.side[1].received[0], taken[1]);  /* nobody calls a program that leaves */
    pump_until(world.side[0].received[0] == sent_until[1]); /* and what it had sent comes */
    start = now_ns();
    while (world.side[0].errors == 0) {
        (void)am_send(0, 0, BCOPY, 100, NULL);
        (void)uct_worker_progress(world.side[0].worker);
        keep_patience(start);
    }
    flush_all_of(0);
    assert_int_equal(world.side[0].errors, 1);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_both_leave_at_once),
    GLUE_TEST(test_leave_while_peer_sends),
};

int glue_leave(void)
{
    return cmocka_run_group_tests_name("leave", tests, NULL, NULL);
}
