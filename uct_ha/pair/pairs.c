/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/pairs.h"

#include "base/now.h"

#include <stdlib.h>

#define MSEC 1000000ull
#define SEC  1000000000ull

static uint64_t nsec(double seconds)
{
    return (uint64_t)(seconds * (double)SEC);
}

void uct_ha_pairs_open(struct uct_ha_pairs *pairs)
{
    const struct uct_ha_iface_config *config = pairs->config;

    ucs_list_head_init(&pairs->peers);
    ucs_list_head_init(&pairs->conns);
    ucs_list_head_init(&pairs->attention);
    ucs_list_head_init(&pairs->turns);
    uct_ha_wakes_open(&pairs->wakes);
    uct_ha_dues_open(&pairs->dues);
    pairs->pair_config = (struct ha_pair_config){
        .connect_timeout = nsec(config->connect_timeout),
        .deadline        = nsec(config->dead_peer),
        .linger          = nsec(config->dead_peer),
        .standby_delay   = 3 * SEC, /* when the first rail is silent at the start */
        .cooldown        = 20 * MSEC,
        .drain_timeout   = SEC,
        .rtx_min         = 8 * MSEC,
        .rtx_max         = 64 * MSEC,
        .failback        = config->failback == UCT_HA_FAILBACK_AUTO ? HA_FAILBACK_AUTO : nsec(config->failback),
    };
    pairs->cooldown       = nsec(config->cooldown);
    pairs->cooldown_max   = config->cooldown > 0 ? nsec(config->cooldown_max) : 0;
    pairs->heartbeat      = nsec(config->heartbeat);
    pairs->turn_ns        = pairs->heartbeat;
    pairs->dead_peer      = nsec(config->dead_peer);
    pairs->lanes->silence = pairs->dead_peer / 2;
    ha_rto_init(&pairs->rto, nsec(config->rto), nsec(config->rto_max), uct_ha_now());
}

void uct_ha_pairs_close(struct uct_ha_pairs *pairs)
{
    free(pairs->table);
    uct_ha_dues_close(&pairs->dues);
    uct_ha_hash_cleanup(&pairs->by_cookie);
    uct_ha_hash_cleanup(&pairs->by_tag);
}

struct uct_ha_rail_where uct_ha_pairs_where(const struct uct_ha_pairs *pairs, int slot)
{
    struct ha_rail          *rail = pairs->lanes->rail[slot];
    struct uct_ha_rail_where where;
    char                     netdev[HA_NETDEV_MAX];

    where.addr  = ha_rail_addr(rail);
    where.place = pairs->place[slot];
    where.zone  = 0;
    if (pairs->zones.num > 0) { /* a subnet follows the address: asked anew each time */
        ha_rail_netdev(rail, netdev);
        where.zone = ha_zone_hash(ha_zone_name(&pairs->zones, ha_rail_name(rail), netdev, where.addr.gid));
    }
    return where;
}
