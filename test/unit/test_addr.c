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

#include "uct/addr_cm.h"

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

static struct uct_ha_rail_where infiniband_rail(void)
{
    struct uct_ha_rail_where where = link_local_rail(7, 1);

    where.addr.link_layer = HA_LINK_IB;
    where.addr.lid        = 0xbeef;
    where.addr.pkey       = 0x8123;
    return where;
}

static struct uct_ha_rail_where ipv6_rail(void)
{
    struct uct_ha_rail_where where = link_local_rail(9, 0);

    where.addr.gid[0]     = 0xfd;
    where.addr.prefix_len = 64;
    return where;
}

static void expect_same_rail(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b)
{
    assert_memory_equal(a->addr.gid, b->addr.gid, sizeof(a->addr.gid));
    assert_int_equal(a->addr.lid, b->addr.lid);
    assert_int_equal(a->addr.link_layer, b->addr.link_layer);
    assert_int_equal(a->addr.prefix_len, b->addr.prefix_len);
    assert_int_equal(a->addr.mtu, b->addr.mtu);
    assert_int_equal(a->addr.pkey, b->addr.pkey);
    assert_int_equal(a->place, b->place);
    assert_int_equal(a->zone, b->zone);
}

static struct uct_ha_dev_where through(const struct uct_ha_dev_where *in)
{
    struct uct_ha_packed_dev packed;
    struct uct_ha_dev_where  out;

    memset(&out, 0x55, sizeof(out));
    uct_ha_addr_pack_dev(in, &packed);
    assert_int_equal(uct_ha_addr_unpack_dev(&packed, &out), 0);
    expect_same_rail(&in->primary, &out.primary);
    assert_memory_equal(in->tcp.ip, out.tcp.ip, 4);
    assert_int_equal(in->tcp.port, out.tcp.port);
    return out;
}

/* Two rails with IPv4, as jobs have them: nothing is missing. */
static void test_ipv4_has_room_for_the_standby(void **state)
{
    struct uct_ha_dev_where in = {.primary     = ipv4_rail(1, 2, 1),
                                  .standby     = ipv4_rail(2, 9, 0),
                                  .standby_qpn = 0xabcdef,
                                  .tcp         = {{10, 0, 0, 1}, 0x1234}},
                            out;

    (void)state;
    in.primary.zone         = 0xabcdef;
    in.standby.zone         = 0x123456;
    in.primary.addr.pkey    = 0x8123;
    in.standby.addr.pkey    = 0x8124;
    in.standby.addr.mtu     = 1024;
    in.primary.addr.gid[12] = 172;
    out                     = through(&in);
    assert_int_equal(out.standby_qpn, 0xabcdef);
    expect_same_rail(&in.standby, &out.standby);
    for (unsigned bits = 0; bits <= 32; bits++) {
        in.primary.addr.prefix_len = in.standby.addr.prefix_len = (uint8_t)(96 + bits);
        in.standby.addr.mtu                                     = (uint16_t)(256u << bits % 5);
        out                                                     = through(&in);
        expect_same_rail(&in.standby, &out.standby);
    }
    in.primary.addr.prefix_len = in.standby.addr.prefix_len = 0;
    out                                                     = through(&in);
    expect_same_rail(&in.standby, &out.standby);
}

/* The standby is not known then, and its packets say it. */
static void test_other_addresses_have_no_room_for_it(void **state)
{
    struct uct_ha_dev_where in[] = {{.primary = infiniband_rail()},
                                    {.primary = ipv6_rail()},
                                    {.primary = ipv4_rail(1, 2, 0)},
                                    {.primary = ipv4_rail(1, 2, UCT_HA_PLACE_ALONE)}},
                            out;

    (void)state;
    for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
        in[i].primary.zone = 0x00ffee;
        in[i].standby      = i == 2 ? ipv6_rail() : ipv4_rail(2, 2, 0);
        out                = through(&in[i]);
        assert_int_equal(out.standby.addr.mtu, 0);
    }
}

/* The zone of a standby that comes up later is known already. */
static void test_rails_without_address(void **state)
{
    struct uct_ha_dev_where in = {.primary = ipv4_rail(1, 2, 0), .standby = ipv4_rail(2, 9, 1), .standby_qpn = 77}, out;

    (void)state;
    memset(&in.standby.addr.gid, 0, sizeof(in.standby.addr.gid));
    in.standby.addr.mtu = in.standby.addr.prefix_len = 0;
    in.standby.zone                                  = 5;
    out                                              = through(&in);
    expect_same_rail(&in.standby, &out.standby);
    assert_int_equal(out.standby_qpn, 77);
    in.standby                 = ipv4_rail(2, 9, 1);
    in.primary.addr.mtu        = 0;
    in.primary.addr.prefix_len = 0;
    memset(&in.primary.addr.gid, 0, sizeof(in.primary.addr.gid));
    out = through(&in);
    expect_same_rail(&in.standby, &out.standby);
}

static void test_iface_round_trip(void **state)
{
    struct uct_ha_iface_where in = {.secret  = {{1, 2, 3, [15] = 16}},
                                    .slots   = 2,
                                    .ud_qpn  = 0x123456,
                                    .credits = 256,
                                    .caps    = 9},
                              out;
    struct uct_ha_packed_iface packed;

    (void)state;
    uct_ha_addr_pack_iface(&in, &packed);
    assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), 0);
    assert_memory_equal(&out.secret, &in.secret, sizeof(in.secret));
    assert_memory_equal((const uint8_t *)&packed + 2, &in.secret, sizeof(in.secret));
    assert_true(out.cookie == ha_seal_name(&in.secret));
    assert_int_equal(sizeof(packed), 21);
    assert_int_equal(out.slots, 2);
    assert_int_equal(out.ud_qpn, 0x123456);
    assert_int_equal(out.credits, 256);
    assert_int_equal(out.caps, 9);
    for (unsigned log = 0; log <= 14; log++) { /* never more than there are */
        in.slots   = 1 + log % 2;
        in.credits = (1u << log) + (1u << log) / 2;
        uct_ha_addr_pack_iface(&in, &packed);
        assert_int_equal(uct_ha_addr_unpack_iface(&packed, &out), 0);
        assert_int_equal(out.credits, 1u << log);
        assert_int_equal(out.slots, in.slots);
    }
}

static void expect_refused(const struct uct_ha_packed_dev *good, size_t at, uint8_t value)
{
    struct uct_ha_packed_dev packed = *good;
    struct uct_ha_dev_where  out;

    assert_int_equal(uct_ha_addr_unpack_dev(&packed, &out), 0);
    ((uint8_t *)&packed)[at] = value;
    assert_int_equal(uct_ha_addr_unpack_dev(&packed, &out), -EPROTO);
}

static void test_foreign_addresses_are_refused(void **state)
{
    struct uct_ha_dev_where    in    = {.primary = ipv4_rail(1, 1, 0), .standby = ipv4_rail(2, 1, 1)};
    struct uct_ha_iface_where  where = {.slots = 1, .credits = 1}, out;
    struct uct_ha_packed_iface iface;
    struct uct_ha_packed_dev   good;

    (void)state;
    uct_ha_addr_pack_dev(&in, &good);
    expect_refused(&good, 0, UCT_HA_ADDR_VERSION - 1);
    expect_refused(&good, 0, UCT_HA_ADDR_VERSION + 1);
    expect_refused(&good, 1, 3 | 2 << 2 | 5 << 4); /* a place that is none */
    expect_refused(&good, 1, 3 | 6 << 4);          /* an MTU that is none */
    expect_refused(&good, 1, 3);                   /* an address that is none */
    expect_refused(&good, 17, 34);                 /* a network of 33 bits */
    expect_refused(&good, 22, 6 * 34);             /* of the standby: an MTU */
    expect_refused(&good, 22, 0);                  /* ... an address that is none */
    in.primary.place = UCT_HA_PLACE_ALONE;
    uct_ha_addr_pack_dev(&in, &good);
    expect_refused(&good, 30, 1); /* it has no standby */
    in.primary = ipv6_rail();
    uct_ha_addr_pack_dev(&in, &good);
    expect_refused(&good, 29, 129);
    expect_refused(&good, 30, 1);
    in.primary.addr = ipv4_rail(1, 1, 0).addr; /* in the longer form: each address has one */
    memcpy(good.at.eth.gid, in.primary.addr.gid, sizeof(good.at.eth.gid));
    assert_int_equal(uct_ha_addr_unpack_dev(&good, &in), -EPROTO);

    uct_ha_addr_pack_iface(&where, &iface);
    assert_int_equal(uct_ha_addr_unpack_iface(&iface, &out), 0);
    iface.head ^= 1;
    assert_int_equal(uct_ha_addr_unpack_iface(&iface, &out), -EPROTO);
    iface.head ^= 1 | 0xf0;
    assert_int_equal(uct_ha_addr_unpack_iface(&iface, &out), -EPROTO);
}

/* ---- rdmacm's ---- */

/* As UCX's rdmacm makes it of a RoCE device (1.13 to 1.23): flags, GID, MTU, index of our GID. */
static void test_rdmacm_ethernet(void **state)
{
    uint8_t                  cm[19] = {0x6b, [17] = 3, [18] = 250};
    struct uct_ha_rail_where own = ipv4_rail(1, 1, 1), peer = ipv4_rail(1, 2, 1);
    struct uct_ha_dev_where  out;

    (void)state;
    own.zone = peer.zone = 0x1234;
    own.addr.pkey = peer.addr.pkey = 0xffff;
    peer.addr.mtu                  = 1024;
    memcpy(cm + 1, peer.addr.gid, 16);
    assert_true(uct_ha_addr_is_cm(cm));
    assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), 0);
    expect_same_rail(&peer, &out.primary);
    assert_int_equal(out.standby.addr.mtu, 0);
    assert_int_equal(out.tcp.port, 0);
    cm[17] = 0;
    assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), -EPROTO);
    cm[17] = 6;
    assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), -EPROTO);
    cm[17] = 3;
    cm[0]  = 0x6f; /* with a partition key, which rdmacm does not know */
    assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), -EPROTO);
}

/* Of InfiniBand: LID in this host's order, then GUID and subnet as far as they are there. */
static void test_rdmacm_infiniband(void **state)
{
    static const struct {
        uint8_t bytes[21], length, gid[16];
    } form[] = {
        {{0x03, 0, 0, 4, 0}, 5, {0xfe, 0x80}},
        {{0x43, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 0}, 13, {0xfe, 0x80, [8] = 1, 2, 3, 4, 5, 6, 7, 8}},
        {{0x13, 0, 0, 0xaa, 0xbb, 4, 0}, 7, {0xfe, 0xc0, [6] = 0xaa, 0xbb}},
        {{0x53, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa, 0xbb, 4, 0},
         15,
         {0xfe, 0xc0, [6] = 0xaa, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8}},
        {{0x63, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 9, 4, 0},
         21,
         {0x20, 1, 0xd, 0xb8, [7] = 9, 1, 2, 3, 4, 5, 6, 7, 8}},
    };
    struct uct_ha_rail_where own = infiniband_rail(), peer = own;
    struct uct_ha_dev_where  out;
    uint16_t                 lid = 0x0102;
    uint8_t                  cm[21];

    (void)state;
    for (size_t i = 0; i < sizeof(form) / sizeof(form[0]); i++) {
        memset(cm, 0xff, sizeof(cm));
        memcpy(cm, form[i].bytes, form[i].length);
        memcpy(cm + 1, &lid, sizeof(lid));
        memcpy(peer.addr.gid, form[i].gid, 16);
        peer.addr.lid = lid;
        peer.addr.mtu = 2048;
        assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), 0);
        expect_same_rail(&peer, &out.primary);
    }
    cm[0] = 0x73; /* both kinds of subnet */
    assert_int_equal(uct_ha_addr_read_dev(cm, &own, &out), -EPROTO);
}

static void test_our_own_is_none_of_rdmacm(void **state)
{
    struct uct_ha_dev_where  in  = {.primary = ipv4_rail(1, 2, 1), .tcp = {{10, 0, 0, 1}, 77}}, out;
    struct uct_ha_rail_where own = ipv4_rail(5, 5, 0);
    struct uct_ha_packed_dev packed;

    (void)state;
    uct_ha_addr_pack_dev(&in, &packed);
    assert_false(uct_ha_addr_is_cm(&packed));
    assert_int_equal(uct_ha_addr_read_dev(&packed, &own, &out), 0);
    expect_same_rail(&in.primary, &out.primary);
    assert_int_equal(out.tcp.port, 77);
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
        cmocka_unit_test(test_ipv4_has_room_for_the_standby),
        cmocka_unit_test(test_other_addresses_have_no_room_for_it),
        cmocka_unit_test(test_rails_without_address),
        cmocka_unit_test(test_iface_round_trip),
        cmocka_unit_test(test_foreign_addresses_are_refused),
        cmocka_unit_test(test_rdmacm_ethernet),
        cmocka_unit_test(test_rdmacm_infiniband),
        cmocka_unit_test(test_our_own_is_none_of_rdmacm),
        cmocka_unit_test(test_same_network_decides),
        cmocka_unit_test(test_odd_prefix_length),
        cmocka_unit_test(test_place_decides_where_the_network_is_unknown),
        cmocka_unit_test(test_link_layers_never_mix),
        cmocka_unit_test(test_rail_without_address_may_match),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
