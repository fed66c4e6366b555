/* SPDX-License-Identifier: BSD-3-Clause */

/* Which rails are taken between two hosts. What makes two rails match is also in
 * test_addr. */

#include "topo/ha_match.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct ha_match_rail roce(uint8_t net, uint8_t host, ha_zone_t zone)
{
    struct ha_match_rail rail;

    memset(&rail, 0, sizeof(rail));
    rail.addr = (struct ha_rail_addr){
        .gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [14] = net, [15] = host },
        .prefix_len = 120, .link_layer = HA_LINK_ETHERNET, .mtu = 4096
    };
    rail.zone   = zone;
    rail.place  = HA_MATCH_PLACE_ALONE;
    rail.active = 1;
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

static const struct ha_match_opts defaults = { .allow_unknown_zone = 1, .prefer_ib = 1 };

static enum ha_match match(struct ha_match_rail a, struct ha_match_rail b,
                           struct ha_match_opts opts)
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

struct choice {
    int own, peer, standby_own, standby_peer;
};

static struct choice select_rails(const struct ha_match_rail *own, int num_own,
                                  const struct ha_match_rail *peer, int num_peer,
                                  struct ha_match_opts opts, uint32_t turn)
{
    struct ha_match_pair primary, standby;
    int                  ret;

    ret = ha_match_select(own, num_own, peer, num_peer, &opts, turn, &primary, &standby);
    assert_int_equal(ret, primary.own < 0 ? -ENOENT : 0);
    return (struct choice){ primary.own, primary.peer, standby.own, standby.peer };
}

static void expect(struct choice is, int own, int peer, int standby_own, int standby_peer)
{
    if (is.own != own || is.peer != peer || is.standby_own != standby_own ||
        is.standby_peer != standby_peer) {
        fail_msg("%d-%d, standby %d-%d; not %d-%d, standby %d-%d", is.own, is.peer,
                 is.standby_own, is.standby_peer, own, peer, standby_own, standby_peer);
    }
}

/* Rail A cannot reach rail B, whatever the order in which the hosts have them. */
static void test_separate_fabrics(void **state)
{
    struct ha_match_rail own[2]  = { roce(1, 1, 0), roce(2, 1, 0) };
    struct ha_match_rail peer[2] = { roce(2, 2, 0), roce(1, 2, 0) };

    (void)state;
    expect(select_rails(own, 2, peer, 2, defaults, 0), 0, 1, 1, 0);
    expect(select_rails(own, 2, peer, 2, defaults, 1), 1, 0, 0, 1);
    expect(select_rails(own, 2, peer, 2, defaults, 2), 0, 1, 1, 0);
}

/* All reach all: every turn another pair, and a standby that shares no rail. */
static void test_one_fabric_in_turn(void **state)
{
    struct ha_match_rail own[2]  = { roce(1, 1, 0), roce(1, 2, 0) };
    struct ha_match_rail peer[2] = { roce(1, 3, 0), roce(1, 4, 0) };

    (void)state;
    expect(select_rails(own, 2, peer, 2, defaults, 0), 0, 0, 1, 1);
    expect(select_rails(own, 2, peer, 2, defaults, 1), 0, 1, 1, 0);
    expect(select_rails(own, 2, peer, 2, defaults, 2), 1, 0, 0, 1);
    expect(select_rails(own, 2, peer, 2, defaults, 3), 1, 1, 0, 0);
    expect(select_rails(own, 2, peer, 2, defaults, UINT32_MAX), 1, 1, 0, 0);
}

static void test_different_numbers_of_rails(void **state)
{
    struct ha_match_rail own[3]  = { roce(1, 1, 0), roce(2, 1, 0), roce(3, 1, 0) };
    struct ha_match_rail peer[2] = { roce(3, 2, 0), roce(1, 2, 0) };

    (void)state;
    expect(select_rails(own, 3, peer, 2, defaults, 0), 0, 1, 2, 0);
    expect(select_rails(own, 3, peer, 1, defaults, 0), 2, 0, -1, -1); /* single rail there */
    expect(select_rails(own, 1, peer, 2, defaults, 7), 0, 1, -1, -1); /* single rail here */
    expect(select_rails(own + 1, 1, peer, 2, defaults, 0), -1, -1, -1, -1);
    expect(select_rails(own, 0, peer, 2, defaults, 0), -1, -1, -1, -1);
}

static void test_only_active_rails(void **state)
{
    struct ha_match_rail own[2]  = { roce(1, 1, 0), roce(2, 1, 0) };
    struct ha_match_rail peer[2] = { roce(1, 2, 0), roce(2, 2, 0) };

    (void)state;
    own[0].active = 0;
    expect(select_rails(own, 2, peer, 2, defaults, 0), 1, 1, -1, -1);
    peer[1].active = 0;
    expect(select_rails(own, 2, peer, 2, defaults, 0), -1, -1, -1, -1);
}

static void test_zone_pass_comes_first(void **state)
{
    struct ha_match_rail own[3]  = { roce(1, 1, 0), roce(2, 1, 7), roce(3, 1, 8) };
    struct ha_match_rail peer[3] = { roce(1, 2, 0), roce(9, 2, 7), roce(3, 2, 9) };
    struct ha_match_opts strict  = defaults;

    (void)state;
    strict.allow_unknown_zone = 0;
    for (uint32_t turn = 0; turn < 5; turn++) {
        expect(select_rails(own, 3, peer, 3, defaults, turn), 1, 1, 0, 0);
        expect(select_rails(own, 3, peer, 3, strict, turn), 1, 1, -1, -1);
    }
    own[1].zone = 6; /* two known zones that differ never match, allowed or not */
    expect(select_rails(own + 1, 2, peer + 1, 2, defaults, 0), -1, -1, -1, -1);
}

static void test_infiniband_preferred(void **state)
{
    struct ha_match_rail own[3]  = { roce(1, 1, 0), ib(1, 1, 0), roce(2, 1, 0) };
    struct ha_match_rail peer[3] = { roce(1, 2, 0), roce(2, 2, 0), ib(1, 2, 0) };
    struct ha_match_opts equal   = defaults;

    (void)state;
    equal.prefer_ib = 0;
    for (uint32_t turn = 0; turn < 4; turn++) {
        expect(select_rails(own, 3, peer, 3, defaults, turn), 1, 2, turn % 2 ? 2 : 0,
               turn % 2 ? 1 : 0);
    }
    expect(select_rails(own, 3, peer, 3, equal, 0), 0, 0, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zones_before_networks),
        cmocka_unit_test(test_a_remedy_for_each_reason),
        cmocka_unit_test(test_address_families_never_meet),
        cmocka_unit_test(test_separate_fabrics),
        cmocka_unit_test(test_one_fabric_in_turn),
        cmocka_unit_test(test_different_numbers_of_rails),
        cmocka_unit_test(test_only_active_rails),
        cmocka_unit_test(test_zone_pass_comes_first),
        cmocka_unit_test(test_infiniband_preferred),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
