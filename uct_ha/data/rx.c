/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/rx.h"

#include "data/amo.h"
#include "ctl/ctl.h"
#include "lane/ring.h"
#include "data/tx.h"

/* The peer has consumed more of our messages. Old totals may arrive late, in a
 * message that was sent again: forward only. */
static void take_credits(struct uct_ha_conn *conn, uint16_t total)
{
    if ((int16_t)(total - conn->tx_granted) > 0) {
        conn->tx_granted = total;
    }
}

static void count_delivered(struct uct_ha_lane *lane, uint32_t imm)
{
    struct uct_ha_conn *conn = lane->conn;

    take_credits(conn, (uint16_t)(imm >> UCT_HA_IMM_CREDIT_SHIFT));
    __atomic_store_n(&lane->rx_done, lane->rx_done + 1, __ATOMIC_RELAXED);
    conn->rx_consumed = (uint16_t)(conn->rx_consumed + !(imm & UCT_HA_IMM_CREDIT_ONLY));
}

/* Its buffer is free; tell the peer in time how many that makes. */
static void release(struct uct_ha_lane *lane, uint32_t buffer)
{
    struct uct_ha_conn *conn = lane->conn;

    if (ucs_unlikely((uint16_t)(conn->rx_consumed - conn->rx_told) >= conn->rx_window / 2)) {
        uct_ha_ring_grant(conn);
    }
    if (ucs_likely(!uct_ha_lane_is_fenced(lane))) {
        (void)uct_ha_ring_post_one(lane, buffer); /* fails only on a dead lane */
    }
    if (ucs_unlikely(lane->closing)) {
        uct_ha_ctl_attention(conn);
    }
}

static void deliver(struct uct_ha_lane *lane, uint32_t buffer, uint32_t length, uint32_t imm)
{
    struct uct_ha_conn  *conn  = lane->conn;
    struct uct_ha_iface *iface = conn->iface;

    count_delivered(lane, imm);
    if (!(imm & UCT_HA_IMM_CREDIT_ONLY)) {
        if (ucs_unlikely(imm & (UCT_HA_IMM_AMO_REQUEST | UCT_HA_IMM_AMO_REPLY))) {
            uct_ha_amo_take(conn, imm, uct_ha_ring_data(lane, buffer), length);
        } else if (ucs_likely(!iface->discard)) {
            (void)uct_ha_iface_invoke_am(&iface->super, imm & UCT_HA_IMM_AM_MASK,
                                         uct_ha_ring_data(lane, buffer), length, 0);
        }
    }
    release(lane, buffer);
}

/* A PUT is in its place already; only that it happened is of interest, and for
 * that no turn has to be waited for. */
static void take_put(struct uct_ha_lane *lane, uint32_t buffer, uint32_t imm)
{
    count_delivered(lane, imm);
    release(lane, buffer);
}

static void hold(struct uct_ha_lane *lane, uint32_t buffer, const struct ha_wc *wc)
{
    struct uct_ha_held *held = &lane->held[lane->held_tail++ % lane->conn->iface->rx_depth];

    held->buffer = buffer;
    held->length = wc->byte_len;
    held->imm    = wc->imm;
}

void uct_ha_rx_resume(struct uct_ha_conn *conn)
{
    struct uct_ha_lane *lane;
    struct uct_ha_held  held;

    while (conn->rx_slot != HA_NO_SLOT && (lane = conn->lane[conn->rx_slot]) != NULL &&
           lane->held_head != lane->held_tail) {
        held = lane->held[lane->held_head++ % conn->iface->rx_depth];
        deliver(lane, held.buffer, held.length, held.imm);
    }
}

/* A flushed receive is made by the device after ERR took hold: nothing executes
 * on this lane any more. It is the barrier behind which the proof is read. */
static void recv_failed(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    struct uct_ha_iface *iface = lane->conn->iface;

    if (!uct_ha_lane_is_fenced(lane)) {
        uct_ha_ctl_lane_down(lane, wc->status == HA_WC_FLUSHED ? HA_CAUSE_FLUSH :
                                                                 HA_CAUSE_COMPLETION);
        if (lane->proof == HA_PROOF_PSN || !uct_ha_lane_is_fenced(lane) || lane->conn == NULL) {
            return; /* the flushes of the other receives follow */
        }
    }
    if (lane->flushed && __atomic_load_n(&lane->settled, __ATOMIC_RELAXED)) {
        return;
    }
    __atomic_store_n(&lane->flushed, 1, __ATOMIC_RELEASE); /* the async handler looks at it */
    pthread_mutex_lock(&iface->ctl.lock);
    uct_ha_ctl_settle_locked(lane, HA_CTX_PROGRESS);
    uct_ha_ctl_attention_locked(lane->conn);
    uct_ha_ctl_flush_locked(iface);
    pthread_mutex_unlock(&iface->ctl.lock);
}

void uct_ha_rx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    uint32_t buffer = (uint32_t)wc->wr_id;

    if (ucs_unlikely(lane->final)) {
        return; /* the peer was told that this will not be taken */
    }
    if (ucs_unlikely(wc->status != HA_WC_OK)) {
        recv_failed(lane, wc);
        return;
    }
    __atomic_store_n(&lane->received, lane->received + 1, __ATOMIC_RELAXED);
    if (ucs_unlikely(wc->imm & UCT_HA_IMM_PUT)) {
        take_put(lane, buffer, wc->imm);
    } else if (ucs_likely(lane->conn->rx_slot == lane->slot &&
                          lane->held_head == lane->held_tail)) {
        deliver(lane, buffer, wc->byte_len, wc->imm);
    } else {
        hold(lane, buffer, wc);
    }
}
