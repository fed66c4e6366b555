/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CONN_H_
#define UCT_HA_CONN_H_

/*
 * A connection: one endpoint pair between two interfaces. It exists on both sides whether or
 * not a user endpoint is bound to it here: the passive side of a set-up receives on it at once,
 * and its own first endpoint to that peer takes it over. Pair number `sn` is the
 * same on both sides, so that a simultaneous connect meets in one connection.
 *
 * This is its control part, under the control lock: progress and the asynchronous handler.
 * The data part, which is progress's alone, is struct uct_ha_flow (data/flow.h). Both share
 * the road and the log.
 */

#include "lane/road.h"
#include "pair/pairs.h"
#include "pair/setup.h"
#include "pair/txlog.h"

struct uct_ha_conn {
    struct uct_ha_pairs    *pairs;
    struct uct_ha_peer     *peer;
    struct uct_ha_road     *road;
    struct uct_ha_txlog    *tx;
    struct ha_pair          pair;
    uint32_t                id, peer_id, sn, tag;
    uint8_t                 cold;             /* its standby is built when it is needed */
    uint8_t                 bound, was_bound; /* a user's endpoint holds it; ... has held it */
    uint8_t                 todo, attention, close_told;
    ucs_status_t            status;    /* for UCT_HA_TODO_FAIL */
    ucs_list_link_t         list;      /* pairs->conns */
    ucs_list_link_t         peer_link; /* peer->conns */
    ucs_list_link_t         attention_link;
    struct uct_ha_hash_link by_tag;
    struct uct_ha_due       due;
    struct uct_ha_awake     awake;
    uint64_t                outage_at;     /* the active lane was lost then, 0 = no outage */
    uint64_t                outage_silent; /* ... and nothing had come for so long before */
    uint8_t                 outage_slot, outage_cause, outage_peer_cause;
    uint32_t                outage_replayed, outage_retired;
    uint32_t                rto_done, rto_tail, rto_polls; /* last sample of the progress check */
    uint64_t                rto_since, rto_seen;
    uint64_t                rto_lane; /* slot and generation of that sample */
    uint8_t                 rto_struck;
    struct uct_ha_setup     setup;
    int16_t                 connect_error; /* errno of the latest lane that could not be connected, 0 = none */
    int8_t                  counted_works, counted_spare; /* as the statistics have it */
    uint8_t                 bare_told;                    /* no standby for long, which was said */
    uint64_t                bare_since;                   /* without a standby since then, 0 = it has one, or is new */
};

/* Make the connection number `sn` to `peer`, `accepted` when the peer began it, over a road and
 * a log that are the caller's; the control lock is held. */
ucs_status_t uct_ha_conn_create(struct uct_ha_peer *peer, uint32_t sn, int accepted, struct uct_ha_road *road,
                                struct uct_ha_txlog *tx, struct uct_ha_conn **conn_p);

/* Release it and its lanes at once. Queue pairs must have been fenced or be of no
 * interest any more; the lock is held. */
void uct_ha_conn_destroy(struct uct_ha_conn *conn);

/* The connection that a record is about, or NULL; the lock is held. */
struct uct_ha_conn *uct_ha_conn_find(struct uct_ha_peer *peer, const struct ha_packet_record *record);

/* How many pairs work, and how many could lose a rail now: what a test or an
 * operator waits for after a failover. */
void uct_ha_conn_count(struct uct_ha_conn *conn, int works, int spare);

#endif
