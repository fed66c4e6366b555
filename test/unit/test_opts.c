/* SPDX-License-Identifier: BSD-3-Clause */

/* Connect options: what is refused, and what two sides that differ agree on. */

#include "core/ha_opts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CREDITS 8

static struct ha_opts some_opts(void)
{
    struct ha_opts opts = {
        .seg_size      = 8192,
        .rx_queue_len  = 128,
        .timeout       = 16,
        .retry_count   = 6,
        .rnr_retry     = 6,
        .min_rnr_timer = 12,
    };

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        opts.rail[slot].rd_init = opts.rail[slot].rd_resp = 16;
    }
    return opts;
}

/* ---- what is refused -------------------------------------------------------------- */

static void refused(struct ha_opts peer, unsigned credits, const char *field, const char *limit)
{
    struct ha_opts own        = some_opts();
    char           error[192] = "";

    if (ha_opts_check(&own, &peer, credits, HA_SLOTS, error, sizeof(error)) != -EPROTO) {
        fail_msg("%s was accepted", field);
    }
    if (strncmp(error, field, strlen(field)) != 0 || strstr(error, limit) == NULL) {
        fail_msg("'%s' does not begin with '%s' or does not say '%s'", error, field, limit);
    }
}

#define REFUSED(_field, _value, _says, _limit) \
    do {                                       \
        struct ha_opts _bad = some_opts();     \
        _bad._field         = (_value);        \
        refused(_bad, CREDITS, _says, _limit); \
    } while (0)

static void test_impossible_values_are_named(void **state)
{
    (void)state;
    refused(some_opts(), 0, "credits=0", "1 to 128");
    refused(some_opts(), 129, "credits=129", "1 to 128");
    REFUSED(rx_queue_len, 0, "rx_queue_len=0", "1 to 16384");
    REFUSED(rx_queue_len, 16385, "rx_queue_len=16385", "1 to 16384");
    REFUSED(seg_size, 0, "seg_size=0", "1024 to 1048576");
    REFUSED(seg_size, 1u << 31, "seg_size=2147483648", "1024 to 1048576");
    REFUSED(seg_size, 16384, "seg_size=16384", "ours is 8192");
    REFUSED(seg_size, 4096, "seg_size=4096", "UCX_HA_RC_SEG_SIZE");
    REFUSED(timeout, 0, "timeout=0", "1 to 31");
    REFUSED(timeout, 32, "timeout=32", "1 to 31");
    REFUSED(retry_count, 8, "retry_count=8", "0 to 7");
    REFUSED(rnr_retry, 8, "rnr_retry=8", "0 to 7");
    REFUSED(min_rnr_timer, 0, "min_rnr_timer=0", "1 to 31");
    REFUSED(min_rnr_timer, 255, "min_rnr_timer=255", "1 to 31");
    REFUSED(rail[0].rd_init, 0, "rd_init=0 of rail 0", "1 to 255");
    REFUSED(rail[1].rd_resp, 0, "rd_resp=0 of rail 1", "1 to 255");
    REFUSED(rail[1].sl, 16, "sl=16 of rail 1", "0 to 15");
}

static void test_borders_are_accepted(void **state)
{
    struct ha_opts own = some_opts(), peer = some_opts();
    char           error[192];

    (void)state;
    peer.timeout         = 1;
    peer.retry_count     = 0;
    peer.rnr_retry       = 7;
    peer.min_rnr_timer   = 31;
    peer.rx_queue_len    = HA_OPTS_QUEUE_MAX;
    peer.rail[0].rd_init = 255;
    peer.rail[0].rd_resp = 1;
    peer.rail[0].sl      = 15;
    assert_int_equal(ha_opts_check(&own, &peer, HA_OPTS_QUEUE_MAX, HA_SLOTS, error, sizeof(error)), 0);
    memset(&peer.rail[1], 0, sizeof(peer.rail[1])); /* a rail that one side does not have */
    assert_int_equal(ha_opts_check(&own, &peer, 1, 1, error, sizeof(error)), 0);
    assert_int_equal(ha_opts_check(&own, &peer, 1, 2, error, sizeof(error)), -EPROTO);
}

/* ---- what becomes of it --------------------------------------------------------------- */

/* Both sides; what they have to agree on is compared for every pair of values. */
static struct ha_lane_opts agree(const struct ha_opts *own, const struct ha_opts *peer)
{
    struct ha_lane_opts lane, other;

    ha_opts_agree(own, peer, 0, &lane);
    ha_opts_agree(peer, own, 0, &other);
    assert_int_equal(lane.timeout, other.timeout);
    assert_int_equal(lane.retry_count, other.retry_count);
    assert_int_equal(lane.rnr_retry, other.rnr_retry);
    assert_int_equal(lane.min_rnr_timer, other.min_rnr_timer);
    assert_int_equal(lane.rd_init, other.rd_resp);
    assert_int_equal(lane.rd_resp, other.rd_init);
    if (!ha_opts_classes_differ(own, peer, 0)) {
        assert_int_equal(lane.sl, other.sl);
        assert_int_equal(lane.traffic_class, other.traffic_class);
    }
    return lane;
}

static void test_two_sides_that_differ(void **state)
{
    struct ha_opts      own = some_opts(), peer = some_opts();
    struct ha_lane_opts lane;
    char                text[192];

    (void)state;
    own.timeout = 18, peer.timeout = 14;
    own.retry_count = 3, peer.retry_count = 5;
    own.rnr_retry = 2, peer.rnr_retry = 6;
    own.min_rnr_timer = 20, peer.min_rnr_timer = 4;
    own.rail[0]  = (struct ha_opts_rail){.rd_init = 16, .rd_resp = 8, .traffic_class = 106};
    peer.rail[0] = (struct ha_opts_rail){.rd_init = 4, .rd_resp = 1, .sl = 3};
    lane         = agree(&own, &peer);
    assert_string_equal(ha_lane_opts_text(&lane, text, sizeof(text)),
                        "timeout 14, retries 3, RNR retries 6, RNR timer 20, reads and atomics 1 out 4 in, "
                        "SL 3, traffic class 106");
}

static void test_every_pair_of_retries(void **state)
{
    struct ha_opts own = some_opts(), peer = some_opts();

    (void)state;
    for (own.retry_count = 0; own.retry_count <= 7; own.retry_count++) {
        for (peer.retry_count = 0; peer.retry_count <= 7; peer.retry_count++) {
            unsigned got = agree(&own, &peer).retry_count;

            assert_true(got <= own.retry_count || own.retry_count == 0);
            /* mlx5 waits longer without retries than with one: the RTO was fitted to the latter */
            assert_true(got > 0 || (own.retry_count == 0 && peer.retry_count == 0));
        }
    }
}

static void test_classes(void **state)
{
    struct ha_opts own = some_opts(), peer = some_opts();

    (void)state;
    own.rail[0].traffic_class = 106;
    assert_false(ha_opts_classes_differ(&own, &peer, 0));
    assert_int_equal(agree(&peer, &own).traffic_class, 106); /* no wish: that of the other */
    peer.rail[0].traffic_class = 32;
    assert_true(ha_opts_classes_differ(&own, &peer, 0));
    assert_false(ha_opts_classes_differ(&own, &peer, 1));
    assert_int_equal(agree(&own, &peer).traffic_class, 106);
    assert_int_equal(agree(&peer, &own).traffic_class, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impossible_values_are_named),
        cmocka_unit_test(test_borders_are_accepted),
        cmocka_unit_test(test_two_sides_that_differ),
        cmocka_unit_test(test_every_pair_of_retries),
        cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
