/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_addr.h"

#include <errno.h>
#include <string.h>

static void put16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *from)
{
    return (uint16_t)(from[0] << 8 | from[1]);
}

static void put24(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 16);
    put16(to + 1, (uint16_t)value);
}

static uint32_t get24(const uint8_t *from)
{
    return (uint32_t)from[0] << 16 | get16(from + 1);
}

void uct_ha_addr_pack_rail(const struct uct_ha_rail_where *where, struct uct_ha_packed_rail *packed)
{
    packed->version    = UCT_HA_ADDR_VERSION;
    packed->link_layer = where->addr.link_layer;
    packed->prefix_len = where->addr.prefix_len;
    packed->place      = where->place;
    put16(packed->mtu, where->addr.mtu);
    put16(packed->lid, where->addr.lid);
    memcpy(packed->gid, where->addr.gid, sizeof(packed->gid));
}

static int mtu_is_valid(unsigned mtu)
{
    return mtu == 0 || (mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0);
}

int uct_ha_addr_unpack_rail(const struct uct_ha_packed_rail *packed, struct uct_ha_rail_where *where)
{
    if (packed->version != UCT_HA_ADDR_VERSION || packed->prefix_len > 128 ||
        packed->link_layer > HA_LINK_ETHERNET || !mtu_is_valid(get16(packed->mtu)) ||
        (packed->place > 1 && packed->place != UCT_HA_PLACE_ALONE)) {
        return -EPROTO;
    }
    memset(where, 0, sizeof(*where));
    where->addr.link_layer = packed->link_layer;
    where->addr.prefix_len = packed->prefix_len;
    where->addr.mtu        = get16(packed->mtu);
    where->addr.lid        = get16(packed->lid);
    where->place           = packed->place;
    memcpy(where->addr.gid, packed->gid, sizeof(packed->gid));
    return 0;
}

void uct_ha_addr_pack_iface(const struct uct_ha_iface_where *where, struct uct_ha_packed_iface *packed)
{
    packed->version = UCT_HA_ADDR_VERSION;
    packed->slots   = (uint8_t)where->slots;
    for (int i = 0; i < 8; i++) {
        packed->cookie[i] = (uint8_t)(where->cookie >> (56 - 8 * i));
    }
    for (int s = 0; s < HA_SLOTS; s++) {
        put24(packed->ud_qpn[s], where->ud_qpn[s]);
    }
    put16(packed->credits, (uint16_t)where->credits);
    packed->caps = (uint8_t)where->caps;
    memcpy(packed->tcp_ip, where->tcp_ip, sizeof(packed->tcp_ip));
    put16(packed->tcp_port, where->tcp_port);
    uct_ha_addr_pack_rail(&where->standby, &packed->standby);
}

int uct_ha_addr_unpack_iface(const struct uct_ha_packed_iface *packed, struct uct_ha_iface_where *where)
{
    if (packed->version != UCT_HA_ADDR_VERSION || packed->slots < 1 ||
        packed->slots > HA_SLOTS || get16(packed->credits) == 0) {
        return -EPROTO;
    }
    where->slots  = packed->slots;
    where->cookie = 0;
    for (int i = 0; i < 8; i++) {
        where->cookie = where->cookie << 8 | packed->cookie[i];
    }
    for (int s = 0; s < HA_SLOTS; s++) {
        where->ud_qpn[s] = get24(packed->ud_qpn[s]);
    }
    where->credits = get16(packed->credits);
    where->caps    = packed->caps;
    memcpy(where->tcp_ip, packed->tcp_ip, sizeof(where->tcp_ip));
    where->tcp_port = get16(packed->tcp_port);
    return uct_ha_addr_unpack_rail(&packed->standby, &where->standby);
}

static int same_network(const struct ha_rail_addr *a, const struct ha_rail_addr *b)
{
    unsigned bytes = a->prefix_len / 8, bits = a->prefix_len % 8;

    if (a->prefix_len != b->prefix_len || memcmp(a->gid, b->gid, bytes) != 0) {
        return 0;
    }
    return bits == 0 || ((a->gid[bytes] ^ b->gid[bytes]) >> (8 - bits)) == 0;
}

static int is_ipv4(const struct ha_rail_addr *addr)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(addr->gid, mapped, sizeof(mapped)) == 0;
}

int uct_ha_addr_match(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b)
{
    if (a->addr.mtu == 0 || b->addr.mtu == 0) {
        return a->place == b->place || a->place == UCT_HA_PLACE_ALONE ||
               b->place == UCT_HA_PLACE_ALONE;
    }
    if (a->addr.link_layer != b->addr.link_layer) {
        return 0;
    }
    if (a->addr.prefix_len != 0 && b->addr.prefix_len != 0) {
        return same_network(&a->addr, &b->addr);
    }
    if (a->addr.link_layer == HA_LINK_IB) {
        return memcmp(a->addr.gid, b->addr.gid, 8) == 0; /* subnet prefix */
    }
    if (is_ipv4(&a->addr) != is_ipv4(&b->addr)) {
        return 0; /* one of them has lost its address for the moment */
    }
    return a->place == b->place || a->place == UCT_HA_PLACE_ALONE ||
           b->place == UCT_HA_PLACE_ALONE;
}
