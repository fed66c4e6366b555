/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/addr.h"

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

static void put32(uint8_t *to, uint32_t value)
{
    put16(to, (uint16_t)(value >> 16));
    put16(to + 2, (uint16_t)value);
}

static uint32_t get32(const uint8_t *from)
{
    return (uint32_t)get16(from) << 16 | get16(from + 2);
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
    put32(packed->zone, where->zone);
    put16(packed->pkey, where->addr.pkey);
}

static int mtu_is_valid(unsigned mtu)
{
    return mtu == 0 || (mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0);
}

int uct_ha_addr_unpack_rail(const struct uct_ha_packed_rail *packed, struct uct_ha_rail_where *where)
{
    if (packed->version != UCT_HA_ADDR_VERSION || packed->prefix_len > 128 || packed->link_layer > HA_LINK_ETHERNET ||
        !mtu_is_valid(get16(packed->mtu)) || (packed->place > 1 && packed->place != UCT_HA_PLACE_ALONE)) {
        return -EPROTO;
    }
    memset(where, 0, sizeof(*where));
    where->addr.link_layer = packed->link_layer;
    where->addr.prefix_len = packed->prefix_len;
    where->addr.mtu        = get16(packed->mtu);
    where->addr.lid        = get16(packed->lid);
    where->place           = packed->place;
    memcpy(where->addr.gid, packed->gid, sizeof(packed->gid));
    where->zone      = get32(packed->zone);
    where->addr.pkey = get16(packed->pkey);
    return 0;
}

void uct_ha_addr_pack_iface(const struct uct_ha_iface_where *where, struct uct_ha_packed_iface *packed)
{
    packed->version = UCT_HA_ADDR_VERSION;
    packed->slots   = (uint8_t)where->slots;
    packed->secret  = where->secret;
    for (int s = 0; s < HA_SLOTS; s++) {
        put24(packed->ud_qpn[s], where->ud_qpn[s]);
    }
    put16(packed->credits, (uint16_t)where->credits);
    packed->caps = (uint8_t)where->caps;
    memcpy(packed->tcp_ip, where->tcp.ip, sizeof(packed->tcp_ip));
    put16(packed->tcp_port, where->tcp.port);
    uct_ha_addr_pack_rail(&where->standby, &packed->standby);
}

int uct_ha_addr_unpack_iface(const struct uct_ha_packed_iface *packed, struct uct_ha_iface_where *where)
{
    if (packed->version != UCT_HA_ADDR_VERSION || packed->slots < 1 || packed->slots > HA_SLOTS ||
        get16(packed->credits) == 0) {
        return -EPROTO;
    }
    where->slots  = packed->slots;
    where->secret = packed->secret;
    where->cookie = ha_seal_name(&packed->secret);
    for (int s = 0; s < HA_SLOTS; s++) {
        where->ud_qpn[s] = get24(packed->ud_qpn[s]);
    }
    where->credits = get16(packed->credits);
    where->caps    = packed->caps;
    memcpy(where->tcp.ip, packed->tcp_ip, sizeof(where->tcp.ip));
    where->tcp.port = get16(packed->tcp_port);
    return uct_ha_addr_unpack_rail(&packed->standby, &where->standby);
}
