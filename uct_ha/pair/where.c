/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/where.h"

#include <string.h>

enum ha_match uct_ha_where_verdict(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b,
                                   const struct ha_match_opts *opts)
{
    struct ha_match_rail own  = {.addr = a->addr, .zone = a->zone, .place = a->place};
    struct ha_match_rail peer = {.addr = b->addr, .zone = b->zone, .place = b->place};

    return ha_match_rails(&own, &peer, opts);
}

int uct_ha_where_match(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b,
                       const struct ha_match_opts *opts)
{
    return uct_ha_where_verdict(a, b, opts) < HA_MATCH_NO;
}

int uct_ha_where_is_same(const struct ha_rail_addr *a, const struct ha_rail_addr *b)
{
    return memcmp(a->gid, b->gid, sizeof(a->gid)) == 0 && a->lid == b->lid && a->link_layer == b->link_layer;
}
