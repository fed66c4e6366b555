/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_match.h"

#include <errno.h>
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
    return a->place == b->place || a->place == HA_MATCH_PLACE_ALONE ||
           b->place == HA_MATCH_PLACE_ALONE;
}

static int is_ipv4(const struct ha_rail_addr *addr)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

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

enum ha_match ha_match_rails(const struct ha_match_rail *a, const struct ha_match_rail *b,
                             const struct ha_match_opts *opts)
{
    if (a->addr.mtu != 0 && b->addr.mtu != 0 && a->addr.link_layer != b->addr.link_layer) {
        return HA_MATCH_OTHER_LINK;
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

const char *ha_match_text(enum ha_match match)
{
    switch (match) {
    case HA_MATCH_ZONE:          return "the same zone";
    case HA_MATCH_NETWORK:       return "the same network";
    case HA_MATCH_OTHER_LINK:    return "another link layer";
    case HA_MATCH_OTHER_ZONE:    return "another zone";
    case HA_MATCH_UNKNOWN_ZONE:  return "no zone on one side";
    case HA_MATCH_OTHER_NETWORK: return "another network";
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
    }
    return "";
}

/* ---- all rails of both sides ---------------------------------------------------------- */

struct candidates {
    const struct ha_match_rail *own, *peer;
    int                         num_own, num_peer;
    const struct ha_match_opts *opts;
    const struct ha_match_pair *without; /* share no rail with it; NULL = any */
    enum ha_match               how;
    int                         ib_only;
};

/* Candidate number `wanted`; returns how many there are up to it. */
static uint32_t walk(const struct candidates *c, uint32_t wanted, struct ha_match_pair *found)
{
    uint32_t count = 0;

    for (int i = 0; i < c->num_own && count <= wanted; i++) {
        for (int j = 0; j < c->num_peer && count <= wanted; j++) {
            if (!c->own[i].active || !c->peer[j].active ||
                (c->without != NULL && (i == c->without->own || j == c->without->peer)) ||
                (c->ib_only && c->own[i].addr.link_layer != HA_LINK_IB) ||
                ha_match_rails(&c->own[i], &c->peer[j], c->opts) != c->how) {
                continue;
            }
            *found = (struct ha_match_pair){ i, j, c->how };
            count++;
        }
    }
    return count;
}

static int take(struct candidates *c, uint32_t turn, struct ha_match_pair *found)
{
    uint32_t count;

    for (c->how = HA_MATCH_ZONE; c->how < HA_MATCH_NO; c->how++) {
        for (c->ib_only = c->opts->prefer_ib != 0; c->ib_only >= 0; c->ib_only--) {
            count = walk(c, UINT32_MAX, found);
            if (count > 0) {
                (void)walk(c, turn % count, found);
                return 0;
            }
        }
    }
    *found = (struct ha_match_pair){ -1, -1, HA_MATCH_NO };
    return -ENOENT;
}

int ha_match_select(const struct ha_match_rail *own, int num_own,
                    const struct ha_match_rail *peer, int num_peer,
                    const struct ha_match_opts *opts, uint32_t turn,
                    struct ha_match_pair *primary, struct ha_match_pair *standby)
{
    struct candidates all = { .own = own, .peer = peer, .num_own = num_own,
                              .num_peer = num_peer, .opts = opts };

    *standby = (struct ha_match_pair){ -1, -1, HA_MATCH_NO };
    if (take(&all, turn, primary) != 0) {
        return -ENOENT;
    }
    all.without = primary;
    (void)take(&all, turn, standby);
    return 0;
}
