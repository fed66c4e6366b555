/* SPDX-License-Identifier: BSD-3-Clause */

/* Connect options: two sides that differ meet in the middle; what cannot be is refused. */

#include "glue_tests.h"

#include "base/now.h"
#include "ctl/msg.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <stdio.h>
#include <string.h>

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

static struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static void open_two(uint64_t seed, const char *settings0, const char *settings1)
{
    world_open(seed, "");
    side_close(0);
    side_close(1);
    side_open(0, settings0);
    side_open(1, settings1);
}

static void limit_reads(int rail, uint32_t init, uint32_t resp)
{
    fake_limits(rail)->max_rd_init = init;
    fake_limits(rail)->max_rd_resp = resp;
}

static void test_sides_that_differ(void **state)
{
    struct ha_rc_path a, b;

    (void)state;
    world_open(310, "");
    side_close(0);
    side_close(1);
    limit_reads(A0, 4, 2);
    limit_reads(B0, 1, 8);
    limit_reads(A1, 16, 2);
    side_open(0, "TIMEOUT=12 RETRY_COUNT=5 RNR_RETRY_COUNT=3 MIN_RNR_TIMER=20 TRAFFIC_CLASS=104");
    side_open(1, "TIMEOUT=10 RETRY_COUNT=3 RNR_RETRY_COUNT=5 MIN_RNR_TIMER=4 SL=2");
    rma_open();
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 50);
    wait_standbys(2);
    a = fake_last_path(A0);
    b = fake_last_path(B0);
    assert_int_equal(a.timeout, 10);
    assert_int_equal(a.retry_count, 3);
    assert_int_equal(a.rnr_retry, 5);
    assert_int_equal(a.min_rnr_timer, 20);
    assert_int_equal(a.rd_init, 4); /* it could answer 8 */
    assert_int_equal(a.rd_resp, 1); /* it asks for no more */
    assert_int_equal(a.sl, 2);
    assert_int_equal(a.traffic_class, 104);
    assert_int_equal(b.timeout, 10);
    assert_int_equal(b.retry_count, 3);
    assert_int_equal(b.rnr_retry, 5);
    assert_int_equal(b.min_rnr_timer, 20);
    assert_int_equal(b.rd_init, 1);
    assert_int_equal(b.rd_resp, 4);
    assert_int_equal(b.sl, 2);
    assert_int_equal(b.traffic_class, 104);
    assert_int_equal(fake_last_path(A1).rd_init, 16);
    assert_int_equal(fake_last_path(B1).rd_init, 2); /* it is answered no more */
    rma_put(0, 0, 20);
    flush_all();
    rma_check(0);
    assert_int_equal(stats().ep_errors, 0);
}

/* ---- what a user sees ------------------------------------------------------------------ */

static void ignore(const char *name, void *arg)
{
    (void)name;
    (void)arg;
}

static void read_agreed(int s, char *to, size_t size)
{
    ucs_string_buffer_t text;
    char                path[160];

    snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p", (void *)world.side[s].worker, (void *)world.side[s].iface);
    assert_int_equal(ucs_vfs_path_list_dir(path, ignore, NULL), UCS_OK); /* makes the files */
    strcat(path, "/ha_connect_options");
    ucs_string_buffer_init(&text);
    assert_int_equal(ucs_vfs_path_read_file(path, &text), UCS_OK);
    snprintf(to, size, "%s", ucs_string_buffer_cstr(&text));
    ucs_string_buffer_cleanup(&text);
}

static void test_agreed_options_in_vfs(void **state)
{
    char text[1024], wanted[64];

    (void)state;
    open_two(314, "TIMEOUT=12", "TIMEOUT=11");
    read_agreed(0, text, sizeof(text));
    assert_string_equal(text, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    read_agreed(0, text, sizeof(text));
    snprintf(wanted, sizeof(wanted), "%016lx %s: timeout 11,", (unsigned long)iface_of(1)->pairs.cookie,
             world.names[A0]);
    assert_non_null(strstr(text, wanted));
    snprintf(wanted, sizeof(wanted), "%s: timeout 11,", world.names[A1]);
    assert_non_null(strstr(text, wanted));
}

/* ---- what cannot be ----------------------------------------------------------------------- */

/* Both sides say why, long before the time for connecting is over. */
static void test_segment_sizes_that_differ(void **state)
{
    uint64_t start;

    (void)state;
    open_two(311, "SEG_SIZE=8k", "SEG_SIZE=16k");
    start = now_ns();
    ep_open(0, 0);
    ep_open(1, 0);
    pump_until(world.side[0].errors == 1 && world.side[1].errors == 1);
    assert_soon(start, 10000000000ull);
    assert_int_equal(stats().connects + stats().accepts, 0);
    assert_int_equal(ep_try(0, 1), UCS_ERR_UNREACHABLE);
}

/* The accepting side has no endpoint of its own, and no probes that tell its options:
 * it has to say that it refuses. */
static void test_refused_by_the_accepting_side(void **state)
{
    uint64_t start;

    (void)state;
    open_two(312, "HEARTBEAT=0 SEG_SIZE=16k", "HEARTBEAT=0 SEG_SIZE=8k");
    start = now_ns();
    ep_open(0, 0);
    pump_until(world.side[0].errors == 1);
    assert_soon(start, 10000000000ull);
    assert_int_equal(stats().accepts, 0);
    assert_int_equal(world.side[1].errors, 0);
}

/* ---- made-up packets ----------------------------------------------------------------- */

static struct ha_packet_header header_of_stranger(uint64_t cookie)
{
    struct ha_packet_header header = {
        .type       = HA_PACKET_STATE,
        .carrier    = HA_CARRIER_TCP,
        .number     = 1,
        .count      = 1,
        .credits    = 8,
        .src_cookie = cookie,
        .dst_cookie = iface_of(0)->pairs.cookie,
        .opts       = iface_of(0)->pairs.opts,
    };

    for (int s = 0; s < HA_SLOTS; s++) {
        header.rails[s].up         = 1;
        header.rails[s].place      = (uint8_t)s;
        header.rails[s].link_layer = HA_LINK_ETHERNET;
    }
    return header;
}

/* Somebody new asks for a connection. Returns whether it is made. */
static int is_accepted(const struct ha_packet_header *header, unsigned slots)
{
    struct ha_packet_record record;
    struct uct_ha_iface    *iface = iface_of(0);
    struct uct_ha_peer     *peer;
    struct ha_secret        key;
    uint8_t                 bytes[HA_PACKET_MTU];
    size_t                  length = ha_packet_encode_header(bytes, header);
    int                     accepted;

    memset(&record, 0, sizeof(record));
    record.src_ep = 1;
    record.dst_ep = HA_EP_ANY;
    record.slots  = (uint8_t)slots;
    record.tag    = ha_pair_tag(header->src_cookie, iface->pairs.cookie, 0);
    for (int s = 0; s < HA_SLOTS; s++) {
        record.state.lane[s].st = record.state.lane[s].seen_st = HA_LANE_CLOSED;
    }
    length = ha_packet_encode_record(bytes, length, &record);
    key    = ha_seal_key(&iface->pairs.secret, header->src_cookie, header->dst_cookie);
    length = ha_seal_add(&key, bytes, length);
    pthread_mutex_lock(&iface->lanes.wake.lock);
    uct_ha_msg_tcp(&iface->ctl, bytes, length);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    pump_until(!iface->lanes.wake.pending);
    pthread_mutex_lock(&iface->lanes.wake.lock);
    peer     = uct_ha_peer_find(&iface->pairs, header->src_cookie);
    accepted = peer != NULL && !peer->refused && !ucs_list_is_empty(&peer->conns);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
    return accepted;
}

static void test_impossible_options_are_not_accepted(void **state)
{
    struct ha_packet_header header;
    uint64_t                cookie = 1000;

    (void)state;
    world_open(313, "DEAD_PEER=2s");
    header = header_of_stranger(++cookie);
    assert_true(is_accepted(&header, HA_SLOTS));
#define REFUSED(_what)                     \
    header = header_of_stranger(++cookie); \
    _what;                                 \
    assert_false(is_accepted(&header, HA_SLOTS))
    REFUSED(header.credits = 0);
    REFUSED(header.opts.seg_size = 0);
    REFUSED(header.opts.timeout = 0);
    REFUSED(header.opts.rail[0].rd_resp = 0);
    REFUSED(header.opts.rail[1].rd_init = 0);
    REFUSED(memset(&header.opts, 0, sizeof(header.opts)));
    REFUSED(memset(&header.opts, 0xff, sizeof(header.opts)));
#undef REFUSED
    header = header_of_stranger(++cookie); /* it has one rail */
    memset(&header.opts.rail[1], 0, sizeof(header.opts.rail[1]));
    assert_true(is_accepted(&header, 1));

    ep_open(0, 0); /* nobody else notices */
    ep_open(1, 0);
    am_exchange(0, 50);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_sides_that_differ),
    GLUE_TEST(test_agreed_options_in_vfs),
    GLUE_TEST(test_segment_sizes_that_differ),
    GLUE_TEST(test_refused_by_the_accepting_side),
    GLUE_TEST(test_impossible_options_are_not_accepted),
};

int glue_opts(void)
{
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
