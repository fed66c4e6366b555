/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Each side on a thread of its own, traffic of every kind, and a third party
 * that breaks and mends one rail at a time, in every way there is. At least one
 * rail stays good, so nothing may be lost, and no endpoint may end.
 */

#include "glue_tests.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define SOAK_EPS 3

static struct {
    int      stop;  /* no new work */
    int      ended; /* threads that have no work left */
    unsigned places[2];
} soak;

/* Work of a side until it is told to stop. PUTs go to a ring of places, so
 * their number of executions says nothing here; each message counts. */
static void work(int s, unsigned *random)
{
    struct side *side = &world.side[s];
    uct_iov_t    iov;

    for (int i = 0; i < SOAK_EPS; i++) {
        *random = *random * 1664525u + 1013904223u;
        switch (*random >> 28) {
        case 0:
            iov = (uct_iov_t){.buffer = rma_source(s, 0), .length = PLACE_LEN, .memh = side->memh, .count = 1};
            (void)uct_ep_put_zcopy(side->ep[i], &iov, 1, (uintptr_t)rma_place(!s, 0), side->rkey.rkey, NULL);
            break;
        case 1:
            iov = (uct_iov_t){.buffer = rma_source(s, 2), .length = PLACE_LEN, .memh = side->memh, .count = 1};
            (void)uct_ep_get_zcopy(side->ep[i], &iov, 1, (uintptr_t)rma_source(!s, 0), side->rkey.rkey, NULL);
            break;
        case 2:
            (void)uct_ep_fence(side->ep[i], 0);
            break;
        default:
            (void)am_send(s, i, (enum how)(*random >> 20 & 1), *random >> 8 & 1023, NULL);
            break;
        }
    }
}

static void *run_side(void *arg)
{
    int          s = (int)(intptr_t)arg, said = 0;
    struct side *side   = &world.side[s];
    unsigned     random = 77 + (unsigned)s;

    /* It goes on serving the other one until both have ended. */
    while (__atomic_load_n(&soak.ended, __ATOMIC_ACQUIRE) < 2) {
        (void)uct_worker_progress(side->worker);
        if (!__atomic_load_n(&soak.stop, __ATOMIC_ACQUIRE)) {
            work(s, &random);
        } else if (!said && uct_iface_flush(side->iface, 0, NULL) == UCS_OK) {
            said = 1;
            __atomic_fetch_add(&soak.ended, 1, __ATOMIC_ACQ_REL);
        }
    }
    return NULL;
}

static void misfortune(unsigned step)
{
    static const enum fake_knob knobs[] = {
        FAKE_LOSE_DATA_OUT, FAKE_LOSE_DATA_IN, FAKE_LOSE_ACK_OUT, FAKE_LOSE_ACK_IN, FAKE_LOSE_CTL, FAKE_STALL,
    };
    int            rail = (int)(step % 2 + 2 * (step / 2 % 2));
    enum fake_knob knob = knobs[step / 4 % 6];

    if (step % 3 == 0) {
        fake_port(rail, 0);
        usleep(30000);
        fake_port(rail, 1);
    } else if (step % 3 == 1) {
        fake_set(rail, knob, step % 2 ? 1000 : 300);
        usleep(40000);
        fake_set(rail, knob, 0);
    } else {
        fake_event_qp_fatal(rail);
    }
}

/* On a busy machine it takes longer until everything has happened. */
static int has_seen_enough(uint64_t start)
{
    uint64_t took = now_ns() - start;

    return took > PATIENCE_S * 1000000000ull ||
           (took > 6000000000ull && stats().failovers > 10 && stats().retired > 0 && fake_counts().late > 0);
}

static void test_soak(void **state)
{
    pthread_t threads[2];
    uint64_t  start;

    (void)state;
    world_open(90, "HEARTBEAT=10ms RTO=200ms DEAD_PEER=20s");
    rma_open();
    for (int i = 0; i < SOAK_EPS; i++) {
        ep_open(i % 2, i);
        ep_open(!(i % 2), i);
    }
    am_exchange(0, 4);
    wait_standbys(2 * SOAK_EPS);
    for (int rail = A0; rail <= B1; rail++) {
        fake_set(rail, FAKE_LATE, 300);
        fake_set(rail, FAKE_REPEAT_CTL, 50);
    }
    memset(&soak, 0, sizeof(soak));
    for (intptr_t s = 0; s < 2; s++) {
        assert_int_equal(pthread_create(&threads[s], NULL, run_side, (void *)s), 0);
    }
    start = now_ns();
    for (unsigned step = 0; !has_seen_enough(start); step++) {
        misfortune(step);
        /* the next rail breaks when this one is of use again, or nearly */
        for (unsigned i = 0; i < 100 && stats().standbys < 2 * SOAK_EPS; i++) {
            usleep(5000);
        }
    }
    __atomic_store_n(&soak.stop, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&soak.ended, __ATOMIC_ACQUIRE) < 2) {
        usleep(1000);
        if (now_ns() - start > 3 * PATIENCE_S * 1000000000ull) {
            __atomic_store_n(&soak.ended, 2, __ATOMIC_RELEASE);
            fail_msg("still not: all work has ended");
        }
    }
    for (int s = 0; s < 2; s++) {
        pthread_join(threads[s], NULL);
    }
    pump_until(am_all_here());
    assert_int_equal(stats().ep_errors, 0);
    assert_true(stats().failovers > 10);
    assert_true(stats().retired > 0);
    print_message("soak: %u messages, %lu failovers, %lu replayed, %lu retired, %lu late\n",
                  world.side[0].sent[0] + world.side[1].sent[0], stats().failovers, stats().replayed, stats().retired,
                  fake_counts().late);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_soak),
};

int glue_soak(void)
{
    return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
