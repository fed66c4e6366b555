/* SPDX-License-Identifier: BSD-3-Clause */

/* Which rails of two hosts can talk, and why not; more of it in test_addr. */

#include "topo/ha_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct ha_match_rail roce(uint8_t net, uint8_t host, ha_zone_t zone)
{
    struct ha_match_rail rail;

    memset(&rail, 0, sizeof(rail));
    rail.addr  = (struct ha_rail_addr){.gid        = {[10] = 0xff, [11] = 0xff, [12] = 10, [14] = net, [15] = host},
                                       .prefix_len = 120,
                                       .link_layer = HA_LINK_ETHERNET,
                                       .mtu        = 4096};
    rail.zone  = zone;
    rail.place = HA_MATCH_PLACE_ALONE;
    return rail;
}

static struct ha_match_rail ib(uint8_t subnet, uint8_t host, ha_zone_t zone)
{
    struct ha_match_rail rail = roce(0, 0, zone);

    memset(rail.addr.gid, 0, sizeof(rail.addr.gid));
    rail.addr.gid[0]     = 0xfe;
    rail.addr.gid[7]     = subnet;
    rail.addr.gid[15]    = host;
    rail.addr.prefix_len = 0;
    rail.addr.link_layer = HA_LINK_IB;
    return rail;
}

static const struct ha_match_opts defaults = {.allow_unknown_zone = 1, .prefer_ib = 1};

static enum ha_match match(struct ha_match_rail a, struct ha_match_rail b, struct ha_match_opts opts)
{
    assert_int_equal(ha_match_rails(&a, &b, &opts), ha_match_rails(&b, &a, &opts));
    return ha_match_rails(&a, &b, &opts);
}

static void test_zones_before_networks(void **state)
{
    struct ha_match_opts strict = defaults;

    (void)state;
    strict.allow_unknown_zone = 0;
    assert_int_equal(match(roce(1, 1, 5), roce(1, 2, 5), defaults), HA_MATCH_ZONE);
    assert_int_equal(match(roce(1, 1, 5), roce(2, 2, 5), defaults), HA_MATCH_ZONE); /* routed */
    assert_int_equal(match(roce(1, 1, 5), roce(1, 2, 6), defaults), HA_MATCH_OTHER_ZONE);
    assert_int_equal(match(roce(1, 1, 5), roce(1, 2, 0), defaults), HA_MATCH_NETWORK);
    assert_int_equal(match(roce(1, 1, 5), roce(1, 2, 0), strict), HA_MATCH_UNKNOWN_ZONE);
    assert_int_equal(match(roce(1, 1, 0), roce(1, 2, 0), strict), HA_MATCH_UNKNOWN_ZONE);
    assert_int_equal(match(roce(1, 1, 0), roce(2, 2, 0), defaults), HA_MATCH_OTHER_NETWORK);
    assert_int_equal(match(roce(1, 1, 5), ib(1, 2, 5), defaults), HA_MATCH_OTHER_LINK);
    assert_int_equal(match(ib(1, 1, 0), ib(1, 2, 0), defaults), HA_MATCH_NETWORK);
    assert_int_equal(match(ib(1, 1, 0), ib(2, 2, 0), defaults), HA_MATCH_OTHER_NETWORK);
}

static void test_a_remedy_for_each_reason(void **state)
{
    (void)state;
    assert_string_equal(ha_match_remedy(HA_MATCH_ZONE), "");
    assert_string_equal(ha_match_remedy(HA_MATCH_NETWORK), "");
    assert_non_null(strstr(ha_match_remedy(HA_MATCH_OTHER_LINK), "UCX_HA_RC_RAILS"));
    assert_non_null(strstr(ha_match_remedy(HA_MATCH_OTHER_ZONE), "UCX_HA_RC_ZONES"));
    assert_non_null(strstr(ha_match_remedy(HA_MATCH_UNKNOWN_ZONE), "UCX_HA_RC_ALLOW_UNKNOWN_ZONE"));
    assert_non_null(strstr(ha_match_remedy(HA_MATCH_OTHER_NETWORK), "UCX_HA_RC_GID_INDEX"));
}

static enum ha_match match_keys(uint16_t a, uint16_t b)
{
    struct ha_match_rail one = ib(1, 1, 5), other = ib(1, 2, 5);

    one.addr.pkey   = a;
    other.addr.pkey = b;
    return match(one, other, defaults);
}

static void test_partitions(void **state)
{
    (void)state;
    assert_int_equal(match_keys(0xffff, 0xffff), HA_MATCH_ZONE);
    assert_int_equal(match_keys(0xffff, 0x7fff), HA_MATCH_ZONE); /* one full member is enough */
    assert_int_equal(match_keys(0x7fff, 0x7fff), HA_MATCH_OTHER_PARTITION);
    assert_int_equal(match_keys(0x8001, 0xffff), HA_MATCH_OTHER_PARTITION); /* though of one zone */
    assert_int_equal(match_keys(0x8001, 0), HA_MATCH_ZONE);                 /* unknown */
    assert_int_equal(match_keys(0, 0x0001), HA_MATCH_ZONE);
    assert_non_null(strstr(ha_match_remedy(HA_MATCH_OTHER_PARTITION), "UCX_HA_RC_PKEY_INDEX"));
}

/* A rail that lost its IPv4 address for a moment has a link-local one. */
static void test_address_families_never_meet(void **state)
{
    struct ha_match_rail lost = ib(0, 1, 5);

    (void)state;
    lost.addr.link_layer = HA_LINK_ETHERNET;
    assert_int_equal(match(lost, roce(1, 2, 5), defaults), HA_MATCH_OTHER_NETWORK);
    assert_int_equal(match(lost, lost, defaults), HA_MATCH_ZONE);
    lost.zone = 0;
    assert_int_equal(match(lost, roce(1, 2, 5), defaults), HA_MATCH_OTHER_NETWORK);
    assert_int_equal(match(lost, lost, defaults), HA_MATCH_NETWORK);
}

/* ---- priorities --------------------------------------------------------------------------- */

static uint64_t draw(void)
{
    static uint64_t state = 20261122;

    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 33;
}

static unsigned priority(int prefer_ib, int spread, uint8_t link_layer)
{
    struct ha_match_opts opts = {.prefer_ib = prefer_ib, .spread = spread};

    return ha_match_priority(&opts, link_layer, draw());
}

/* One side that prefers InfiniBand is enough, whatever the draws. */
static void test_infiniband_before_chance(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        unsigned spread = draw() & 1;
        unsigned ib     = priority(1, spread, HA_LINK_IB) + priority(0, spread, HA_LINK_IB);
        unsigned roce   = priority(1, spread, HA_LINK_ETHERNET) + priority(0, spread, HA_LINK_ETHERNET);

        assert_true(ib > roce);
        assert_in_range(ib, 1, 255); /* UCX adds both sides' in a byte */
    }
    assert_int_equal(priority(1, 0, HA_LINK_ETHERNET), priority(0, 0, HA_LINK_IB));
}

/* Of the rails of two processes, each on a fabric of its own, UCX takes the first with the
 * largest sum: how many of 10000 pairs of processes take each? */
static void count_choices(unsigned rails, int spread, unsigned *count)
{
    for (unsigned pair = 0; pair < 10000; pair++) {
        unsigned best = 0, chosen = 0;

        for (unsigned i = 0; i < rails; i++) {
            unsigned sum = priority(1, spread, HA_LINK_IB) + priority(1, spread, HA_LINK_IB);

            if (sum > best) {
                best   = sum;
                chosen = i;
            }
        }
        count[chosen]++;
    }
}

static void test_peers_are_spread(void **state)
{
    (void)state;
    for (unsigned rails = 1; rails <= 8; rails++) {
        unsigned count[8] = {0}, first[8] = {0};

        count_choices(rails, 1, count);
        count_choices(rails, 0, first);
        for (unsigned i = 0; i < rails; i++) { /* ties go to the first ones */
            assert_in_range(count[i], 10000 / rails * 7 / 10, 10000 / rails * 13 / 10);
        }
        assert_int_equal(first[0], 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zones_before_networks),       cmocka_unit_test(test_a_remedy_for_each_reason),
        cmocka_unit_test(test_address_families_never_meet), cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_infiniband_before_chance),    cmocka_unit_test(test_peers_are_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
