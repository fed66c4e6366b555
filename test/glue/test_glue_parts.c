/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What operations are made of, and how large they may be; what each of them
 * costs; who is due first.
 */

#include "glue_tests.h"

#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/due.h"
#include "uct/ep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_ID 7

static void open_pair(uint64_t seed, const char *settings)
{
    world_open(seed, settings);
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 3);
}

/* ---- parts ---- */

static struct {
    char     bytes[8192];
    size_t   length;
    unsigned count;
} got;

static ucs_status_t take(void *arg, void *data, size_t length, unsigned flags)
{
    (void)arg;
    (void)flags;
    assert_true(length <= sizeof(got.bytes));
    memcpy(got.bytes, data, length);
    got.length = length;
    got.count++;
    return UCS_OK;
}

static void expect(const void *bytes, size_t length)
{
    unsigned before = got.count;

    pump_until(got.count > before);
    assert_int_equal(got.length, length);
    assert_memory_equal(got.bytes, bytes, length);
}

static void test_short_in_parts(void **state)
{
    char      text[]  = "in three parts";
    uct_iov_t parts[] = {{.buffer = text, .length = 3, .count = 1},
                         {.buffer = text + 3, .length = 0, .count = 1},
                         {.buffer = text + 3, .length = 6, .count = 1},
                         {.buffer = text + 9, .length = 5, .count = 1}};

    (void)state;
    open_pair(1200, "");
    (void)uct_iface_set_am_handler(world.side[1].iface, PARTS_ID, take, NULL, 0);
    assert_int_equal(uct_ep_am_short_iov(world.side[0].ep[0], PARTS_ID, parts, 4), UCS_OK);
    expect("in three parts", 14);
    assert_int_equal(uct_ep_am_short_iov(world.side[0].ep[0], PARTS_ID, parts + 1, 1), UCS_OK);
    expect("", 0);
    am_exchange(0, 10);
}

/* As long as the interface says, and not a byte longer. */
static void test_longest_messages(void **state)
{
    struct side *side = &world.side[0];
    char         bytes[8192];
    size_t       most;
    uct_iov_t    iov;

    (void)state;
    open_pair(1201, "");
    (void)uct_iface_set_am_handler(world.side[1].iface, PARTS_ID, take, NULL, 0);
    memset(bytes, 'x', sizeof(bytes));
    most = side->attr.cap.am.max_short;
    assert_int_equal(uct_ep_am_short(side->ep[0], PARTS_ID, 0x7878787878787878ull, bytes, (unsigned)most - 8), UCS_OK);
    expect(bytes, most);
    assert_int_equal(uct_ep_am_short(side->ep[0], PARTS_ID, 0, bytes, (unsigned)most - 7), UCS_ERR_INVALID_PARAM);
    iov = (uct_iov_t){.buffer = bytes, .length = most, .count = 1};
    assert_int_equal(uct_ep_am_short_iov(side->ep[0], PARTS_ID, &iov, 1), UCS_OK);
    expect(bytes, most);
    iov.length = most + 1;
    assert_int_equal(uct_ep_am_short_iov(side->ep[0], PARTS_ID, &iov, 1), UCS_ERR_INVALID_PARAM);

    most = side->attr.cap.am.max_zcopy;
    assert_true(most <= sizeof(bytes));
    memset(side->am_source, 'x', most);
    iov = (uct_iov_t){.buffer = side->am_source, .length = most - 5, .memh = side->am_memh, .count = 1};
    assert_int_equal(uct_ep_am_zcopy(side->ep[0], PARTS_ID, bytes, 5, &iov, 1, 0, NULL), UCS_INPROGRESS);
    expect(bytes, most);
    assert_int_equal(uct_ep_am_zcopy(side->ep[0], PARTS_ID, bytes, 6, &iov, 1, 0, NULL), UCS_ERR_INVALID_PARAM);
    flush_all();
    am_exchange(0, 10);
}

/* ---- credits ---- */

static unsigned send_to_deaf_ears(enum how how)
{
    unsigned sent = 0;

    for (unsigned idle = 0; idle < 1000; idle++) {
        if (am_send(0, 0, how, 20, NULL) == UCS_OK) {
            sent++;
            idle = 0;
        }
        (void)uct_worker_progress(world.side[0].worker);
    }
    return sent;
}

/* Each kind of message takes a receive of the peer's, and waits for one. */
static void test_credit_of_each_kind(void **state)
{
    (void)state;
    open_pair(1202, "RX_QUEUE_INIT=8 RX_QUEUE_LEN=64 TX_QUEUE_LEN=128");
    wait_standbys(2);
    for (enum how how = SHORT; how < HOWS; how++) {
        assert_in_range(send_to_deaf_ears(how), 1, 64);
        pump_until(am_all_here());
        flush_all();
    }
    assert_int_equal(fake_counts().rnr, 0);
}

/* ---- what goes with an endpoint ---- */

/* The interface's flush does not wait for what can never be told. */
static void test_flush_after_the_dead(void **state)
{
    (void)state;
    open_pair(1203, "DEAD_PEER=1s");
    wait_standbys(2);
    fake_set(A0, FAKE_STALL, 1000);
    am_post(0, 0, 10);
    for (int rail = A0; rail <= B1; rail++) {
        fake_port(rail, 0);
    }
    ep_close(0, 0);
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_INPROGRESS);
    flush_all_of(0);
}

static void test_not_to_oneself(void **state)
{
    (void)state;
    open_pair(1204, "");
    assert_true(
        uct_iface_is_reachable(world.side[0].iface, (void *)world.side[1].dev_addr, (void *)world.side[1].iface_addr));
    assert_false(
        uct_iface_is_reachable(world.side[0].iface, (void *)world.side[0].dev_addr, (void *)world.side[0].iface_addr));
}

/* ---- what others' atomics reach by message ---- */

static ucs_status_t reach(uint64_t *word, uct_rkey_t key)
{
    struct counted done;
    ucs_status_t   status;
    uint64_t       old;

    do {
        pump();
        status = uct_ep_atomic64_fetch(world.side[0].ep[0], UCT_ATOMIC_OP_ADD, 1, &old, (uintptr_t)word, key,
                                       count_completion(&done));
    } while (status == UCS_ERR_NO_RESOURCE);
    assert_int_equal(status, UCS_INPROGRESS);
    pump_until(done.called == 1);
    return done.status;
}

/* What was registered for it, as long as it is, and nothing beside it. */
static void test_atomics_reach_what_is_exposed(void **state)
{
    uint64_t   word[3] = {0};
    uct_rkey_t key;
    uct_mem_h  memh;
    uct_md_h   md;

    (void)state;
    open_pair(1205, "ATOMICS=sw");
    md = world.side[1].md;
    assert_int_equal(uct_md_mem_reg(md, &word[1], 8, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    key = memory_key(1, memh);
    assert_int_equal(reach(&word[1], key), UCS_OK);
    assert_int_equal(reach(&word[0], key), UCS_ERR_IO_ERROR);
    assert_int_equal(reach(&word[2], key), UCS_ERR_IO_ERROR);
    (void)uct_md_mem_dereg(md, memh);
    assert_int_equal(reach(&word[1], key), UCS_ERR_IO_ERROR);
    assert_int_equal(uct_md_mem_reg(md, &word[1], 8, UCT_MD_MEM_ACCESS_REMOTE_PUT, &memh), UCS_OK);
    assert_int_equal(reach(&word[1], memory_key(1, memh)), UCS_ERR_IO_ERROR);
    (void)uct_md_mem_dereg(md, memh);
    assert_int_equal(word[0] + word[2], 0);
    assert_int_equal(word[1], 1);
}

/* Memory that was registered when the first card was gone already has a name for them, too. */
static void test_atomics_after_the_card(void **state)
{
    uint64_t   word = 0;
    uct_rkey_t key;
    uct_mem_h  memh;

    (void)state;
    open_pair(1206, "ATOMICS=sw DEAD_PEER=40s HEARTBEAT=20ms");
    wait_standbys(2);
    fake_card_reset(B0, FAKE_CARD_DEAD);
    pump_until(stats().failovers == 2);
    assert_int_equal(uct_md_mem_reg(world.side[1].md, &word, 8, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    key = memory_key(1, memh);
    assert_int_equal(reach(&word, key), UCS_OK);
    assert_int_equal(word, 1);
    (void)uct_md_mem_dereg(world.side[1].md, memh);
}

/* ---- what is to be done ---- */

static unsigned todo_of(struct uct_ha_conn *conn)
{
    unsigned todo;

    pthread_mutex_lock(&conn->pairs->lanes->wake.lock);
    todo = conn->todo;
    pthread_mutex_unlock(&conn->pairs->lanes->wake.lock);
    return todo;
}

/* It is not forgotten because somebody has something else to say before it is done. */
static void test_todo_is_kept(void **state)
{
    struct uct_ha_conn *conn;

    (void)state;
    open_pair(1207, "");
    conn = uct_ha_ep_flow(world.side[0].ep[0])->road.conn;
    uct_ha_attention_todo(conn, UCT_HA_TODO_TAIL);
    uct_ha_attention(conn);
    assert_true(todo_of(conn) & UCT_HA_TODO_TAIL);
    pump_until((todo_of(conn) & UCT_HA_TODO_TAIL) == 0);
    am_exchange(0, 10);
}

/* ---- who is due ---- */

#define DUES 60

static struct uct_ha_due due[DUES];

static uint64_t least(void)
{
    uint64_t when = UINT64_MAX;

    for (unsigned i = 0; i < DUES; i++) {
        when = due[i].at != UINT32_MAX && due[i].when < when ? due[i].when : when;
    }
    return when;
}

/* Earlier, later, not at all: the first is always the one that has to be. */
static void test_due_first(void **state)
{
    struct uct_ha_dues dues = {0};
    unsigned           seed = 7;

    (void)state;
    memset(due, 0, sizeof(due));
    uct_ha_dues_open(&dues);
    for (unsigned i = 0; i < DUES; i++) {
        assert_int_equal(uct_ha_due_begin(&due[i], &dues, i), 0);
    }
    assert_null(uct_ha_due_first(&dues));
    for (unsigned step = 0; step < 20000; step++) {
        uct_ha_due_set(&due[rand_r(&seed) % DUES], rand_r(&seed) % 4 == 0 ? UINT64_MAX : 1 + rand_r(&seed) % 1000u);
        if (least() == UINT64_MAX) {
            assert_null(uct_ha_due_first(&dues));
        } else {
            assert_int_equal(uct_ha_due_first(&dues)->when, least());
        }
    }
    for (unsigned i = 0; i < DUES; i++) {
        uct_ha_due_end(&due[i]);
    }
    assert_null(uct_ha_due_first(&dues));
    uct_ha_dues_close(&dues);
}

/* Each comes once for as often as it was touched meanwhile, and again when it is touched again. */
static void test_due_lists(void **state)
{
    struct uct_ha_due_peer peer = {0};
    struct uct_ha_dues     dues = {0};

    (void)state;
    memset(due, 0, sizeof(due));
    uct_ha_dues_open(&dues);
    uct_ha_due_peer_begin(&peer);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(uct_ha_due_begin(&due[i], &dues, i), 0);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 4; i++) {
            uct_ha_due_touch(&due[i % 2]);
            uct_ha_due_send(&due[i % 2], &peer, i == 0);
        }
        assert_ptr_equal(uct_ha_due_next_touched(&dues), &due[0]);
        assert_ptr_equal(uct_ha_due_next_touched(&dues), &due[1]);
        assert_null(uct_ha_due_next_touched(&dues));
        assert_ptr_equal(uct_ha_due_next_peer(&dues), &peer);
        assert_null(uct_ha_due_next_peer(&dues));
        assert_ptr_equal(uct_ha_due_next_to_send(&peer), &due[0]);
        assert_ptr_equal(uct_ha_due_next_to_send(&peer), &due[1]);
        assert_null(uct_ha_due_next_to_send(&peer));
        assert_int_equal(due[0].want, 1); /* an answer was wanted at first */
        assert_int_equal(due[1].want, 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        uct_ha_due_end(&due[i]);
    }
    uct_ha_due_peer_end(&peer);
    uct_ha_dues_close(&dues);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_short_in_parts),
    GLUE_TEST(test_longest_messages),
    GLUE_TEST(test_credit_of_each_kind),
    GLUE_TEST(test_flush_after_the_dead),
    GLUE_TEST(test_not_to_oneself),
    GLUE_TEST(test_todo_is_kept),
    GLUE_TEST(test_atomics_reach_what_is_exposed),
    GLUE_TEST(test_atomics_after_the_card),
    cmocka_unit_test(test_due_first),
    cmocka_unit_test(test_due_lists),
};

int glue_parts(void)
{
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
