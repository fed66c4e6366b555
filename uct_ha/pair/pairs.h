/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PAIRS_H_
#define UCT_HA_PAIRS_H_

/*
 * What all pairs of an interface share: who we are to our peers, the peers, the connections,
 * and how patient we are. The first part is constant once the interface is open, the rest is
 * under the control lock, lanes->wake.lock.
 */

#include "base/hash.h"
#include "core/ha_opts.h"
#include "core/ha_pace.h"
#include "core/ha_pair.h"
#include "core/ha_rto.h"
#include "core/ha_seal.h"
#include "lane/lanes.h"
#include "pair/awake.h"
#include "pair/due.h"
#include "pair/where.h"

struct uct_ha_ctl; /* whoever carries our packets, unknown here */
struct uct_ha_conn;
struct uct_ha_peer;
struct uct_ha_pairs;

/* A peer that was forgotten and may live all the same: numbers of pairs are not used twice,
 * and what it has said is not to be brought again. */
#define UCT_HA_FORGOTTEN_MAX 1024

struct uct_ha_forgotten {
    uint64_t cookie;
    uint64_t heard; /* number of its newest packet */
    uint32_t next_sn;
};

struct uct_ha_pairs {
    const struct uct_ha_iface_config *config;
    struct uct_ha_lanes              *lanes;
    struct uct_ha_ctl                *ctl;
    struct ha_secret                  secret; /* who has it may speak to us: docs/wire.md */
    uint64_t                          cookie; /* our name, which follows from it */
    uint8_t                           place[HA_SLOTS];
    unsigned                          caps; /* HA_CAP_*: what peers have to know */
    struct ha_zones                   zones;
    struct ha_match_opts              match;
    struct ha_opts                    opts; /* what this side wants of its connections */
    struct ha_pair_config             pair_config;
    uint64_t                          heartbeat, dead_peer, cooldown, cooldown_max;
    /* handed down: send what is due and set the timer; have a way to a peer found on each rail
     * that has none */
    void (*flush)(struct uct_ha_pairs *pairs);
    void (*find_way)(struct uct_ha_peer *peer, uint64_t now);

    uint8_t                 down[HA_SLOTS]; /* own port is not usable */
    ucs_list_link_t         peers, conns, attention;
    ucs_list_link_t         turns;   /* peers, who is asked next */
    struct uct_ha_wakes     wakes;   /* what the timer looks at */
    uint64_t                turn_ns; /* everybody has been asked in so long */
    struct uct_ha_dues      dues;    /* what has something to do */
    struct uct_ha_conn    **table;   /* by connection id */
    uint32_t                table_len;
    uint32_t                table_free;                      /* no id below is free */
    struct uct_ha_hash      by_cookie, by_tag;               /* peers; connections */
    struct uct_ha_forgotten forgotten[UCT_HA_FORGOTTEN_MAX]; /* a ring */
    uint32_t                num_forgotten;
    uint64_t                told; /* no packet to a peer that was let go of had a higher number */
    struct ha_rto           rto;
    struct ha_pace          pace[HA_SLOTS]; /* of lanes that are built while the other rail works */
    struct ha_pace          again;          /* of states that are sent again */
    uint32_t                moving;         /* connections that are in an outage */
};

/* Who we are, lanes and the callbacks are filled in. */
void uct_ha_pairs_open(struct uct_ha_pairs *pairs);

/* There are no connections and no peers any more. */
void uct_ha_pairs_close(struct uct_ha_pairs *pairs);

/* What a peer needs to know of our rail in `slot`. */
struct uct_ha_rail_where uct_ha_pairs_where(const struct uct_ha_pairs *pairs, int slot);

#endif
