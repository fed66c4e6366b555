/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_match.h"

#include <string.h>

int ha_same_network(const struct ha_rail_addr *a, const struct ha_rail_addr *b)
{
    unsigned bytes = a->prefix_len / 8, bits = a->prefix_len % 8;

    if (a->prefix_len != b->prefix_len || memcmp(a->gid, b->gid, bytes) != 0) {
        return 0;
    }
    return bits == 0 || ((a->gid[bytes] ^ b->gid[bytes]) >> (8 - bits)) == 0;
}

static int same_place(const struct ha_match_rail *a, const struct ha_match_rail *b)
{
    return a->place == b->place || a->place == HA_MATCH_PLACE_ALONE || b->place == HA_MATCH_PLACE_ALONE;
}

static int is_ipv4(const struct ha_rail_addr *addr)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(addr->gid, mapped, sizeof(mapped)) == 0;
}

/* RoCE: IPv4 and IPv6 never meet, not even for the moment in which one rail has lost
 * its address and has only the link-local one. */
static int families_differ(const struct ha_match_rail *a, const struct ha_match_rail *b)
{
    return a->addr.mtu != 0 && b->addr.mtu != 0 && a->addr.link_layer == HA_LINK_ETHERNET &&
           is_ipv4(&a->addr) != is_ipv4(&b->addr);
}

static int network_allows(const struct ha_match_rail *a, const struct ha_match_rail *b)
{
    if (a->addr.mtu == 0 || b->addr.mtu == 0) {
        return same_place(a, b);
    }
    if (a->addr.prefix_len != 0 && b->addr.prefix_len != 0) {
        return ha_same_network(&a->addr, &b->addr);
    }
    if (a->addr.link_layer == HA_LINK_IB) {
        return memcmp(a->addr.gid, b->addr.gid, 8) == 0; /* subnet prefix */
    }
    return same_place(a, b);
}

/* As InfiniBand has it: the partition must be the same and one of the two a full member.
 * Packets of another one are dropped without a word. */
static int partitions_meet(uint16_t a, uint16_t b)
{
    return a == 0 || b == 0 || (((a ^ b) & HA_PKEY_PARTITION) == 0 && ((a | b) & HA_PKEY_FULL) != 0);
}

enum ha_match ha_match_rails(const struct ha_match_rail *a, const struct ha_match_rail *b,
                             const struct ha_match_opts *opts)
{
    if (a->addr.mtu != 0 && b->addr.mtu != 0 && a->addr.link_layer != b->addr.link_layer) {
        return HA_MATCH_OTHER_LINK;
    }
    if (!partitions_meet(a->addr.pkey, b->addr.pkey)) {
        return HA_MATCH_OTHER_PARTITION;
    }
    if (families_differ(a, b)) {
        return HA_MATCH_OTHER_NETWORK;
    }
    if (a->zone != 0 && b->zone != 0) {
        return a->zone == b->zone ? HA_MATCH_ZONE : HA_MATCH_OTHER_ZONE;
    }
    if (!opts->allow_unknown_zone) {
        return HA_MATCH_UNKNOWN_ZONE;
    }
    return network_allows(a, b) ? HA_MATCH_NETWORK : HA_MATCH_OTHER_NETWORK;
}

#define PRIORITY      10 /* above UCX's software transports */
#define PRIORITY_DRAW 15 /* at most; below half of what InfiniBand gets, as two draws are added */
#define PRIORITY_IB   32

uint8_t ha_match_priority(const struct ha_match_opts *opts, uint8_t link_layer, uint64_t draw)
{
    unsigned priority = PRIORITY;

    if (opts->prefer_ib && link_layer == HA_LINK_IB) {
        priority += PRIORITY_IB;
    }
    if (opts->spread) {
        priority += draw & PRIORITY_DRAW;
    }
    return (uint8_t)priority;
}

const char *ha_match_text(enum ha_match match)
{
    switch (match) {
    case HA_MATCH_ZONE:
        return "the same zone";
    case HA_MATCH_NETWORK:
        return "the same network";
    case HA_MATCH_OTHER_LINK:
        return "another link layer";
    case HA_MATCH_OTHER_ZONE:
        return "another zone";
    case HA_MATCH_UNKNOWN_ZONE:
        return "no zone on one side";
    case HA_MATCH_OTHER_NETWORK:
        return "another network";
    case HA_MATCH_OTHER_PARTITION:
        return "another partition, or no full member of it";
    }
    return "?";
}

const char *ha_match_remedy(enum ha_match match)
{
    switch (match) {
    case HA_MATCH_ZONE:
    case HA_MATCH_NETWORK:
        break;
    case HA_MATCH_OTHER_LINK:
        return "InfiniBand and RoCE do not meet: name rails of one kind in UCX_HA_RC_RAILS of both hosts";
    case HA_MATCH_OTHER_ZONE:
        return "compare UCX_HA_RC_ZONES of both hosts";
    case HA_MATCH_UNKNOWN_ZONE:
        return "name both in UCX_HA_RC_ZONES, or set UCX_HA_RC_ALLOW_UNKNOWN_ZONE=y";
    case HA_MATCH_OTHER_NETWORK:
        return "give both addresses of one IP subnet (IPv4 or IPv6, not one of each), choose GIDs of one by "
               "UCX_HA_RC_GID_INDEX, or, RoCE alone, say by one zone in UCX_HA_RC_ZONES that a router joins them";
    case HA_MATCH_OTHER_PARTITION:
        return "choose by UCX_HA_RC_PKEY_INDEX on each host the entry of one partition (ha_info shows its key), "
               "with one host a full member (0x8000 is set in its key)";
    }
    return "";
}
