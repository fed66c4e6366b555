/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_WHERE_H_
#define UCT_HA_WHERE_H_

/* Where a rail is, and whether two of them can talk. */

#include "core/ha_packet.h"
#include "topo/ha_match.h"
#include "verbs/ha_rail.h"

/* Place of a rail among the two of its pair, in the order of their names. It
 * tells the two apart where a link-local GID does not say which network it
 * belongs to. */
#define UCT_HA_PLACE_ALONE HA_PLACE_ALONE

struct uct_ha_rail_where {
    struct ha_rail_addr addr;
    uint8_t             place;
    ha_zone_t           zone;
};

struct uct_ha_tcp_addr {
    uint8_t  ip[4];
    uint16_t port; /* 0 = none */
};

/* Can the two rails talk, and how or why not? The rules are ha_match_rails(). */
enum ha_match uct_ha_where_verdict(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b,
                                   const struct ha_match_opts *opts);

/* Can they? */
int uct_ha_where_match(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b,
                       const struct ha_match_opts *opts);

/* Do they mean the same port? */
int uct_ha_where_is_same(const struct ha_rail_addr *a, const struct ha_rail_addr *b);

#endif
