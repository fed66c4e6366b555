/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/leave.h"

#include "base/now.h"
#include "ctl/send.h"
#include "data/tx.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/progress.h"

#include <unistd.h>

#define MSEC 1000000ull
#define SEC  1000000000ull

/* A peer still needs us while we owe it answers to its own failover, and while
 * it has not said that it owes us nothing. */
static int all_settled_locked(struct uct_ha_iface *iface, int said_bye)
{
    struct uct_ha_conn *conn;
    struct uct_ha_peer *peer;
    int                 settled = 1;

    ucs_list_for_each (conn, &iface->pairs.conns, list) {
        if (!conn->tx->dead && ha_log_used(&conn->tx->log) > 0) {
            settled = 0;
        }
    }
    if (settled && said_bye) {
        ucs_list_for_each (peer, &iface->pairs.peers, list) {
            if (!peer->bye_rx && !peer->lost && !ucs_list_is_empty(&peer->conns) && !peer->all_dead) {
                settled = 0;
                uct_ha_send_bye_locked(peer, 1);
            }
        }
    }
    return settled;
}

static void mark_dead_peers_locked(struct uct_ha_iface *iface)
{
    struct uct_ha_peer *peer;
    struct uct_ha_conn *conn;

    ucs_list_for_each (peer, &iface->pairs.peers, list) {
        peer->all_dead = 1;
        ucs_list_for_each (conn, &peer->conns, peer_link) {
            peer->all_dead &= conn->tx->dead || conn->pair.epoch == 0;
        }
    }
}

/* Nobody is called any more. */
static void discard(struct uct_ha_iface *iface)
{
    struct uct_ha_conn *conn;

    iface->flows.discard = 1;
    pthread_mutex_lock(&iface->lanes.wake.lock);
    ucs_list_for_each (conn, &iface->pairs.conns, list) {
        uct_ha_flow_turn(uct_ha_flow_of(conn->road));
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
}

void uct_ha_leave(struct uct_ha_iface *iface)
{
    uint64_t now = uct_ha_now(), deadline = now + 3 * SEC, bye_at = 0;
    int      settled = 0;

    discard(iface);
    __atomic_store_n(&iface->ctl.discard, 1, __ATOMIC_RELAXED);
    while (!settled && now < deadline) {
        uct_ha_tx_tails(&iface->flows, 1);
        uct_ha_progress(&iface->super.super);
        now = uct_ha_now();
        pthread_mutex_lock(&iface->lanes.wake.lock);
        mark_dead_peers_locked(iface);
        settled = all_settled_locked(iface, 0);
        if (settled && now >= bye_at) {
            settled = all_settled_locked(iface, 1);
            bye_at  = now + 5 * MSEC;
        } else {
            settled = 0;
        }
        pthread_mutex_unlock(&iface->lanes.wake.lock);
        if (!settled) {
            usleep(200);
        }
    }
    pthread_mutex_lock(&iface->lanes.wake.lock);
    iface->lanes.leaving = 1;
    pthread_mutex_unlock(&iface->lanes.wake.lock);
}
