/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/addr_cm.h"

#include <errno.h>
#include <string.h>

/* Of the first byte. What the upper four bits mean depends on the link layer. */
#define HAS_GID_INDEX 0x01u
#define HAS_PATH_MTU  0x02u
#define HAS_PKEY      0x04u /* rdmacm sets it never */
#define IS_ETHERNET   0x08u
#define HAS_SUBNET16  0x10u
#define HAS_SUBNET64  0x20u
#define HAS_GUID      0x40u
#define IS_NOTHING    0x80u

static const uint8_t link_local[8] = {0xfe, 0x80}, site_local[8] = {0xfe, 0xc0};

int uct_ha_addr_is_cm(const void *dev_addr)
{
    unsigned flags = *(const uint8_t *)dev_addr;

    return (flags & (HAS_GID_INDEX | HAS_PATH_MTU)) == (HAS_GID_INDEX | HAS_PATH_MTU);
}

/* The fields in their order; returns what follows. */
static const uint8_t *read_ib(const uint8_t *p, unsigned flags, struct ha_rail_addr *addr)
{
    memcpy(&addr->lid, p, sizeof(addr->lid));
    p += sizeof(addr->lid);
    memcpy(addr->gid, link_local, sizeof(link_local));
    if (flags & HAS_GUID) {
        memcpy(addr->gid + 8, p, 8);
        p += 8;
    }
    if (flags & HAS_SUBNET16) { /* the end of a site-local prefix */
        memcpy(addr->gid, site_local, sizeof(site_local));
        memcpy(addr->gid + 6, p, 2);
        p += 2;
    } else if (flags & HAS_SUBNET64) {
        memcpy(addr->gid, p, 8);
        p += 8;
    }
    addr->link_layer = HA_LINK_IB;
    return p;
}

static const uint8_t *read_ethernet(const uint8_t *p, struct ha_rail_addr *addr)
{
    memcpy(addr->gid, p, sizeof(addr->gid));
    addr->link_layer = HA_LINK_ETHERNET;
    return p + sizeof(addr->gid);
}

int uct_ha_addr_unpack_cm(const void *dev_addr, const struct uct_ha_rail_where *own, struct uct_ha_rail_where *where)
{
    const uint8_t *p     = dev_addr;
    unsigned       flags = *p++;

    if (!uct_ha_addr_is_cm(dev_addr) || (flags & (HAS_PKEY | IS_NOTHING)) != 0 ||
        (!(flags & IS_ETHERNET) && (flags & HAS_SUBNET16) && (flags & HAS_SUBNET64))) {
        return -EPROTO;
    }
    *where          = *own;
    where->addr.lid = 0;
    memset(where->addr.gid, 0, sizeof(where->addr.gid));
    p = flags & IS_ETHERNET ? read_ethernet(p, &where->addr) : read_ib(p, flags, &where->addr);
    if (*p < 1 || *p > 5) { /* as verbs number them; the GID index behind it is ours */
        return -EPROTO;
    }
    where->addr.mtu = (uint16_t)(128u << *p);
    return 0;
}

int uct_ha_addr_read_dev(const void *dev_addr, const struct uct_ha_rail_where *own, struct uct_ha_dev_where *where)
{
    if (!uct_ha_addr_is_cm(dev_addr)) {
        return uct_ha_addr_unpack_dev(dev_addr, where);
    }
    memset(where, 0, sizeof(*where));
    return uct_ha_addr_unpack_cm(dev_addr, own, &where->primary);
}
