/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Atomics that cards execute: never twice, exact where the proof can tell, and
 * an error where the result is lost. The owner of the memory decides.
 */

#include "glue_tests.h"

#include "pair/conn.h"
#include "uct/iface.h"

#include <string.h>

#define OPS 60

static struct counted done[OPS];
static uint64_t       old[OPS];

static uint64_t *word_of(int s)
{
    return (uint64_t *)(void *)rma_place(s, 0);
}

static void open_hw(uint64_t seed, const char *settings0, const char *settings1)
{
    world_open(seed, settings0);
    side_close(1);
    side_open(1, settings1);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 5);
    wait_standbys(2);
    *word_of(1) = 0;
}

static ucs_status_t add(unsigned i)
{
    struct side *side = &world.side[0];

    return uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[i], (uintptr_t)word_of(1), side->rkey.rkey,
                                 count_completion(&done[i]));
}

static ucs_status_t post_add(void)
{
    struct side *side = &world.side[0];

    return uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 1000, (uintptr_t)word_of(1), side->rkey.rkey);
}

#define retry(_call)                                                 \
    do {                                                             \
        ucs_status_t _status;                                        \
        while ((_status = (_call)) == UCS_ERR_NO_RESOURCE) {         \
            pump();                                                  \
        }                                                            \
        assert_true(_status == UCS_OK || _status == UCS_INPROGRESS); \
    } while (0)

/* Every one ended once, those that succeeded saw different values, and the word
 * tells that each was executed once. Returns how many ended with an error. */
static unsigned check_adds(unsigned posts)
{
    uint8_t  seen[OPS] = {0};
    unsigned lost      = 0;

    for (unsigned i = 0; i < OPS; i++) {
        assert_int_equal(done[i].called, 1);
        if (done[i].status != UCS_OK) {
            assert_int_equal(done[i].status, UCS_ERR_IO_ERROR);
            lost++;
            continue;
        }
        assert_true(old[i] % 1000 < OPS);
        assert_int_equal(seen[old[i] % 1000], 0);
        seen[old[i] % 1000] = 1;
    }
    assert_int_equal(*word_of(1), OPS + 1000 * posts);
    assert_int_equal(fake_counts().atomics, OPS + posts);
    assert_int_equal(stats().in_doubt, lost);
    assert_int_equal(stats().ep_errors, 0);
    return lost;
}

/* What cards do not execute. */
static void test_hw_refuses(void **state)
{
    struct side *side = &world.side[0];
    uint64_t     word;
    uint32_t     half;

    (void)state;
    open_hw(113, "ATOMICS=hw", "ATOMICS=hw");
    word = (uintptr_t)word_of(1);
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_AND, 1, word, side->rkey.rkey),
                     UCS_ERR_UNSUPPORTED);
    assert_int_equal(uct_ep_atomic32_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &half, word, side->rkey.rkey, NULL),
                     UCS_ERR_UNSUPPORTED);
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 1, word + 4, side->rkey.rkey),
                     UCS_ERR_INVALID_PARAM);
    retry(add(0));
    flush_all();
    assert_int_equal(*word_of(1), 1);
}

static void test_hw_atomics(void **state)
{
    uint64_t expected;

    (void)state;
    open_hw(100, "ATOMICS=hw", "ATOMICS=hw");
    assert_true(world.side[0].attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_DEVICE);
    assert_false(world.side[0].attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_CPU);
    assert_int_equal(world.side[0].attr.cap.atomic32.op_flags, 0);
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
        if (i % 6 == 0) {
            retry(post_add());
        }
    }
    flush_all();
    assert_int_equal(check_adds(OPS / 6), 0);
    expected = *word_of(1);
    for (unsigned i = 0; i < 2; i++) { /* the second one does not find what it expects */
        retry(uct_ep_atomic_cswap64(world.side[0].ep[0], expected, 7, (uintptr_t)word_of(1), world.side[0].rkey.rkey,
                                    &old[i], count_completion(&done[i])));
    }
    flush_all();
    assert_int_equal(old[0], expected);
    assert_int_equal(old[1], 7);
    assert_int_equal(*word_of(1), 7);
}

static void test_hw_atomics_cut(void **state)
{
    (void)state;
    open_hw(101, "ATOMICS=hw", "ATOMICS=hw");
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
        if (i % 6 == 0) {
            retry(post_add());
        }
        if (i == OPS / 2) {
            fake_port(B0, 0);
        }
        am_post(0, 0, 1);
    }
    flush_all();
    pump_until(am_all_here());
    (void)check_adds(OPS / 6);
    pump_until(stats().failovers == 2);
}

/* Executed, and the result is lost: that operation ends with an error, those
 * without a result end well, and everything else goes on. */
static void test_hw_results_lost(void **state)
{
    (void)state;
    open_hw(102, "ATOMICS=hw", "ATOMICS=hw");
    fake_set(B0, FAKE_LOSE_ACK_OUT, 1000);
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
        if (i % 6 == 0) {
            retry(post_add());
        }
    }
    flush_all();
    assert_true(check_adds(OPS / 6) > 0);
    am_exchange(0, 20);
}

/* Whoever adds: the memory of side 1 is served by messages alone. */
static void test_hw_towards_sw(void **state)
{
    (void)state;
    open_hw(103, "ATOMICS=hw", "ATOMICS=sw");
    assert_true(world.side[1].attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_CPU);
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
    }
    flush_all();
    for (unsigned i = 0; i < OPS; i++) {
        assert_int_equal(done[i].status, UCS_OK);
        assert_int_equal(old[i], i);
    }
    assert_int_equal(fake_counts().atomics, 0);
}

/* ... and by the card alone here; what the card cannot do is refused. */
static void test_sw_towards_hw(void **state)
{
    struct side *side = &world.side[0];
    uint32_t     old32;

    (void)state;
    open_hw(104, "ATOMICS=sw", "ATOMICS=hw");
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
    }
    flush_all();
    assert_int_equal(check_adds(0), 0);
    assert_int_equal(uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_OR, 1, (uintptr_t)word_of(1), side->rkey.rkey),
                     UCS_ERR_UNSUPPORTED);
    assert_int_equal(uct_ep_atomic32_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old32, (uintptr_t)word_of(1),
                                           side->rkey.rkey, count_completion(&done[0])),
                     UCS_ERR_UNSUPPORTED);
    assert_int_equal(
        uct_ep_atomic64_post(side->ep[0], UCT_ATOMIC_OP_ADD, 1, (uintptr_t)word_of(1) + 4, side->rkey.rkey),
        UCS_ERR_INVALID_PARAM);
}

/* Who does not know that our card executes them, and asks by message, is refused: two
 * that execute are not atomic. */
static void test_message_to_hw_owner(void **state)
{
    struct uct_ha_iface *iface;
    struct uct_ha_conn  *conn;

    (void)state;
    open_hw(106, "ATOMICS=sw", "ATOMICS=hw");
    iface                                    = uct_ha_iface(world.side[0].iface);
    conn                                     = ucs_list_head(&iface->pairs.conns, struct uct_ha_conn, list);
    uct_ha_flow_of(conn->road)->card_atomics = 0;
    retry(add(0));
    pump_until(done[0].called == 1);
    assert_int_equal(done[0].status, UCS_ERR_IO_ERROR);
    assert_int_equal(*word_of(1), 0);
    assert_int_equal(stats().ep_errors, 0);
}

/* What cannot be proven is not offered. */
static void test_hw_with_count_is_sw(void **state)
{
    (void)state;
    open_hw(105, "ATOMICS=hw PROOF=count", "ATOMICS=hw PROOF=count");
    assert_false(world.side[0].attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_DEVICE);
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
    }
    flush_all();
    assert_int_equal(*word_of(1), OPS);
    assert_int_equal(fake_counts().atomics, 0);
}

static struct waiting {
    uct_pending_req_t super;
    unsigned          calls;
    ucs_status_t      status;
} waiting[2];

static ucs_status_t post_again(uct_pending_req_t *super)
{
    struct waiting *request = (struct waiting *)(void *)super;

    request->calls++;
    return request->status = post_add();
}

static ucs_status_t add_again(uct_pending_req_t *super)
{
    struct waiting *request = (struct waiting *)(void *)super;

    request->calls++;
    return request->status = add(0);
}

static void on_purge(uct_pending_req_t *super, void *arg)
{
    assert_ptr_equal(super, &waiting[1].super);
    ++*(unsigned *)arg;
}

static void on_move(uct_pending_req_t *super, void *arg)
{
    unsigned *moved = arg;

    assert_ptr_equal(super, &waiting[*moved].super);
    ++*moved;
}

/* Fills the log, then queues an atomic without result and one with. */
static void open_pending(unsigned seed)
{
    struct side *side = &world.side[0];

    open_hw(seed, "DEAD_PEER=1s", "DEAD_PEER=1s");
    memset(waiting, 0, sizeof(waiting));
    fake_set(A0, FAKE_STALL, 1000);
    while (post_add() == UCS_OK) {
    }
    waiting[0].super.func = post_again;
    waiting[1].super.func = add_again;
    assert_int_equal(uct_ep_pending_add(side->ep[0], &waiting[0].super, 0), UCS_OK);
    assert_int_equal(add(0), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_pending_add(side->ep[0], &waiting[1].super, 0), UCS_OK);
}

/* When the endpoint has failed and is purged, waiting atomics are tried once more and see why; UCP would not survive
 * the purge of one without result, and never end one with. */
static void test_failure_with_pending_posts(void **state)
{
    struct side *side   = &world.side[0];
    unsigned     purged = 0;

    (void)state;
    open_pending(108);
    fake_port(A1, 0);
    fake_port(B1, 0);
    while (stats().standbys != 0) { /* else work goes on there; nobody makes progress meanwhile */
    }
    fake_port(A0, 0);
    fake_port(B0, 0);
    pump_until(side->errors == 1);
    uct_ep_pending_purge(side->ep[0], on_purge, &purged);
    assert_int_equal(purged, 0);
    assert_true(waiting[0].calls > 0 && waiting[1].calls > 0);
    /* whose time is over first tells the other one */
    assert_true(side->error == UCS_ERR_ENDPOINT_TIMEOUT || side->error == UCS_ERR_CONNECTION_RESET);
    assert_int_equal(waiting[0].status, side->error);
    assert_int_equal(waiting[1].status, side->error);
    flush_all();
}

/* UCP also purges an endpoint that is well when another one to the same peer has failed. */
static void test_purge_with_pending_posts(void **state)
{
    struct side *side   = &world.side[0];
    unsigned     purged = 0;

    (void)state;
    open_pending(109);
    uct_ep_pending_purge(side->ep[0], on_purge, &purged);
    assert_int_equal(purged, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waiting[i].calls, 1);
        assert_int_equal(waiting[i].status, UCS_ERR_CANCELED);
    }
    fake_set(A0, FAKE_STALL, 0);
    flush_all();
    assert_int_equal(post_add(), UCS_OK); /* the endpoint goes on */
    flush_all();
}

static ucs_status_t no_room(uct_pending_req_t *super)
{
    ((struct waiting *)(void *)super)->calls++;
    return UCS_ERR_NO_RESOURCE;
}

/* A flush that waits behind such an atomic is none: it is handed over. */
static void test_purge_of_a_flush_behind_posts(void **state)
{
    const char  *many   = "ATOMICS=sw RX_QUEUE_INIT=256 RX_QUEUE_LEN=256 TX_QUEUE_LEN=256";
    struct side *side   = &world.side[0];
    unsigned     purged = 0;

    (void)state;
    open_hw(112, many, many);
    memset(waiting, 0, sizeof(waiting));
    waiting[0].super.func = post_again;
    waiting[1].super.func = no_room;
    while (post_add() == UCS_OK) {
    }
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_OK); /* for messages there is room, for atomics none */
    assert_int_equal(post_add(), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_pending_add(side->ep[0], &waiting[0].super, 0), UCS_OK);
    assert_int_equal(uct_ep_flush(side->ep[0], 0, NULL), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_pending_add(side->ep[0], &waiting[1].super, 0), UCS_OK);
    uct_ep_pending_purge(side->ep[0], on_purge, &purged);
    assert_int_equal(purged, 1);
    assert_int_equal(waiting[0].calls, 1);
    assert_int_equal(waiting[1].calls, 0);
    flush_all();
}

/* Requests that UCP takes away to send them by another lane are handed over, all of them. */
static void test_purge_to_another_lane(void **state)
{
    unsigned purged = 0;

    (void)state;
    open_pending(110);
    waiting[0].super.func = waiting[1].super.func = no_room;
    uct_ep_pending_purge(world.side[0].ep[0], on_move, &purged);
    assert_int_equal(purged, 2);
    fake_set(A0, FAKE_STALL, 0);
    flush_all();
}

/* A wrong key is the program's fault: told, and the rest goes on. */
static void test_hw_wrong_key(void **state)
{
    struct side *side = &world.side[0];

    (void)state;
    open_hw(106, "ATOMICS=hw", "ATOMICS=hw");
    retry(uct_ep_atomic64_fetch(side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[0], (uintptr_t)word_of(1),
                                side->rkey.rkey ^ 0x0000004000000040ull, count_completion(&done[0])));
    pump_until(done[0].called == 1);
    assert_int_equal(done[0].status, UCS_ERR_IO_ERROR);
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
    }
    flush_all();
    assert_int_equal(*word_of(1), OPS);
}

/* By message, its owner looks at the key: no card does. */
static void test_sw_wrong_key(void **state)
{
    struct side *side = &world.side[0];

    (void)state;
    open_hw(111, "ATOMICS=sw", "ATOMICS=sw");
    for (unsigned i = 0; i < 2; i++) {
        retry(uct_ep_atomic64_fetch(
            side->ep[0], UCT_ATOMIC_OP_ADD, 1, &old[i], i == 0 ? (uintptr_t)word_of(1) : (uintptr_t)word_of(1) + MEMORY,
            i == 0 ? side->rkey.rkey ^ 0x0000004000000040ull : side->rkey.rkey, count_completion(&done[i])));
        pump_until(done[i].called == 1);
        assert_int_equal(done[i].status, UCS_ERR_IO_ERROR);
    }
    assert_int_equal(*word_of(1), 0);
    assert_int_equal(stats().ep_errors, 0);
    retry(add(0));
    flush_all();
    assert_int_equal(*word_of(1), 1);
}

/* A fence holds back what follows until the old value is here. */
static void test_hw_fence(void **state)
{
    struct side *side = &world.side[0];
    uint64_t     value;

    (void)state;
    open_hw(107, "ATOMICS=hw", "ATOMICS=hw");
    for (unsigned i = 0; i < OPS; i++) {
        retry(add(i));
        assert_int_equal(uct_ep_fence(side->ep[0], 0), UCS_OK);
        value = 10 * (i + 1);
        retry(uct_ep_put_short(side->ep[0], &value, 8, (uintptr_t)word_of(1), side->rkey.rkey));
        assert_int_equal(uct_ep_fence(side->ep[0], 0), UCS_OK);
    }
    flush_all();
    for (unsigned i = 0; i < OPS; i++) {
        assert_int_equal(old[i], 10 * i);
    }
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_hw_atomics),
    GLUE_TEST(test_hw_atomics_cut),
    GLUE_TEST(test_hw_results_lost),
    GLUE_TEST(test_hw_towards_sw),
    GLUE_TEST(test_sw_towards_hw),
    GLUE_TEST(test_message_to_hw_owner),
    GLUE_TEST(test_hw_with_count_is_sw),
    GLUE_TEST(test_failure_with_pending_posts),
    GLUE_TEST(test_purge_with_pending_posts),
    GLUE_TEST(test_purge_to_another_lane),
    GLUE_TEST(test_purge_of_a_flush_behind_posts),
    GLUE_TEST(test_hw_wrong_key),
    GLUE_TEST(test_sw_wrong_key),
    GLUE_TEST(test_hw_refuses),
    GLUE_TEST(test_hw_fence),
};

int glue_atomics(void)
{
    return cmocka_run_group_tests_name("atomics", tests, NULL, NULL);
}
