/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/conn.h"

#include "base/now.h"
#include "base/stats.h"
#include "lane/lane.h"
#include "pair/peer.h"
#include "pair/report.h"

#include <stdlib.h>

static ucs_status_t table_add(struct uct_ha_pairs *pairs, struct uct_ha_conn *conn)
{
    struct uct_ha_conn **table;
    uint32_t             len;

    for (uint32_t i = 0; i < pairs->table_len; i++) {
        if (pairs->table[i] == NULL) {
            pairs->table[i] = conn;
            conn->id        = i;
            return UCS_OK;
        }
    }
    len   = pairs->table_len == 0 ? 16 : 2 * pairs->table_len;
    table = realloc(pairs->table, len * sizeof(*table));
    if (table == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (uint32_t i = pairs->table_len; i < len; i++) {
        table[i] = NULL;
    }
    conn->id         = pairs->table_len;
    table[conn->id]  = conn;
    pairs->table     = table;
    pairs->table_len = len;
    return UCS_OK;
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
    conn->pairs     = pairs;
    conn->peer      = peer;
    conn->road      = road;
    conn->tx        = tx;
    peer->stranger  = 0; /* numbers of pairs must not be forgotten from here on */
    conn->sn        = sn;
    conn->peer_id   = HA_EP_ANY;
    conn->tag       = ha_pair_tag(pairs->cookie, peer->cookie, sn);
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
    uct_ha_setup_begin(&conn->setup, accepted, conn->rto_since);
    *conn_p = conn;
    return UCS_OK;
}

void uct_ha_conn_destroy(struct uct_ha_conn *conn)
{
    uct_ha_report_bare_end(conn->bare_told);
    uct_ha_conn_count(conn, 0, 0);
    uct_ha_setup_end(&conn->setup);
    uct_ha_lane_leave(conn->road);
    if (conn->attention) {
        ucs_list_del(&conn->attention_link);
    }
    conn->pairs->table[conn->id] = NULL;
    ucs_list_del(&conn->list);
    ucs_list_del(&conn->peer_link);
    free(conn);
}

struct uct_ha_conn *uct_ha_conn_find(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct uct_ha_pairs *pairs = peer->pairs;
    struct uct_ha_conn  *conn;

    if (record->dst_ep != HA_EP_ANY) {
        conn = record->dst_ep < pairs->table_len ? pairs->table[record->dst_ep] : NULL;
        return conn != NULL && conn->peer == peer && conn->tag == record->tag ? conn : NULL;
    }
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        if (conn->sn == record->sn && conn->tag == record->tag) {
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
