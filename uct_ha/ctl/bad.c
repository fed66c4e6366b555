/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/bad.h"

#include "pair/cold.h"
#include "pair/conn.h"
#include "pair/failover.h"
#include "pair/peer.h"

void uct_ha_bad_sample_locked(struct uct_ha_peer *peer)
{
    const struct uct_ha_conn *conn;
    unsigned                  work = 0;
    int                       slot;

    if (peer->busy.awake == 0 || !peer->pairs->ctl->polled) {
        return; /* a program that does not look sees nothing move */
    }
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        slot = ha_pair_tx_slot(&conn->pair);
        if (slot != HA_NO_SLOT && uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx)) {
            work |= 1u << slot;
        }
    }
    for (int s = 0; s < HA_SLOTS; s++) {
        if (work & 1u << s) {
            ha_lossy_work(&peer->rail[s].lossy, peer->rail[s].moved, peer->rail[s].slow.last);
        }
    }
}

/* It answers, so it may go on as the standby; and while it is bad, work does not go back to it: not by the doing of a
 * side, either, that has no work which falls behind. */
static void hold_off(struct uct_ha_peer *peer, int slot, int leave)
{
    struct uct_ha_conn *conn;
    struct ha_event     hold    = {.kind = HA_EV_HOLD, .slot = slot};
    struct ha_event     suspect = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .cause = HA_CAUSE_SLOW};

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        hold.wait = uct_ha_cold_hold(conn, slot, ha_damp_hold(&peer->rail[slot].damp));
        uct_ha_failover_event_locked(conn, &hold, HA_CTX_ASYNC);
        if (leave && ha_pair_tx_slot(&conn->pair) == slot) {
            suspect.gen = conn->pair.lane[slot].gen;
            uct_ha_failover_event_locked(conn, &suspect, HA_CTX_ASYNC);
        }
    }
}

void uct_ha_bad_judge_locked(struct uct_ha_peer *peer)
{
    struct uct_ha_peer_rail *rail, *other;
    int                      slow;

    for (int s = 0; s < HA_SLOTS; s++) {
        rail  = &peer->rail[s];
        other = &peer->rail[!s];
        if (peer->pairs->config->lossy_rail && ha_lossy_is_worse(&rail->lossy, &other->lossy)) {
            rail->lossy_left = 1;
        }
        slow = ha_slow_is_worse(&rail->slow, &other->slow);
        rail->slow_left |= (uint8_t)(slow && ha_lossy_stalls(&rail->lossy));
        rail->lossy_left &= (uint8_t)(ha_lossy_is_bad(&rail->lossy) && ha_lossy_lost(&other->lossy) <= 1);
        rail->slow_left &= rail->slow.is_slow;
        if (rail->lossy_left || rail->slow_left || slow) {
            hold_off(peer, s, rail->lossy_left || rail->slow_left);
        }
    }
}
