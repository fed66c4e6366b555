/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/conn.h"

#include "base/now.h"
#include "base/stats.h"
#include "lane/lane.h"
#include "pair/peer.h"
#include "pair/report.h"
#include "pair/twins.h"

#include <stdlib.h>

static int table_grow(struct uct_ha_pairs *pairs)
{
    uint32_t             len   = pairs->table_len == 0 ? 16 : 2 * pairs->table_len;
    struct uct_ha_conn **table = realloc(pairs->table, len * sizeof(*table));

    if (table == NULL) {
        return 0;
    }
    for (uint32_t i = pairs->table_len; i < len; i++) {
        table[i] = NULL;
    }
    pairs->table     = table;
    pairs->table_len = len;
    return 1;
}

/* The lowest free id. */
static ucs_status_t table_add(struct uct_ha_pairs *pairs, struct uct_ha_conn *conn)
{
    while (pairs->table_free < pairs->table_len && pairs->table[pairs->table_free] != NULL) {
        pairs->table_free++;
    }
    if (pairs->table_free == pairs->table_len && !table_grow(pairs)) {
        return UCS_ERR_NO_MEMORY;
    }
    conn->id               = pairs->table_free++;
    pairs->table[conn->id] = conn;
    return UCS_OK;
}

static void table_remove(struct uct_ha_conn *conn)
{
    conn->pairs->table[conn->id] = NULL;
    conn->pairs->table_free      = ucs_min(conn->pairs->table_free, conn->id);
}

static int pair_slots(const struct uct_ha_peer *peer)
{
    return peer->pairs->lanes->slots == HA_SLOTS && peer->slots == HA_SLOTS ? HA_SLOTS : 1;
}

ucs_status_t uct_ha_conn_create(struct uct_ha_peer *peer, uint32_t sn, int accepted, struct uct_ha_road *road,
                                struct uct_ha_txlog *tx, struct uct_ha_conn **conn_p)
{
    struct uct_ha_pairs *pairs = peer->pairs;
    struct uct_ha_conn  *conn  = calloc(1, sizeof(*conn));

    if (conn == NULL || table_add(pairs, conn) != UCS_OK) {
        free(conn);
        return UCS_ERR_NO_MEMORY;
    }
    conn->tag   = ha_pair_tag(pairs->cookie, peer->cookie, sn);
    conn->pairs = pairs;
    if (uct_ha_due_begin(&conn->due, &pairs->dues, pairs->by_tag.count) != 0 ||
        uct_ha_hash_add(&pairs->by_tag, &conn->by_tag, conn->tag) != 0) {
        table_remove(conn);
        free(conn);
        return UCS_ERR_NO_MEMORY;
    }
    conn->peer      = peer;
    conn->road      = road;
    conn->tx        = tx;
    conn->sn        = sn;
    conn->peer_id   = HA_EP_ANY;
    conn->rto_since = uct_ha_now();
    conn->rto_seen  = conn->rto_since;
    ha_pair_init(&conn->pair, &pairs->pair_config, pairs->cookie > peer->cookie, pair_slots(peer));
    road->conn      = conn;
    road->id        = conn->id;
    road->lanes     = pairs->lanes;
    road->slots     = (uint8_t)conn->pair.slots;
    road->marks     = (peer->caps & HA_CAP_LEDGER) != 0;
    road->rx_window = (uint16_t)pairs->lanes->credits;
    ucs_list_add_tail(&pairs->conns, &conn->list);
    ucs_list_add_tail(&peer->conns, &conn->peer_link);
    if (sn >= peer->next_sn) {
        peer->next_sn = sn + 1;
    }
    conn->cold = (uint8_t)uct_ha_twins_join(pairs->lanes);
    UCT_HA_STATS_ADD(cold, conn->cold);
    uct_ha_setup_begin(&conn->setup, accepted, conn->rto_since);
    uct_ha_awake_begin(&conn->awake, &pairs->wakes, &peer->busy, tx);
    *conn_p = conn;
    return UCS_OK;
}

void uct_ha_conn_destroy(struct uct_ha_conn *conn)
{
    uct_ha_report_bare_end(conn->bare_told);
    uct_ha_conn_count(conn, 0, 0);
    UCT_HA_STATS_ADD(cold, -conn->cold);
    uct_ha_twins_leave(conn->pairs->lanes);
    uct_ha_setup_end(&conn->setup);
    conn->pairs->moving -= conn->outage_at != 0;
    uct_ha_lane_leave(conn->road);
    if (conn->attention) {
        ucs_list_del(&conn->attention_link);
    }
    uct_ha_awake_end(&conn->awake);
    uct_ha_due_end(&conn->due);
    uct_ha_hash_remove(&conn->pairs->by_tag, &conn->by_tag);
    table_remove(conn);
    ucs_list_del(&conn->list);
    ucs_list_del(&conn->peer_link);
    free(conn);
}

struct uct_ha_conn *uct_ha_conn_find(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct uct_ha_pairs     *pairs = peer->pairs;
    struct uct_ha_hash_link *link;
    struct uct_ha_conn      *conn;

    if (record->dst_ep != HA_EP_ANY) {
        conn = record->dst_ep < pairs->table_len ? pairs->table[record->dst_ep] : NULL;
        return conn != NULL && conn->peer == peer && conn->tag == record->tag ? conn : NULL;
    }
    for (link = uct_ha_hash_chain(&pairs->by_tag, record->tag); link != NULL; link = link->next) {
        conn = ucs_container_of(link, struct uct_ha_conn, by_tag);
        if (conn->peer == peer && conn->sn == record->sn && conn->tag == record->tag) {
            return conn;
        }
    }
    return NULL;
}

void uct_ha_conn_count(struct uct_ha_conn *conn, int works, int spare)
{
    UCT_HA_STATS_ADD(pairs, works - conn->counted_works);
    UCT_HA_STATS_ADD(standbys, spare - conn->counted_spare);
    conn->counted_works = (int8_t)works;
    conn->counted_spare = (int8_t)spare;
}
