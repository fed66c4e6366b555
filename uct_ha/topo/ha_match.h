/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_MATCH_H_
#define HA_MATCH_H_

/*
 * Which rail of ours can talk to which rail of a peer. Which of them to take is UCX's
 * choice, see docs/topology.md. Pure; any thread. Both sides come to the same verdict
 * about two rails, whichever asks, as long as they know the same of each other.
 */

#include "ha_zone.h"
#include "verbs/ha_rail.h"

/* Place of a rail among the two of its pair, in the order of their names; it tells
 * the two apart where a link-local GID does not say which network it belongs to. */
#define HA_MATCH_PLACE_ALONE 0xffu

struct ha_match_rail {
    struct ha_rail_addr addr; /* mtu 0: no address yet, it may turn out to match */
    ha_zone_t           zone;
    uint8_t             place; /* 0, 1, HA_MATCH_PLACE_ALONE */
};

struct ha_match_opts {
    int allow_unknown_zone; /* rails of which one has no zone may talk */
    int prefer_ib;          /* InfiniBand before RoCE, and */
    int spread;             /* equals by chance: both by the priority that UCX is told */
};

enum ha_match {
    HA_MATCH_ZONE,    /* they can: in the same zone, whatever their networks (InfiniBand: no router is
                       * asked for, so two subnets should not be in one zone) */
    HA_MATCH_NETWORK, /* they can: nothing is known of zones, but the network is the same */
    HA_MATCH_NO,      /* what follows means: they cannot, and why */
    HA_MATCH_OTHER_LINK = HA_MATCH_NO,
    HA_MATCH_OTHER_ZONE,
    HA_MATCH_UNKNOWN_ZONE, /* one has no zone, and that is not allowed */
    HA_MATCH_OTHER_NETWORK,
    HA_MATCH_OTHER_PARTITION, /* or the same one, and neither is a full member */
};

/* Same link layer and partition, always. Then zones: the same zone is enough, two different ones
 * never match. Where one is unknown and that is allowed, the network decides: IP
 * networks must be equal where both are known, InfiniBand subnet prefixes must be
 * equal, and else the place. */
enum ha_match ha_match_rails(const struct ha_match_rail *a, const struct ha_match_rail *b,
                             const struct ha_match_opts *opts);

/* Of one IP network, by addresses and prefix lengths alone. */
int ha_same_network(const struct ha_rail_addr *a, const struct ha_rail_addr *b);

/* What decides where UCX finds several rails equally good: it takes the pair of rails with the largest
 * sum of both sides' priorities, so both see the same winner, and each pair of interfaces may see another
 * one. draw: any bits, drawn once by each interface. At most 127 (UCX adds two in 8 bits). */
uint8_t ha_match_priority(const struct ha_match_opts *opts, uint8_t link_layer, uint64_t draw);

/* "the same zone", "another link layer"... constant. */
const char *ha_match_text(enum ha_match match);

/* What to do about two rails that cannot talk; "" when they can. Constant. */
const char *ha_match_remedy(enum ha_match match);

#endif
