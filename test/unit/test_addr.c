/* SPDX-License-Identifier: BSD-3-Clause */

/* The packed addresses: what goes in comes out, what is not ours is refused,
 * and who can talk to whom. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "uct/addr.h"

static struct uct_ha_rail_where ipv4_rail(uint8_t net, uint8_t host, uint8_t place)
{
    struct uct_ha_rail_where where;

    memset(&where, 0, sizeof(where));
    where.addr.gid[10] = where.addr.gid[11] = 0xff;
    where.addr.gid[12]                      = 10;
    where.addr.gid[13]                      = 77;
    where.addr.gid[14]                      = net;
    where.addr.gid[15]                      = host;
    where.addr.prefix_len                   = 96 + 24;
    where.addr.link_layer                   = HA_LINK_ETHERNET;
    where.addr.mtu                          = 4096;
    where.place                             = place;
    return where;
}

static struct uct_ha_rail_where link_local_rail(uint8_t host, uint8_t place)
{
    struct uct_ha_rail_where where = ipv4_rail(0, host, place);

    memset(where.addr.gid, 0, 15);
    where.addr.gid[0]     = 0xfe;
    where.addr.gid[1]     = 0x80;
    where.addr.prefix_len = 0;
    return where;
}

static void test_rail_round_trip(void **state)
{
    struct uct_ha_rail_where  in = ipv4_rail(1, 2, 1), out;
    struct uct_ha_packed_rail packed;

    (void)state;
    in.addr.lid  = 0xbeef;
    in.addr.pkey = 0x8123;
    in.zone      = 0x89abcdef;
    uct_ha_addr_pack_rail(&in, &packed);
    assert_int_equal(uct_ha_addr_unpack_rail(&packed, &out), 0);
    assert_memory_equal(in.addr.gid, out.addr.gid, sizeof(in.addr.gid));
    assert_int_equal(out.addr.lid, 0xbeef);
    assert_int_equal(out.addr.mtu, 4096);
    assert_int_equal(out.addr.prefix_len, 120);
    assert_int_equal(out.place, 1);
    assert_true(out.zone == 0x89abcdef);
    assert_int_equal(packed.zone[0], 0x89);
    assert_int_equal(out.addr.pkey, 0x8123);
    assert_int_equal(packed.pkey[0], 0x81);
}

static void test_iface_round_trip(void **state)
{
    struct uct_ha_iface_where in = {.secret  = {{1, 2, 3, [15] = 16}},
                                    .slots   = 2,
                                    .ud_qpn  = {0x123456, 0xabcdef},
                                    .credits = 300,
                                    .caps    = 1,
                                    .standby = ipv4_rail(2, 9, 0)},
                              out;
    struct uct_ha_packed_iface packed;

    (void)state;
    uct_ha_addr_pack_iface(&in, &packed);
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), 0);
    assert_memory_equal(&out.secret, &in.secret, sizeof(in.secret));
    assert_memory_equal((const uint8_t *)&packed + 2, &in.secret, sizeof(in.secret));
    assert_true(out.cookie == ha_seal_name(&in.secret));
    assert_int_equal(sizeof(packed), 63);
    assert_int_equal(out.slots, 2);
    assert_int_equal(out.ud_qpn[0], 0x123456);
    assert_int_equal(out.ud_qpn[1], 0xabcdef);
    assert_int_equal(out.credits, 300);
    assert_memory_equal(out.standby.addr.gid, in.standby.addr.gid, 16);
}

static void test_foreign_addresses_are_refused(void **state)
{
    struct uct_ha_iface_where  in = {.slots = 1, .credits = 1, .standby = ipv4_rail(1, 1, 0)}, out;
    struct uct_ha_packed_iface packed, good;
    struct uct_ha_rail_where   rail;

    (void)state;
    uct_ha_addr_pack_iface(&in, &good);
    assert_int_equal(uct_ha_addr_unpack_iface(&good, &out), 0);

    packed         = good;
    packed.version = UCT_HA_ADDR_VERSION + 1;
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), -EPROTO);
    packed       = good;
    packed.slots = 0;
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), -EPROTO);
    packed       = good;
    packed.slots = 3;
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), -EPROTO);
    packed            = good;
    packed.credits[1] = 0;
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), -EPROTO);
    packed                    = good;
    packed.standby.prefix_len = 129;
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), -EPROTO);
    packed                    = good;
    packed.standby.link_layer = 7;
    assert_int_equal(uct_ha_addr_unpack_rail(&packed.standby, &rail), -EPROTO);
}

static int match(struct uct_ha_rail_where a, struct uct_ha_rail_where b)
{
    static const struct ha_match_opts opts  = {.allow_unknown_zone = 1};
    int                               there = uct_ha_where_match(&a, &b, &opts);

    assert_int_equal(there, uct_ha_where_match(&b, &a, &opts)); /* both sides must agree */
    return there;
}

static void test_same_network_decides(void **state)
{
    struct uct_ha_rail_where wide = ipv4_rail(3, 1, 0);

    (void)state;
    assert_true(match(ipv4_rail(1, 1, 0), ipv4_rail(1, 2, 1)));
    assert_false(match(ipv4_rail(1, 1, 0), ipv4_rail(2, 2, 0)));
    wide.addr.prefix_len = 96 + 16;
    assert_false(match(wide, ipv4_rail(3, 2, 0))); /* they do not agree on the network */
}

static void test_odd_prefix_length(void **state)
{
    struct uct_ha_rail_where a = ipv4_rail(1, 0x41, 0), b = ipv4_rail(1, 0x42, 0);

    (void)state;
    a.addr.prefix_len = b.addr.prefix_len = 96 + 31;
    assert_false(match(a, b));
    b.addr.gid[15] = 0x40;
    assert_true(match(a, b));
}

static void test_place_decides_where_the_network_is_unknown(void **state)
{
    (void)state;
    assert_true(match(link_local_rail(1, 0), link_local_rail(2, 0)));
    assert_false(match(link_local_rail(1, 0), link_local_rail(2, 1)));
    assert_true(match(link_local_rail(1, 0), link_local_rail(2, UCT_HA_PLACE_ALONE)));
}

static void test_link_layers_never_mix(void **state)
{
    struct uct_ha_rail_where ib = ipv4_rail(1, 1, 0);

    (void)state;
    ib.addr.link_layer = HA_LINK_IB;
    assert_false(match(ib, ipv4_rail(1, 1, 0)));
}

static void test_rail_without_address_may_match(void **state)
{
    struct uct_ha_rail_where down = ipv4_rail(9, 9, 1);

    (void)state;
    down.addr.mtu = 0;
    assert_true(match(down, ipv4_rail(1, 1, 1)));
    assert_false(match(down, ipv4_rail(1, 1, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rail_round_trip),
        cmocka_unit_test(test_iface_round_trip),
        cmocka_unit_test(test_foreign_addresses_are_refused),
        cmocka_unit_test(test_same_network_decides),
        cmocka_unit_test(test_odd_prefix_length),
        cmocka_unit_test(test_place_decides_where_the_network_is_unknown),
        cmocka_unit_test(test_link_layers_never_mix),
        cmocka_unit_test(test_rail_without_address_may_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
