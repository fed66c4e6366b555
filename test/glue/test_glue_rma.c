/* SPDX-License-Identifier: BSD-3-Clause */

/* PUT, GET, atomics, and what is not allowed. */

#include "glue_tests.h"

#include <string.h>

static void open_pair(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
}

static void test_put_and_get(void **state)
{
    (void)state;
    open_pair(20, "");
    for (int s = 0; s < 2; s++) {
        rma_put(s, 0, 300);
    }
    flush_all();
    for (unsigned place = 0; place < 60; place++) {
        rma_get_check(0, 0, (enum how)(place % HOWS), place);
    }
    rma_check(0);
    rma_check(1);
}

/* A fence lets a GET see what was there before the PUT behind it. */
static void test_fence(void **state)
{
    struct side   *side = &world.side[0];
    struct counted done[20];
    uint64_t       seen[20], value;

    (void)state;
    open_pair(21, "");
    memset(rma_place(1, 0), 0, PLACE_LEN);
    for (uint64_t i = 0; i < 20; i++) {
        uct_iov_t iov = {.buffer = rma_source(0, (unsigned)i), .length = 8, .memh = side->memh, .count = 1};

        value = i + 1;
        assert_int_equal(uct_ep_get_zcopy(side->ep[0], &iov, 1, (uintptr_t)rma_place(1, 0), side->rkey.rkey,
                                          count_completion(&done[i])),
                         UCS_INPROGRESS);
        assert_int_equal(i % 2 ? uct_ep_fence(side->ep[0], 0) : uct_iface_fence(side->iface, 0), UCS_OK);
        assert_int_equal(uct_ep_put_short(side->ep[0], &value, 8, (uintptr_t)rma_place(1, 0), side->rkey.rkey), UCS_OK);
    }
    flush_all();
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(done[i].called, 1);
        memcpy(&seen[i], rma_source(0, i), 8);
        assert_int_equal(seen[i], i);
    }
}

/* The program's own fault: this operation ends with an error, others do not. */
static void test_wrong_key(void **state)
{
    struct side   *side = &world.side[0];
    uct_iov_t      iov;
    struct counted bad;

    (void)state;
    open_pair(22, "");
    am_exchange(0, 5);
    wait_standbys(2);
    iov = (uct_iov_t){.buffer = rma_source(0, 0), .length = 100, .memh = side->memh, .count = 1};
    am_post(0, 0, 5);
    assert_int_equal(uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)rma_place(1, 0),
                                      side->rkey.rkey ^ 0x0000004000000040ull, count_completion(&bad)),
                     UCS_INPROGRESS);
    am_post(0, 0, 5);
    am_post(1, 0, 5);
    pump_until(bad.called == 1);
    assert_int_equal(bad.status, UCS_ERR_IO_ERROR);
    pump_until(am_all_here());
    am_exchange(0, 20);
    assert_true(fake_counts().bad_rkey > 0);
}

/* A card fails at it: replayed, unless it ends lane after lane. */
static void test_card_fails(void **state)
{
    struct counted done;

    (void)state;
    for (unsigned times = 1; times < 4; times++) {
        open_pair(30 + times, "HEARTBEAT=200ms");
        am_exchange(0, 5);
        wait_standbys(2);
        pump_ms(700); /* heartbeats say that the rails are well */
        fake_break((uintptr_t)rma_place(1, 0), times < 3 ? times : 1000);
        am_post(0, 0, 5);
        assert_int_equal(rma_put_one(0, 0, ZCOPY, count_completion(&done)), UCS_OK);
        am_post(0, 0, 5);
        am_post(1, 0, 5);
        pump_until(done.called == 1);
        assert_int_equal(done.status, times < 3 ? UCS_OK : UCS_ERR_IO_ERROR);
        assert_int_equal(rma_executions(0, 0), times < 3);
        pump_until(am_all_here());
        am_exchange(0, 20);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

static void test_bad_gather_list(void **state)
{
    struct side *side = &world.side[0];
    uct_iov_t    iov[16];

    (void)state;
    open_pair(23, "");
    for (int i = 0; i < 16; i++) {
        iov[i] = (uct_iov_t){.buffer = rma_source(0, 0), .length = 8, .memh = side->memh, .count = 1};
    }
    assert_int_equal(uct_ep_put_zcopy(side->ep[0], iov, 16, (uintptr_t)rma_place(1, 0), side->rkey.rkey, NULL),
                     UCS_ERR_INVALID_PARAM);
    iov[1].memh = UCT_MEM_HANDLE_NULL;
    assert_int_equal(uct_ep_put_zcopy(side->ep[0], iov, 2, (uintptr_t)rma_place(1, 0), side->rkey.rkey, NULL),
                     UCS_ERR_INVALID_PARAM);
    assert_int_equal(uct_ep_am_zcopy(side->ep[0], AM_ID, "12345678", 8, iov, 2, 0, NULL), UCS_ERR_INVALID_PARAM);
    am_exchange(0, 10);
    flush_all();
}

/* Exact sums from both sides while the rails change. */
static void test_atomics(void **state)
{
    struct side   *side = &world.side[0];
    uint64_t      *sum, old[64];
    struct counted done[64];

    (void)state;
    open_pair(24, "");
    am_exchange(0, 5);
    wait_standbys(2);
    sum  = (uint64_t *)(void *)rma_place(1, 0);
    *sum = 0;
    for (unsigned i = 0; i < 60; i++) {
        while (uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[i], (uintptr_t)sum, side->rkey.rkey,
                                     count_completion(&done[i])) == UCS_ERR_NO_RESOURCE) {
            pump();
        }
        if (i == 30) {
            fake_port(B0, 0);
        }
    }
    flush_all();
    for (unsigned i = 0; i < 60; i++) {
        assert_int_equal(done[i].called, 1);
        assert_int_equal(done[i].status, UCS_OK);
        assert_int_equal(old[i], i);
    }
    assert_int_equal(*sum, 60);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_put_and_get), GLUE_TEST(test_fence),           GLUE_TEST(test_wrong_key),
    GLUE_TEST(test_card_fails),  GLUE_TEST(test_bad_gather_list), GLUE_TEST(test_atomics),
};

int glue_rma(void)
{
    return cmocka_run_group_tests_name("rma", tests, NULL, NULL);
}
