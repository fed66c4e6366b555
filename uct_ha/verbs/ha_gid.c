/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_gid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#define GIDS_MAX 256

enum gid_rank { RANK_NONE, RANK_ROCE_V1, RANK_LINK_LOCAL, RANK_IPV6, RANK_IPV4 };

static int gid_is_zero(const uint8_t *gid)
{
    static const uint8_t zero[16];

    return memcmp(gid, zero, sizeof(zero)) == 0;
}

static int gid_is_ipv4(const uint8_t *gid)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static int gid_is_link_local(const uint8_t *gid)
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static enum gid_rank gid_rank(const struct ibv_gid_entry *entry)
{
    if (gid_is_zero(entry->gid.raw)) {
        return RANK_NONE;
    }
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2) {
        return RANK_ROCE_V1;
    }
    if (gid_is_ipv4(entry->gid.raw)) {
        return RANK_IPV4;
    }
    return gid_is_link_local(entry->gid.raw) ? RANK_LINK_LOCAL : RANK_IPV6;
}

static unsigned mask_bits(const uint8_t *mask, unsigned bytes)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < bytes; i++) {
        bits += (unsigned)__builtin_popcount(mask[i]);
    }
    return bits;
}

/* Prefix length if `ifa` carries exactly this GID as its address, else 0. */
static unsigned ifaddr_prefix(const struct ifaddrs *ifa, const uint8_t *gid)
{
    if (ifa->ifa_addr == NULL || ifa->ifa_netmask == NULL) {
        return 0;
    }
    if (gid_is_ipv4(gid)) {
        const struct sockaddr_in *sin = (const void *)ifa->ifa_addr;
        const struct sockaddr_in *msk = (const void *)ifa->ifa_netmask;

        if (sin->sin_family != AF_INET || memcmp(&sin->sin_addr, gid + 12, 4) != 0) {
            return 0;
        }
        return 96 + mask_bits((const uint8_t *)&msk->sin_addr, 4);
    } else {
        const struct sockaddr_in6 *sin6 = (const void *)ifa->ifa_addr;
        const struct sockaddr_in6 *msk  = (const void *)ifa->ifa_netmask;

        if (sin6->sin6_family != AF_INET6 || memcmp(&sin6->sin6_addr, gid, 16) != 0) {
            return 0;
        }
        return mask_bits((const uint8_t *)&msk->sin6_addr, 16);
    }
}

/* The network of a global GID, from the net device that carries the address.
 * Link-local says nothing about where it is: 0. */
static unsigned gid_prefix_len(const uint8_t *gid)
{
    struct ifaddrs *list, *ifa;
    unsigned        len = 0;

    if (gid_is_link_local(gid) || getifaddrs(&list) != 0) {
        return 0;
    }
    for (ifa = list; ifa != NULL && len == 0; ifa = ifa->ifa_next) {
        len = ifaddr_prefix(ifa, gid);
    }
    freeifaddrs(list);
    return len;
}

static int gid_take(const struct ibv_gid_entry *entry, struct ha_rail_addr *addr, char *netdev)
{
    _Static_assert(HA_NETDEV_MAX >= IF_NAMESIZE, "a net device's name must fit");

    if (entry->ndev_ifindex == 0 || if_indextoname(entry->ndev_ifindex, netdev) == NULL) {
        netdev[0] = '\0';
    }
    memcpy(addr->gid, entry->gid.raw, sizeof(addr->gid));
    addr->prefix_len = (uint8_t)gid_prefix_len(addr->gid);
    return (int)entry->gid_index;
}

static int same_gid(const struct ibv_gid_entry *entry, const uint8_t *gid)
{
    return gid != NULL && memcmp(entry->gid.raw, gid, sizeof(entry->gid.raw)) == 0;
}

/* Of an entry with a forced index: the address that had it before comes first. */
static int forced_rank(const struct ibv_gid_entry *entry, int index, const uint8_t *present)
{
    return gid_is_zero(entry->gid.raw) ? 0 : same_gid(entry, present) ? 2 : (int)entry->gid_index == index;
}

/* Twice the rank, so that the present one beats its equals. */
static int free_rank(const struct ibv_gid_entry *entry, const uint8_t *present)
{
    enum gid_rank rank = gid_rank(entry);

    return rank == RANK_NONE ? 0 : 2 * (int)rank + same_gid(entry, present);
}

int ha_gid_choose(struct ibv_context *ctx, uint8_t port, int link_layer, int wanted, const uint8_t *present,
                  struct ha_rail_addr *addr, char netdev[HA_NETDEV_MAX])
{
    struct ibv_gid_entry        entries[GIDS_MAX];
    const struct ibv_gid_entry *best = NULL;
    int                         rank, best_rank = 0;
    ssize_t                     count;

    if (wanted < 0 && link_layer == HA_LINK_IB) {
        wanted  = 0;
        present = NULL;
    }
    count = ibv_query_gid_table(ctx, entries, GIDS_MAX, 0);
    for (ssize_t i = 0; i < count; i++) {
        if (entries[i].port_num != port) {
            continue;
        }
        rank = wanted >= 0 ? forced_rank(&entries[i], wanted, present) : free_rank(&entries[i], present);
        if (rank > best_rank) {
            best_rank = rank;
            best      = &entries[i];
        }
    }
    return best == NULL ? -EADDRNOTAVAIL : gid_take(best, addr, netdev);
}

int ha_gid_exists(struct ibv_context *ctx, uint8_t port, const uint8_t *gid)
{
    struct ibv_gid_entry entries[GIDS_MAX];
    ssize_t              count = ibv_query_gid_table(ctx, entries, GIDS_MAX, 0);

    for (ssize_t i = 0; i < count; i++) {
        if (entries[i].port_num == port && same_gid(&entries[i], gid)) {
            return 1;
        }
    }
    return 0;
}
