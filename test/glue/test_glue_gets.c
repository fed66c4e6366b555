/* SPDX-License-Identifier: BSD-3-Clause */

/* How many bytes GETs may bring at a time: those beyond wait, whatever becomes of the others. */

#include "glue_tests.h"

#include "uct/iface.h"

#define LIMIT 8192

static int64_t left(void)
{
    return uct_ha_iface(world.side[0].iface)->flows.gets_left;
}

static void unpack_nothing(void *arg, const void *data, size_t length)
{
    (void)arg, (void)data, (void)length;
}

static ucs_status_t get(int i, enum how how)
{
    struct side *side = &world.side[0];
    uint64_t     from = (uintptr_t)rma_source(1, PLACES - 3);
    uct_iov_t    iov  = {.buffer = rma_source(0, PLACES - 2), .length = PLACE_LEN, .memh = side->memh, .count = 1};

    return how == ZCOPY ? uct_ep_get_zcopy(side->ep[i], &iov, 1, from, side->rkey.rkey, NULL)
                        : uct_ep_get_bcopy(side->ep[i], unpack_nothing, NULL, PLACE_LEN, from, side->rkey.rkey, NULL);
}

/* Begins as many as go, of both kinds; returns how many. */
static unsigned get_all(int i)
{
    unsigned count = 0;

    while (get(i, count % 2 == 0 ? ZCOPY : BCOPY) == UCS_INPROGRESS) {
        count++;
    }
    assert_int_equal(get(i, ZCOPY), UCS_ERR_NO_RESOURCE);
    assert_int_equal(get(i, BCOPY), UCS_ERR_NO_RESOURCE);
    return count;
}

static unsigned went;

static ucs_status_t try_again(uct_pending_req_t *self)
{
    ucs_status_t status = get(0, ZCOPY);

    (void)self;
    if (status != UCS_INPROGRESS) {
        return status;
    }
    went++;
    return UCS_OK;
}

/* The limit is of all endpoints; other operations go on; who waits gets his turn. */
static void test_get_bytes(void **state)
{
    uct_pending_req_t waits = {.func = try_again};

    (void)state;
    redundant_open(860, "TX_NUM_GET_BYTES=8k");
    ep_open(0, 1);
    ep_open(1, 1);
    am_exchange(1, 2);
    assert_int_equal(left(), LIMIT);
    assert_int_equal(get_all(0), LIMIT / PLACE_LEN + 1);
    assert_int_equal(get_all(1), 0);
    assert_true(left() <= 0);
    assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
    went = 0;
    assert_int_equal(uct_ep_pending_add(world.side[0].ep[0], &waits, 0), UCS_OK);
    assert_int_equal(went, 0);
    pump_until(went == 1);
    flush_all();
    assert_int_equal(left(), LIMIT);
    redundant_check();
}

/* GETs that are sent again count once. */
static void test_get_bytes_of_failovers(void **state)
{
    (void)state;
    redundant_open(861, "TX_NUM_GET_BYTES=8k");
    for (unsigned cut = 0; cut < 10; cut++) {
        assert_true(get_all(0) > 0);
        fake_event_qp_fatal(A0 + (int)(cut % 2));
        rma_get_loose(0, 0, 12);
        pump_until(stats().failovers >= 2 * cut + 2); /* the thread that hears of it may be late */
        flush_all();
        assert_int_equal(left(), LIMIT);
        wait_standbys(2);
    }
    redundant_check();
}

/* What ends otherwise gives its bytes back, too: the endpoint is cancelled, or destroyed. */
static void test_get_bytes_of_the_dead(void **state)
{
    (void)state;
    redundant_open(862, "TX_NUM_GET_BYTES=8k");
    for (int i = 1; i < 3; i++) {
        ep_open(0, i);
        ep_open(1, i);
        am_exchange(i, 2);
        assert_true(get_all(i) > 0);
        if (i == 1) {
            (void)uct_ep_flush(world.side[0].ep[i], UCT_FLUSH_FLAG_CANCEL, NULL);
        }
        ep_close(0, i);
        pump_until(left() == LIMIT);
    }
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_get_bytes),
    GLUE_TEST(test_get_bytes_of_failovers),
    GLUE_TEST(test_get_bytes_of_the_dead),
};

int glue_gets(void)
{
    return cmocka_run_group_tests_name("gets", tests, NULL, NULL);
}
