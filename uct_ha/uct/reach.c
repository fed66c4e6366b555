/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/reach.h"

#include "ctl/terms.h"
#include "uct/addr_cm.h"
#include "uct/iface.h"

#include <arpa/inet.h>
#include <string.h>

#define TOLD_MAX 64 /* a job of thousands says no more than that */

/* Of this pair for the first time? */
static int is_news(const struct uct_ha_rail_where *own, const struct uct_ha_rail_where *peer, enum ha_match match)
{
    static uint64_t told[TOLD_MAX];
    uint64_t        hash = 14695981039346656037ull ^ match, free_slot;

    for (size_t i = 0; i < sizeof(own->addr.gid); i++) {
        hash = (hash ^ own->addr.gid[i]) * 1099511628211ull;
        hash = (hash ^ peer->addr.gid[i]) * 1099511628211ull;
    }
    hash = (hash ^ own->addr.lid ^ (uint64_t)peer->addr.lid << 16 ^ (uint64_t)peer->zone << 32) * 1099511628211ull;
    hash = (hash ^ own->addr.pkey ^ (uint64_t)peer->addr.pkey << 16) * 1099511628211ull | 1;
    for (int i = 0; i < TOLD_MAX; i++) {
        free_slot = 0;
        if (__atomic_compare_exchange_n(&told[i], &free_slot, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return 1;
        }
        if (free_slot == hash) {
            return 0;
        }
    }
    return 0;
}

/* "10.0.1.2/24", "LID 7 of subnet fe80::", "no address yet". Returns buf. */
static const char *addr_text(const struct ha_rail_addr *addr, char *buf, size_t size)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    char                 ip[INET6_ADDRSTRLEN];
    uint8_t              subnet[16] = {0};
    size_t               length;

    if (addr->mtu == 0) {
        snprintf(buf, size, "no address yet");
    } else if (addr->link_layer == HA_LINK_IB) {
        memcpy(subnet, addr->gid, 8);
        snprintf(buf, size, "LID %u of subnet %s", addr->lid, inet_ntop(AF_INET6, subnet, ip, sizeof(ip)));
    } else if (memcmp(addr->gid, mapped, sizeof(mapped)) == 0) {
        snprintf(buf, size, "%s/%d", inet_ntop(AF_INET, addr->gid + 12, ip, sizeof(ip)),
                 addr->prefix_len < 96 ? 0 : addr->prefix_len - 96);
    } else {
        snprintf(buf, size, "%s/%d", inet_ntop(AF_INET6, addr->gid, ip, sizeof(ip)), addr->prefix_len);
    }
    if (addr->pkey != 0 && addr->pkey != (HA_PKEY_FULL | HA_PKEY_PARTITION)) { /* not the default one */
        length = strlen(buf);
        snprintf(buf + length, size - length, ", partition key 0x%04x", addr->pkey);
    }
    return buf;
}

/* Say once, on the level "diag", why our first rail and that one of a peer cannot talk and
 * what would help. Where there are two fabrics that is so by design for every second pair;
 * where UCX then calls the destination unreachable it is the reason. Any thread. */
static void tell(const struct uct_ha_iface *iface, const struct uct_ha_rail_where *own,
                 const struct uct_ha_rail_where *peer, enum ha_match match)
{
    char own_text[112], peer_text[112];

    if (!ucs_log_is_enabled(UCS_LOG_LEVEL_DIAG) || !is_news(own, peer, match)) {
        return;
    }
    ucs_diag("ha_rc [HA-317]: %s (%s) does not reach a peer's rail (%s): %s; if no other pair does, %s",
             ha_rail_name(iface->lanes.rail[0]), addr_text(&own->addr, own_text, sizeof(own_text)),
             addr_text(&peer->addr, peer_text, sizeof(peer_text)), ha_match_text(match), ha_match_remedy(match));
}

int uct_ha_reach(const uct_iface_h tl_iface, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr)
{
    const struct uct_ha_iface *iface = uct_ha_iface(tl_iface);
    struct uct_ha_rail_where   own   = uct_ha_pairs_where(&iface->pairs, 0);
    struct uct_ha_dev_where    dev;
    struct uct_ha_iface_where  where;
    enum ha_match              match;

    if (uct_ha_addr_read_dev(dev_addr, &own, &dev) != 0) {
        uct_ha_terms_tell_version("the address", ((const struct uct_ha_packed_dev *)(const void *)dev_addr)->version,
                                  UCT_HA_ADDR_VERSION);
        return 0;
    }
    if (iface_addr != NULL &&
        (uct_ha_addr_unpack_iface((const void *)iface_addr, &where) != 0 || where.cookie == iface->pairs.cookie)) {
        return 0; /* another version, or ourselves: that is what "self" is for */
    }
    match = uct_ha_where_verdict(&own, &dev.primary, &iface->pairs.match);
    if (match >= HA_MATCH_NO) {
        tell(iface, &own, &dev.primary, match);
    }
    return match < HA_MATCH_NO;
}
