/* SPDX-License-Identifier: BSD-3-Clause */

/* Registrations: which rail knows which memory, from when on, and what becomes
 * of operations whose memory the new rail does not know. */

#include "glue_tests.h"

#include "uct/ep.h"
#include "uct/iface.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL (UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE)

/* Many small regions of side 0 that only it uses: sources and targets. Region n
 * belongs to the same place of the peer's memory. */
static struct {
    uint8_t   *bytes;
    size_t     length; /* of one */
    unsigned   count;
    uct_mem_h *memh;
} regions;

static uint8_t *region(unsigned n)
{
    return regions.bytes + n * regions.length;
}

static uint8_t *peer_place(unsigned n)
{
    return world.side[1].memory + n * regions.length;
}

static void fill(uint8_t *bytes, unsigned n, unsigned round)
{
    for (size_t i = 0; i < regions.length; i++) {
        bytes[i] = (uint8_t)(n * 7 + round * 31 + i * 3 + (i >> 8) + 1);
    }
}

static void check(const uint8_t *bytes, unsigned n, unsigned round)
{
    for (size_t i = 0; i < regions.length; i++) {
        if (bytes[i] != (uint8_t)(n * 7 + round * 31 + i * 3 + (i >> 8) + 1)) {
            fail_msg("region %u differs at byte %zu", n, i);
        }
    }
}

/* Two connected endpoints with a standby, and the regions. */
static void open_regions(uint64_t seed, unsigned count, size_t length)
{
    world_open(seed, "");
    memory_open(count * length);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    regions.count  = count;
    regions.length = length;
    regions.bytes  = calloc(count, length);
    regions.memh   = calloc(count, sizeof(*regions.memh));
    for (unsigned n = 0; n < count; n++) {
        assert_int_equal(uct_md_mem_reg(world.side[0].md, region(n), length, LOCAL, &regions.memh[n]), UCS_OK);
    }
}

static void close_regions(void)
{
    side_leave(0);
    for (unsigned n = 0; n < regions.count; n++) {
        (void)uct_md_mem_dereg(world.side[0].md, regions.memh[n]);
    }
    free(regions.bytes);
    free(regions.memh);
}

static ucs_status_t put(unsigned n, uct_completion_t *comp)
{
    struct side *side = &world.side[0];
    uct_iov_t    iov  = {.buffer = region(n), .length = regions.length, .memh = regions.memh[n], .count = 1};

    return uct_ep_put_zcopy(side->ep[0], &iov, 1, (uintptr_t)peer_place(n), side->rkey.rkey, comp);
}

static ucs_status_t get(unsigned n, uct_completion_t *comp)
{
    struct side *side = &world.side[0];
    uct_iov_t    iov[2]; /* in two pieces */

    memset(iov, 0, sizeof(iov));
    for (unsigned i = 0; i < 2; i++) {
        iov[i].buffer = region(n) + i * 100;
        iov[i].memh   = regions.memh[n];
        iov[i].count  = 1;
    }
    iov[0].length = 100;
    iov[1].length = regions.length - 100;
    return uct_ep_get_zcopy(side->ep[0], iov, 2, (uintptr_t)peer_place(n), side->rkey.rkey, comp);
}

static void put_all(unsigned round)
{
    for (unsigned n = 0; n < regions.count; n++) {
        fill(region(n), n, round);
        while (put(n, NULL) == UCS_ERR_NO_RESOURCE) {
            pump();
        }
    }
    flush_all();
    for (unsigned n = 0; n < regions.count; n++) {
        check(peer_place(n), n, round);
    }
}

static uint64_t mrs_on(const char *name)
{
    struct uct_ha_rail_stats rail;

    for (unsigned i = 0; uct_ha_rail_stats_get(i, &rail, sizeof(rail)) != -EINVAL; i++) {
        if (strcmp(rail.name, name) == 0) {
            return rail.mrs;
        }
    }
    return 0;
}

/* Thousands of regions, some of them in use: the failover registers none. */
static void test_failover_with_many_regions(void **state)
{
    uint64_t before, in_switch, posted = 0, standby;

    (void)state;
    open_regions(80, 4000, 1500);
    standby = mrs_on("a1:1");
    assert_true(mrs_on("a0:1") >= 4000);
    assert_true(standby < 20); /* receive and bounce buffers, and what has a remote key */
    before    = fake_counts().mr_regs;
    in_switch = fake_counts().mr_regs_in_switch;

    fake_set(A0, FAKE_STALL, 950);
    for (unsigned n = 0; n < regions.count; n++) {
        fill(region(n), n, 0);
    }
    while (put((unsigned)posted, NULL) == UCS_INPROGRESS) {
        posted++;
    }
    assert_true(posted > 10);
    assert_int_equal(mrs_on("a1:1"), standby);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    flush_all();
    assert_int_equal(fake_counts().mr_regs_in_switch, in_switch);
    assert_true(mrs_on("a1:1") <= standby + 1); /* at most another chunk of bounce buffers */
    assert_int_equal(stats().late_mrs, 0);
    assert_true(stats().bounced > 0);
    for (unsigned n = 0; n < posted; n++) {
        check(peer_place(n), n, 0);
    }

    put_all(1); /* from now on the other rail needs them: each once */
    assert_int_equal(stats().late_mrs, 4000);
    put_all(2);
    assert_int_equal(stats().late_mrs, 4000);
    assert_in_range(fake_counts().mr_regs, before + 4000, before + 4000 + 8);
    assert_int_equal(fake_counts().mr_regs_in_switch, in_switch);
    close_regions();
}

/* As when it is full: operations go to another ring. */
static void grow_log(void)
{
    struct uct_ha_txlog *tx = &uct_ha_ep_flow(world.side[0].ep[0])->tx;

    tx->length *= 2;
    assert_int_equal(uct_ha_txlog_grow(tx), 0);
}

static void get_across(uint64_t seed, int grows)
{
    unsigned posted = 0;

    open_regions(seed, 40, 3000);
    for (unsigned n = 0; n < regions.count; n++) {
        fill(peer_place(n), n, 3);
    }
    fake_set(A0, FAKE_STALL, 950);
    while (posted < regions.count && get(posted, NULL) == UCS_INPROGRESS) {
        posted++;
    }
    fake_port(A0, 0);
    if (grows) {
        pump_until(stats().bounced > 0);
        grow_log();
    }
    flush_all();
    assert_true(stats().bounced > 0);
    assert_int_equal(stats().late_mrs, 0);
    for (unsigned n = 0; n < posted; n++) {
        check(region(n), n, 3);
    }
    close_regions();
}

static void test_get_across(void **state)
{
    (void)state;
    get_across(81, 0);
}

/* Its answer comes to a bounce buffer, and from there to where its entry says, which is elsewhere by then. */
static void test_get_across_as_the_log_grows(void **state)
{
    (void)state;
    get_across(84, 1);
}

/* Too large for a bounce buffer: registered when it is sent again, not before. */
static void test_large_across(void **state)
{
    (void)state;
    open_regions(82, 12, 100000);
    fake_set(A0, FAKE_STALL, 950);
    for (unsigned n = 0; n < regions.count; n++) {
        fill(region(n), n, 4);
        assert_int_equal(put(n, NULL), UCS_INPROGRESS);
    }
    assert_int_equal(am_send(0, 0, SHORT, 10, NULL), UCS_OK);
    fake_port(A0, 0);
    flush_all();
    pump_until(am_all_here());
    for (unsigned n = 0; n < regions.count; n++) {
        check(peer_place(n), n, 4);
    }
    assert_true(stats().late_mrs > 0 && stats().late_mrs <= regions.count);
    close_regions();
}

/* What cannot be registered any more and is too large to copy ends with an
 * error; the rest goes on. */
static void test_late_registration_refused(void **state)
{
    struct counted done;

    (void)state;
    open_regions(83, 2, 100000);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    fake_fail(FAKE_CALL_MR_REG, A1, -ENOMEM, 1000);
    assert_int_equal(put(0, count_completion(&done)), UCS_INPROGRESS);
    assert_int_equal(am_send(0, 0, SHORT, 10, NULL), UCS_OK);
    assert_int_equal(am_send(0, 0, ZCOPY, 10, NULL), UCS_OK); /* copied */
    pump_until(done.called == 1);
    assert_int_equal(done.status, UCS_ERR_IO_ERROR);
    pump_until(am_all_here());
    fake_fail(FAKE_CALL_MR_REG, A1, 0, 0);
    fill(region(0), 0, 5);
    assert_int_equal(put(0, count_completion(&done)), UCS_INPROGRESS);
    pump_until(done.called == 1);
    assert_int_equal(done.status, UCS_OK);
    check(peer_place(0), 0, 5);

    /* a write that nobody would miss: the endpoints end */
    fake_fail(FAKE_CALL_MR_REG, A1, -ENOMEM, 1000);
    assert_int_equal(put(1, NULL), UCS_INPROGRESS);
    pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
    assert_int_equal(world.side[0].error, UCS_ERR_IO_ERROR);
    close_regions();
}

/* The user destroys his endpoint and takes his memory back, then the rail goes:
 * what was under way is sent from copies. */
static void test_memory_taken_back(void **state)
{
    (void)state;
    open_regions(84, 20, 2000);
    fake_set(A0, FAKE_STALL, 1000);
    for (unsigned n = 0; n < regions.count; n++) {
        fill(region(n), n, 6);
        assert_int_equal(put(n, NULL), UCS_INPROGRESS);
    }
    ep_close(0, 0);
    for (unsigned n = 0; n < regions.count; n++) {
        (void)uct_md_mem_dereg(world.side[0].md, regions.memh[n]);
    }
    memset(regions.bytes, 0, regions.count * regions.length);
    regions.count = 0;
    fake_port(A0, 0);
    flush_all_of(0);
    for (unsigned n = 0; n < 20; n++) {
        check(peer_place(n), n, 6);
    }
    close_regions();
}

#define HUGE_BYTES (2u << 20)

/* Of the buffers on the list, those in a huge page of their pool. */
static unsigned in_huge_pages(const struct uct_ha_desc *list)
{
    unsigned count = 0;

    for (; list != NULL; list = list->next) {
        int huge = list->mem->length == HUGE_BYTES;

        assert_true(!huge || (uintptr_t)list->mem->address % HUGE_BYTES == 0);
        count += (unsigned)huge;
    }
    return count;
}

/* The first some hundred bounce buffers come in small pieces, many of them in huge pages; but when so much cannot be
 * registered at once, in small pieces again. */
static void test_many_buffers(void **state)
{
    struct uct_ha_desc_pool *pool;
    struct uct_ha_desc      *few = NULL, *many = NULL, *again = NULL;

    (void)state;
    world_open(880, "SEG_SIZE=8k");
    pool = &uct_ha_iface(world.side[0].iface)->lanes.pool;
    assert_int_equal(uct_ha_desc_stock(pool, 128, &few), 0);
    assert_int_equal(in_huge_pages(few), 0);
    assert_int_equal(uct_ha_desc_stock(pool, 1000, &many), 0);
    assert_in_range(in_huge_pages(many), 1000 - 4 * 64, 1000);
    fake_fail(FAKE_CALL_MR_REG, A0, -ENOMEM, 1);
    assert_int_equal(uct_ha_desc_stock(pool, 600, &again), 0);
    assert_in_range(in_huge_pages(again), 300, 600 - 1);
    uct_ha_desc_return_list(pool, few);
    uct_ha_desc_return_list(pool, many);
    uct_ha_desc_return_list(pool, again);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_failover_with_many_regions),
    GLUE_TEST(test_get_across),
    GLUE_TEST(test_get_across_as_the_log_grows),
    GLUE_TEST(test_large_across),
    GLUE_TEST(test_late_registration_refused),
    GLUE_TEST(test_memory_taken_back),
    GLUE_TEST(test_many_buffers),
};

int glue_memory(void)
{
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
