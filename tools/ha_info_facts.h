/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_FACTS_H_
#define HA_INFO_FACTS_H_

/* What the transport sees of this host. Gathering, judging and printing are apart, so that
 * the judgement can be tested by itself. */

#include "topo/ha_budget.h"
#include "topo/ha_topo_pair.h"
#include "topo/ha_zone.h"
#include "lane/selftest.h"
#include "verbs/ha_facts.h"

/* One rail. `error` != 0: it could not be opened, nothing below it is valid. */
struct info_rail {
    int                           error; /* negative errno value */
    struct ha_rail_addr           addr;
    struct ha_rail_limits         limits;
    struct ha_rail_facts          facts;
    char                          netdev[HA_NETDEV_MAX];
    char                          zone[HA_ZONE_NAME_MAX]; /* "" = none */
    struct ha_budget_device       device;
    struct ha_budget              budget;
    uint64_t                      seed_budget;
    uint64_t                      window_ns; /* the hardware retries so long, HA_WINDOW_FOREVER */
    struct uct_ha_selftest_result selftest;  /* of its packet numbers */
    const char                   *proof;     /* kind that an interface on it would give now */
};

/* The knobs that are judged, as the transport would see them. */
struct info_config {
    int         backup, allow_unknown_zone, gid_index;
    unsigned    timeout, retry_count, rnr_retry_count, heartbeat_misses;
    double      rto, rto_max, heartbeat; /* seconds */
    uint64_t    tx_queue_len, rx_queue_len, rx_queue_init, seg_size;
    const char *proof, *control;
    char        rails[256], zones_text[256];
};

struct info {
    int                   num;
    struct ha_topo_rail   topo[HA_RAILS_MAX];
    struct ha_topo_choice choice[HA_RAILS_MAX];
    struct info_rail      rail[HA_RAILS_MAX];
    struct info_config    config;
    struct ha_zones       zones;
    uint64_t              memlock; /* bytes, HA_BUDGET_UNLIMITED */
};

#endif
