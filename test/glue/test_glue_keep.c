/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages that their receiver keeps (UCT_CB_PARAM_FLAG_DESC): they stay as they were, he has room before them, and
 * others take their places. */

#include "glue_tests.h"

#include "data/rx.h"
#include "uct/iface.h"

#include <errno.h>
#include <string.h>

#define KEPT_MAX 64
#define LONG     4096u

static struct {
    void  *data;
    size_t length;
    char   copy[LONG + 64]; /* and a header */
} kept[KEPT_MAX];

static unsigned keeps, offered, refused, too_short; /* so many are kept; of those offered, not, and not worth it */

static struct uct_ha_desc_pool *pool_of(int s)
{
    return &uct_ha_iface(world.side[s].iface)->lanes.pool;
}

/* All that is offered, as long as there is room. */
static ucs_status_t keep(void *arg, void *data, size_t length, unsigned flags)
{
    ucs_status_t status = am_received(arg, data, length, flags);

    if (!(flags & UCT_CB_PARAM_FLAG_DESC)) {
        too_short += length <= UCT_HA_RX_SHORT;
        refused += length > UCT_HA_RX_SHORT;
        return status;
    }
    assert_true(length > UCT_HA_RX_SHORT && length <= sizeof(kept->copy));
    offered++;
    if (keeps == KEPT_MAX) {
        return status;
    }
    kept[keeps].data   = data;
    kept[keeps].length = length;
    memcpy(kept[keeps].copy, data, length);
    memset((char *)data - GLUE_HEADROOM, 0xa5, GLUE_HEADROOM);
    keeps++;
    return UCS_INPROGRESS;
}

static void keep_on(int s)
{
    keeps = offered = refused = too_short = 0;
    assert_int_equal(uct_iface_set_am_handler(world.side[s].iface, AM_ID, keep, &world.side[s], 0), UCS_OK);
}

static void check_kept(void)
{
    for (unsigned i = 0; i < keeps; i++) {
        const uint8_t *room = (const uint8_t *)kept[i].data - GLUE_HEADROOM;

        assert_memory_equal(kept[i].data, kept[i].copy, kept[i].length);
        for (unsigned k = 0; k < GLUE_HEADROOM; k++) {
            assert_int_equal(room[k], 0xa5);
        }
    }
}

static void let_go(unsigned count)
{
    while (count-- > 0) {
        uct_iface_release_desc((char *)kept[--keeps].data - GLUE_HEADROOM);
    }
}

static void send_patiently(unsigned length)
{
    while (am_send(0, 0, BCOPY, length, NULL) == UCS_ERR_NO_RESOURCE) {
        pump();
    }
}

static void send_long(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        send_patiently(LONG - i % 7);
    }
    pump_until(am_all_here());
}

static void open_pair(unsigned seed, const char *settings)
{
    world_open(seed, settings);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 3);
    wait_standbys(2);
}

/* Shared receives and a lane's own; messages go on, and the lanes change, while they are kept. */
static void test_keep(void **state)
{
    unsigned chunks;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_pair(850 + i, i == 0 ? "" : "SRQ_LEN=0");
        keep_on(1);
        send_long(KEPT_MAX);
        assert_int_equal(keeps, KEPT_MAX);
        assert_int_equal(pool_of(1)->kept, KEPT_MAX);
        chunks = pool_of(1)->num_chunks;
        send_long(1000); /* offered, and not kept */
        assert_in_range(pool_of(1)->num_chunks, chunks, chunks + 1);
        am_exchange(0, 200);
        fake_port(A0, 0);
        send_long(200);
        am_exchange(0, 200);
        assert_int_equal(stats().failovers, 2);
        check_kept();
        let_go(keeps);
        assert_int_equal(pool_of(1)->kept, 0);
        send_long(KEPT_MAX);
        assert_int_equal(keeps, KEPT_MAX);
        check_kept();
        let_go(keeps);
        am_exchange(0, 200);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* What is copied as cheaply is not offered: it would hold a whole buffer. */
static void test_keep_no_short_ones(void **state)
{
    (void)state;
    open_pair(852, "");
    keep_on(1);
    send_patiently(UCT_HA_RX_SHORT / 2);
    pump_until(am_all_here());
    assert_int_equal(too_short, 1);
    assert_int_equal(offered, 0);
    send_patiently(UCT_HA_RX_SHORT + 1);
    pump_until(am_all_here());
    assert_int_equal(offered, 1);
    let_go(keeps);
}

/* No more than RX_MEM: who keeps so much gets the others to be copied, until he gives some back. */
static void test_keep_no_more_than(void **state)
{
    unsigned most;

    (void)state;
    open_pair(853, "RX_MEM=100k");
    keep_on(1);
    most = pool_of(1)->kept_max;
    assert_in_range(most, 8, 12);
    send_long(40);
    assert_int_equal(keeps, most);
    assert_int_equal(refused, 40 - most);
    let_go(3);
    send_long(5);
    assert_int_equal(keeps, most);
    check_kept();
    let_go(keeps);
}

/* Without memory for another buffer the message is not offered, and not lost. */
static void test_keep_without_memory(void **state)
{
    struct uct_ha_desc *list = NULL, *desc;

    (void)state;
    open_pair(854, "");
    keep_on(1);
    while ((desc = uct_ha_desc_at_hand(pool_of(1))) != NULL) {
        desc->next = list;
        list       = desc;
    }
    fake_fail(FAKE_CALL_MR_REG, -1, -ENOMEM, 2);
    send_long(10); /* and memory is not asked for with each of them */
    assert_int_equal(keeps, 0);
    assert_int_equal(refused, 10);
    uct_ha_desc_return_list(pool_of(1), list);
    send_long(10);
    assert_int_equal(keeps, 10);
    check_kept();
    let_go(keeps);
}

/* What came on a lane whose turn it was not yet may be kept, too. */
static void test_keep_held(void **state)
{
    (void)state;
    open_pair(855, "");
    keep_on(1);
    for (unsigned cut = 0; cut < 20; cut++) {
        for (unsigned i = 0; i < 12; i++) {
            (void)am_send(0, 0, BCOPY, LONG - i, NULL);
        }
        fake_event_qp_fatal(A0 + (int)(cut % 2));
        for (unsigned i = 0; i < 12; i++) {
            (void)am_send(0, 0, BCOPY, LONG - i, NULL);
        }
        pump_until(am_all_here());
        wait_standbys(2);
        check_kept();
        let_go(keeps);
    }
    assert_true(stats().failovers >= 5);
    assert_int_equal(refused, 0); /* some were held: without an offer in deliver() this fails */
    assert_int_equal(stats().ep_errors, 0);
    assert_int_equal(pool_of(1)->kept, 0);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_keep),
    GLUE_TEST(test_keep_no_short_ones),
    GLUE_TEST(test_keep_no_more_than),
    GLUE_TEST(test_keep_without_memory),
    GLUE_TEST(test_keep_held),
};

int glue_keep(void)
{
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
