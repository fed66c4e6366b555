/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a fence and a flush promise, at the moment when it is hardest to keep: across
 * a failover, and while the owner of the memory computes.
 */

#include "glue_tests.h"

#include <string.h>

static uint64_t *word_of(int s)
{
    return (uint64_t *)(void *)rma_place(s, 0);
}

/* ---- fences ---------------------------------------------------------------------- */

static ucs_status_t get_word(uint64_t *to, uct_completion_t *comp)
{
    struct side *side = &world.side[0];
    uct_iov_t    iov  = {.buffer = to, .length = sizeof(*to), .memh = side->memh, .count = 1};

    return uct_ep_get_zcopy(side->ep[0], &iov, 1, (uintptr_t)word_of(1), side->rkey.rkey, comp);
}

static ucs_status_t fence_endpoint(void)
{
    return uct_ep_fence(world.side[0].ep[0], 0);
}

static ucs_status_t fence_interface(void)
{
    return uct_iface_fence(world.side[0].iface, 0);
}

/* The GET is executed and its answer lost: it will be read again. What follows the fence
 * must not have been executed by then. */
static void fence_across(uint64_t seed, ucs_status_t (*fence)(void))
{
    struct side   *side  = &world.side[0];
    uint64_t       value = 1, *got;
    struct counted done;

    redundant_open(seed, "TIMEOUT=14");
    got         = (uint64_t *)(void *)rma_source(0, 2); /* even: aligned */
    *word_of(1) = 0;
    *got        = 99;
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    assert_int_equal(get_word(got, count_completion(&done)), UCS_INPROGRESS);
    assert_int_equal(fence(), UCS_OK);
    assert_int_equal(uct_ep_put_short(side->ep[0], &value, sizeof(value), (uintptr_t)word_of(1), side->rkey.rkey),
                     UCS_OK);
    pump_ms(20);
    assert_int_equal(done.called, 0);
    assert_int_equal(*word_of(1), 0);
    fake_port(A0, 0); /* while both are under way */
    flush_all();
    pump_until(stats().failovers == 2);
    assert_int_equal(done.called, 1);
    assert_int_equal(done.status, UCS_OK);
    assert_int_equal(*got, 0);
    assert_int_equal(*word_of(1), 1);
}

static void test_fence_across(void **state)
{
    (void)state;
    fence_across(400, fence_endpoint);
}

static void test_interface_fence_across(void **state)
{
    (void)state;
    fence_across(401, fence_interface);
}

/* ---- flushes ----------------------------------------------------------------------- */

static void progress_alone(int s, unsigned ms)
{
    uint64_t start = now_ns();

    while (now_ns() - start < ms * 1000000ull) {
        (void)uct_worker_progress(world.side[s].worker);
    }
}

/* An atomic by message is done when its owner has answered, not when the message arrived. */
static void test_flush_awaits_atomics(void **state)
{
    struct side   *side = &world.side[0];
    struct counted flush;

    (void)state;
    redundant_open(402, "");
    *word_of(1) = 5;
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 2, (uintptr_t)word_of(1), side->rkey.rkey),
                     UCS_OK);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, count_completion(&flush)), UCS_INPROGRESS);
    progress_alone(0, 50); /* the message is acknowledged: the owner's card has it */
    assert_int_equal(flush.called, 0);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, NULL), UCS_INPROGRESS);
    assert_int_equal(uct_iface_flush(side->iface, 0, NULL), UCS_INPROGRESS);
    assert_int_equal(*word_of(1), 5);
    pump_until(flush.called == 1);
    assert_int_equal(flush.status, UCS_OK);
    assert_int_equal(*word_of(1), 7);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, NULL), UCS_OK);
    assert_int_equal(uct_iface_flush(side->iface, 0, NULL), UCS_OK);
}

static ucs_status_t put_word(uint64_t value)
{
    struct side *side = &world.side[0];

    return uct_ep_put_short(side->ep[0], &value, sizeof(value), (uintptr_t)word_of(1), side->rkey.rkey);
}

static struct waiting {
    uct_pending_req_t super;
    uint64_t          before; /* the word when it went out */
    unsigned          went;
} waiting;

static ucs_status_t put_again(uct_pending_req_t *super)
{
    struct waiting *request = (struct waiting *)(void *)super;
    uint64_t        before  = *word_of(1);
    ucs_status_t    status  = put_word(100);

    if (status == UCS_OK) {
        request->before = before;
        request->went++;
    }
    return status;
}

/* The owner executes an atomic by message when it looks; its card executes a PUT or a GET at once. */
static void fence_behind_an_atomic(uint64_t seed, ucs_status_t (*fence)(void))
{
    struct side *side = &world.side[0];
    uint64_t    *got;

    redundant_open(seed, "");
    got         = (uint64_t *)(void *)rma_source(0, 2);
    *word_of(1) = 5;
    memset(&waiting, 0, sizeof(waiting));
    waiting.super.func = put_again;
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 2, (uintptr_t)word_of(1), side->rkey.rkey),
                     UCS_OK);
    assert_int_equal(fence(), UCS_OK);
    assert_int_equal(put_word(100), UCS_ERR_NO_RESOURCE);
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK); /* a message comes behind it anyway */
    assert_int_equal(put_word(100), UCS_ERR_NO_RESOURCE);
    assert_int_equal(get_word(got, NULL), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_pending_add(side->ep[0], &waiting.super, 0), UCS_OK);
    progress_alone(0, 50);
    assert_int_equal(waiting.went, 0);
    assert_int_equal(*word_of(1), 5);
    pump_until(waiting.went == 1);
    assert_int_equal(waiting.before, 7);
    flush_all();
    assert_int_equal(*word_of(1), 100);
    assert_int_equal(put_word(101), UCS_OK);
    flush_all();
}

static void test_fence_behind_an_atomic(void **state)
{
    (void)state;
    fence_behind_an_atomic(403, fence_endpoint);
}

static void test_interface_fence_behind_an_atomic(void **state)
{
    (void)state;
    fence_behind_an_atomic(404, fence_interface);
}

/* A fence of the interface holds for whatever comes first. Here that is no operation of the user's but what a flush
 * sends to hear of silent ones: what follows waits for the atomics before the fence all the same. */
static void test_fence_behind_an_atomic_and_a_flush(void **state)
{
    struct side *side = &world.side[0];

    (void)state;
    redundant_open(405, "");
    *word_of(1) = 5;
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 2, (uintptr_t)word_of(1), side->rkey.rkey),
                     UCS_OK);
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK);
    assert_int_equal(fence_interface(), UCS_OK);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, NULL), UCS_INPROGRESS);
    assert_int_equal(put_word(100), UCS_ERR_NO_RESOURCE);
    progress_alone(0, 50);
    assert_int_equal(put_word(100), UCS_ERR_NO_RESOURCE);
    assert_int_equal(*word_of(1), 5);
    pump_until(*word_of(1) == 7);
    flush_all();
    assert_int_equal(put_word(100), UCS_OK);
    flush_all();
    assert_int_equal(*word_of(1), 100);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_fence_across),
    GLUE_TEST(test_interface_fence_across),
    GLUE_TEST(test_flush_awaits_atomics),
    GLUE_TEST(test_fence_behind_an_atomic),
    GLUE_TEST(test_interface_fence_behind_an_atomic),
    GLUE_TEST(test_fence_behind_an_atomic_and_a_flush),
};

int glue_order(void)
{
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
