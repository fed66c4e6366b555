/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/addr.h"

#include <errno.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------ */

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

/* An MTU as UCX and verbs number it: 1 = 256 ... 5 = 4096; 0 = no address yet. */
#define MTU_CODES 6

static unsigned mtu_code(unsigned mtu)
{
    unsigned code = 0;

    while (mtu >= 256) {
        mtu /= 2;
        code++;
    }
    return code;
}

static uint16_t mtu_of(unsigned code)
{
    return code == 0 ? 0 : (uint16_t)(128u << code);
}

static int is_zero(const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < length; i++) {
        if (byte[i] != 0) {
            return 0;
        }
    }
    return 1;
}

/* ---- rails that have an IPv4 address, or none yet ------------------------------------- */

#define NETS 34 /* 0 to 32 bits, and "unknown" */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static int is_short(const struct ha_rail_addr *addr)
{
    if (addr->link_layer != HA_LINK_ETHERNET) {
        return 0;
    }
    return addr->mtu == 0 ? is_zero(addr->gid, sizeof(addr->gid)) : memcmp(addr->gid, mapped, sizeof(mapped)) == 0;
}

static uint8_t net_of(const struct ha_rail_addr *addr)
{
    return addr->mtu == 0 || addr->prefix_len < 96 ? 0 : (uint8_t)(addr->prefix_len - 95);
}

/* Returns 0, or -EPROTO. */
static int read_ipv4(const uint8_t *ip, unsigned net, unsigned mtu, struct ha_rail_addr *addr)
{
    if (mtu >= MTU_CODES || net >= NETS || (mtu == 0 && (net != 0 || !is_zero(ip, 4)))) {
        return -EPROTO;
    }
    addr->link_layer = HA_LINK_ETHERNET;
    addr->mtu        = mtu_of(mtu);
    addr->prefix_len = net == 0 ? 0 : (uint8_t)(net + 95);
    if (mtu != 0) {
        memcpy(addr->gid, mapped, sizeof(mapped));
        memcpy(addr->gid + sizeof(mapped), ip, 4);
    }
    return 0;
}

/* A standby of another kind is left out, with its zone and partition kept. */
static void pack_standby(const struct uct_ha_dev_where *where, struct uct_ha_packed_dev *packed)
{
    const struct ha_rail_addr *addr = &where->standby.addr;

    if (where->primary.place > 1) {
        return;
    }
    if (addr->mtu != 0 && is_short(addr)) {
        memcpy(packed->at.ipv4.standby_ip, addr->gid + sizeof(mapped), 4);
        packed->at.ipv4.standby_net = (uint8_t)(NETS * mtu_code(addr->mtu) + net_of(addr));
    }
    put24(packed->at.ipv4.standby_zone, where->standby.zone);
    put16(packed->at.ipv4.standby_pkey, addr->pkey);
    put24(packed->at.ipv4.standby_qpn, where->standby_qpn);
}

static int unpack_standby(const struct uct_ha_packed_dev *packed, struct uct_ha_dev_where *where)
{
    struct uct_ha_rail_where *rail = &where->standby;
    unsigned                  net  = packed->at.ipv4.standby_net;

    if (where->primary.place > 1) {
        return is_zero(packed->at.ipv4.standby_ip, 13) ? 0 : -EPROTO;
    }
    rail->place        = !where->primary.place;
    rail->zone         = get24(packed->at.ipv4.standby_zone);
    rail->addr.pkey    = get16(packed->at.ipv4.standby_pkey);
    where->standby_qpn = get24(packed->at.ipv4.standby_qpn);
    return read_ipv4(packed->at.ipv4.standby_ip, net % NETS, net / NETS, &rail->addr);
}

/* ---- the device address ----------------------------------------------------------------- */

enum form { FORM_NONE = HA_LINK_NONE, FORM_IB = HA_LINK_IB, FORM_ETH = HA_LINK_ETHERNET, FORM_IPV4 };

#define SHAPE_PLACE 2 /* shifts */
#define SHAPE_MTU   4

#define PLACE_ALONE 3u

void uct_ha_addr_pack_dev(const struct uct_ha_dev_where *where, struct uct_ha_packed_dev *packed)
{
    const struct ha_rail_addr *addr  = &where->primary.addr;
    unsigned                   form  = is_short(addr) ? FORM_IPV4 : addr->link_layer;
    unsigned                   place = where->primary.place > 1 ? PLACE_ALONE : where->primary.place;

    memset(packed, 0, sizeof(*packed));
    packed->version = UCT_HA_ADDR_VERSION;
    packed->shape   = (uint8_t)(form | place << SHAPE_PLACE | mtu_code(addr->mtu) << SHAPE_MTU);
    put24(packed->zone, where->primary.zone);
    put16(packed->pkey, addr->pkey);
    memcpy(packed->tcp_ip, where->tcp.ip, sizeof(packed->tcp_ip));
    put16(packed->tcp_port, where->tcp.port);
    if (form == FORM_IPV4) {
        memcpy(packed->at.ipv4.ip, addr->gid + sizeof(mapped), 4);
        packed->at.ipv4.net = net_of(addr);
        pack_standby(where, packed);
    } else if (form == FORM_IB) {
        memcpy(packed->at.ib.gid, addr->gid, sizeof(packed->at.ib.gid));
        put16(packed->at.ib.lid, addr->lid);
    } else {
        memcpy(packed->at.eth.gid, addr->gid, sizeof(packed->at.eth.gid));
        packed->at.eth.prefix_len = addr->prefix_len;
    }
}

/* An address that fits another form is not one that we have packed. */
static int unpack_eth(const struct uct_ha_packed_dev *packed, unsigned form, struct ha_rail_addr *addr)
{
    memcpy(addr->gid, packed->at.eth.gid, sizeof(addr->gid));
    addr->link_layer = (uint8_t)form;
    addr->prefix_len = packed->at.eth.prefix_len;
    return addr->prefix_len <= 128 && packed->at.eth.reserved == 0 && !is_short(addr) ? 0 : -EPROTO;
}

static int unpack_at(const struct uct_ha_packed_dev *packed, struct uct_ha_dev_where *where)
{
    struct ha_rail_addr *addr = &where->primary.addr;
    unsigned             form = packed->shape & 3u, mtu = packed->shape >> SHAPE_MTU;

    addr->mtu = mtu_of(mtu);
    switch (form) {
    case FORM_IPV4:
        return read_ipv4(packed->at.ipv4.ip, packed->at.ipv4.net, mtu, addr) == 0 ? unpack_standby(packed, where)
                                                                                  : -EPROTO;
    case FORM_IB:
        memcpy(addr->gid, packed->at.ib.gid, sizeof(addr->gid));
        addr->lid        = get16(packed->at.ib.lid);
        addr->link_layer = HA_LINK_IB;
        return 0;
    default:
        return unpack_eth(packed, form, addr);
    }
}

int uct_ha_addr_unpack_dev(const struct uct_ha_packed_dev *packed, struct uct_ha_dev_where *where)
{
    unsigned place;

    if (packed->version != UCT_HA_ADDR_VERSION) {
        return -EPROTO;
    }
    place = packed->shape >> SHAPE_PLACE & 3u;
    if ((place > 1 && place != PLACE_ALONE) || packed->shape >> SHAPE_MTU >= MTU_CODES) {
        return -EPROTO;
    }
    memset(where, 0, sizeof(*where));
    where->primary.place     = place > 1 ? UCT_HA_PLACE_ALONE : (uint8_t)place;
    where->primary.zone      = get24(packed->zone);
    where->primary.addr.pkey = get16(packed->pkey);
    memcpy(where->tcp.ip, packed->tcp_ip, sizeof(where->tcp.ip));
    where->tcp.port = get16(packed->tcp_port);
    return unpack_at(packed, where);
}

/* ---- the interface address ------------------------------------------------------------------ */

#define HEAD_VERSION 7u
#define HEAD_SLOTS   3 /* shifts */
#define HEAD_CREDITS 4

#define CREDITS_LOG_MAX 14u

static unsigned log2_of(unsigned value)
{
    unsigned log = 0;

    while (value >= 2 && log < CREDITS_LOG_MAX) {
        value /= 2;
        log++;
    }
    return log;
}

void uct_ha_addr_pack_iface(const struct uct_ha_iface_where *where, struct uct_ha_packed_iface *packed)
{
    packed->head   = (uint8_t)((UCT_HA_ADDR_VERSION & HEAD_VERSION) | (where->slots - 1) << HEAD_SLOTS |
                             log2_of(where->credits) << HEAD_CREDITS);
    packed->caps   = (uint8_t)where->caps;
    packed->secret = where->secret;
    put24(packed->ud_qpn, where->ud_qpn);
}

int uct_ha_addr_unpack_iface(const struct uct_ha_packed_iface *packed, struct uct_ha_iface_where *where)
{
    unsigned credits = packed->head >> HEAD_CREDITS;

    if ((packed->head & HEAD_VERSION) != (UCT_HA_ADDR_VERSION & HEAD_VERSION) || credits > CREDITS_LOG_MAX) {
        return -EPROTO;
    }
    where->slots   = 1u + (packed->head >> HEAD_SLOTS & 1u);
    where->credits = 1u << credits;
    where->caps    = packed->caps;
    where->secret  = packed->secret;
    where->cookie  = ha_seal_name(&packed->secret);
    where->ud_qpn  = get24(packed->ud_qpn);
    return 0;
}
