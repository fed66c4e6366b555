/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/tx.h"

#include "data/amo.h"
#include "ctl/ctl.h"
#include "lane/desc.h"
#include "uct/ep.h"
#include "lane/ledger.h"
#include "lane/lost.h"
#include "data/late.h"
#include "lane/room.h"
#include "base/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KILLS_MAX 3 /* lanes that one operation may end */

/* A GET that was sent again and whose memory the rail does not know: the answer
 * comes to the bounce buffer. */
static int fill_sge_bounced(const struct uct_ha_conn *conn, const struct uct_ha_txop *txop,
                            int slot, struct ha_sge *sge)
{
    struct uct_ha_piece piece;

    uct_ha_piece_set(&piece, txop->desc->data, txop->length, txop->desc->mem,
                     conn->iface->rail_no);
    sge[0].addr   = piece.addr;
    sge[0].length = piece.length;
    sge[0].lkey   = piece.lkey[slot];
    return (piece.rails & (1u << slot)) ? 1 : -ENXIO;
}

/* Gather list of an operation with the keys of `slot`; its length. -ENXIO when a
 * piece is not registered on that rail. */
static int fill_sge(const struct uct_ha_conn *conn, const struct uct_ha_txop *txop, int slot,
                    struct ha_sge *sge)
{
    if (ucs_unlikely(txop->flags & UCT_HA_TXOP_BOUNCED)) {
        return fill_sge_bounced(conn, txop, slot, sge);
    }
    for (unsigned i = 0; i < txop->pieces; i++) {
        sge[i].addr   = txop->piece[i].addr;
        sge[i].length = txop->piece[i].length;
        sge[i].lkey   = txop->piece[i].lkey[slot];
        if (ucs_unlikely(!(txop->piece[i].rails & (1u << slot)))) {
            return -ENXIO;
        }
    }
    return txop->pieces;
}

static uint32_t make_imm(struct uct_ha_conn *conn, const struct uct_ha_txop *txop)
{
    /* Always the present total: a message that is sent again tells no less
     * than it did the first time. */
    conn->rx_told = conn->rx_consumed;
    return txop->imm | (uint32_t)conn->rx_consumed << UCT_HA_IMM_CREDIT_SHIFT;
}

/* The peer proves by ledger. A mark that cannot be posted is the lane's end: the
 * operation is under way, and what became of it the proof has to say. */
static int post_marked(struct uct_ha_conn *conn, struct uct_ha_lane *lane, struct ha_send *send)
{
    const struct ha_op *op = ha_log_op(&conn->log, conn->log.post);
    int                 marked = ha_op_needs_mark(op);
    int                 status;

    send->flags |= marked ? HA_SEND_SILENT : 0;
    status = ha_rc_post_send(lane->rc, send);
    if (status != 0 || !marked) {
        return status;
    }
    uct_ha_room_sent(lane);
    if (uct_ha_ledger_mark(lane, uct_ha_wr_id(UCT_HA_WR_MARK, lane->id, conn->log.post),
                           conn->log.lane[lane->slot].nxt + 1) != 0) {
        conn->tx_slot = HA_NO_SLOT;
        uct_ha_ctl_lane_down(lane, HA_CAUSE_COMPLETION);
    }
    return status;
}

static int post_on_lane(struct uct_ha_conn *conn, struct uct_ha_lane *lane,
                        const struct uct_ha_txop *txop)
{
    struct ha_sge  sge[UCT_HA_IOV_MAX];
    struct ha_send send;
    int            status;

    send.wr_id       = uct_ha_wr_id(UCT_HA_WR_SEND, lane->id, conn->log.post);
    send.op          = txop->op;
    send.flags       = 0;
    send.sge         = sge;
    send.remote_addr = txop->remote_addr;
    send.rkey        = uct_ha_rkey(txop->rkey, lane->slot);
    if (txop->pieces == 0) {
        sge[0].addr   = (uintptr_t)txop->bytes;
        sge[0].length = txop->length;
        send.num_sge  = txop->length > 0;
        send.flags   |= HA_SEND_INLINE;
    } else {
        status = fill_sge(conn, txop, lane->slot, sge);
        if (ucs_unlikely(status < 0)) {
            return status;
        }
        send.num_sge = (uint16_t)status;
    }
    send.imm = txop->op <= HA_WRITE_IMM ? make_imm(conn, txop) : 0;
    if (ucs_unlikely(txop->op >= HA_FETCH_ADD)) {
        send.compare_add = txop->atomic.compare_add;
        send.swap        = txop->atomic.swap;
    }
    if (ucs_unlikely(lane->log_mtu == 0)) {
        return post_marked(conn, lane, &send);
    }
    return ha_rc_post_send(lane->rc, &send);
}

/* The program's own fault: this operation ends with an error, the rest goes on.
 * But one without a completion, a buffered message for example, would vanish
 * without a word: then the endpoint ends. */
void uct_ha_tx_reject(struct uct_ha_conn *conn, uint32_t index)
{
    const struct uct_ha_txop *txop = &conn->txops[index & conn->log.mask];

    ha_log_reject(&conn->log, index);
    if (txop->comp == NULL) {
        conn->fatal = HA_FAIL_REFUSED;
    } else if (txop->op <= HA_WRITE_IMM) {
        conn->tx_sent--; /* the peer will never count it */
    }
}

/* It cannot say that it is in doubt: its endpoint has to. */
static void end_in_doubt(struct uct_ha_conn *conn, const struct uct_ha_txop *txop)
{
    static const char *const names[] = { "message", "PUT", "PUT", "GET", "fetch-add", "compare-and-swap" };

    if (conn->fatal == HA_FAIL_NONE) {
        ucs_error("ha_rc: endpoint %u ends: a %s of %u bytes to 0x%lx was executed or not, nobody can tell, and it "
                  "has no completion to say so", conn->id, names[txop->op], txop->length,
                  (unsigned long)txop->remote_addr);
    }
    conn->fatal = HA_FAIL_DOUBT;
    conn->todo |= UCT_HA_TODO_REJECT;
}

/* The proof could not tell about some: those with a completion say so. */
void uct_ha_tx_doubt(struct uct_ha_conn *conn)
{
    for (uint32_t i = conn->log.head; i != conn->log.tail; i++) {
        const struct ha_op *op   = ha_log_op(&conn->log, i);
        struct uct_ha_txop *txop = &conn->txops[i & conn->log.mask];

        if (op->state != HA_OP_DONE || op->result != HA_RESULT_UNKNOWN || (txop->flags & UCT_HA_TXOP_DOUBT)) {
            continue;
        }
        txop->flags |= UCT_HA_TXOP_DOUBT;
        if (ha_op_consumes_receive(op)) {
            conn->tx_sent--; /* the peer has not counted it, and never will */
        }
        if (conn->ep != NULL && txop->comp == NULL) {
            end_in_doubt(conn, txop);
        }
    }
}

void uct_ha_tx_rejected(struct uct_ha_conn *conn)
{
    struct ha_event event = { .kind = HA_EV_PEER_LOST, .value = conn->fatal };

    if (conn->rejected.raw != 0) {
        ucs_error("ha_rc: operation rejected: %s (vendor 0x%x); check addresses, lengths and "
                  "remote keys", ha_wc_raw_name(conn->rejected.raw), conn->rejected.vendor);
        conn->rejected.raw = 0;
    }
    if (conn->fatal != HA_FAIL_NONE) {
        conn->fatal   = HA_FAIL_NONE;
        conn->tx_slot = HA_NO_SLOT;
        uct_ha_ctl_event(conn, &event);
    }
}

/* The memory cannot be made known to the rail that has to carry on. */
static void reject_unregistered(struct uct_ha_conn *conn, int slot, int error)
{
    if (conn->ep == NULL && conn->txops[conn->log.post & conn->log.mask].op == HA_READ) {
        ha_log_reject(&conn->log, conn->log.post); /* who wanted to read has gone */
        uct_ha_ctl_attention(conn);
        return;
    }
    ucs_error("ha_rc: memory of an operation cannot be registered on rail %s: %s; it fails "
              "(check the locked-memory limit, ulimit -l)",
              ha_rail_name(conn->iface->rail[slot]), strerror(-error));
    uct_ha_tx_reject(conn, conn->log.post);
    uct_ha_tx_rejected(conn);
    ha_log_next_wait(&conn->log);
    uct_ha_ctl_attention(conn); /* progress ends it: no completion will come */
}

/* Fences are kept here, not by IBV_SEND_FENCE: Soft-RoCE may forget a request with
 * that flag for ever after a retransmission. Does the next operation have one before it
 * that still waits for its data? (Messages and writes are ordered anyway.) */
static int reads_before(const struct uct_ha_conn *conn)
{
    uint32_t ahead = conn->txops[conn->log.post & conn->log.mask].behind - conn->log.head;

    return ahead - 1u < conn->log.post - conn->log.head;
}

ucs_status_t uct_ha_tx_post(struct uct_ha_conn *conn)
{
    int                 slot = conn->tx_slot;
    struct uct_ha_lane *lane = conn->lane[slot];
    const struct ha_op *op   = ha_log_op(&conn->log, conn->log.post);
    int                 status, late = -ENXIO;

    if (ucs_unlikely((op->flags & HA_OP_FLAG_FENCE) && reads_before(conn))) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (ucs_unlikely(!uct_ha_room_for_send(conn->iface, slot))) {
        return UCS_ERR_NO_RESOURCE; /* completions have to be polled first */
    }
    if (ucs_unlikely(!ha_log_psn_room(&conn->log, slot, ha_log_npsn(op, lane->log_mtu)))) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = post_on_lane(conn, lane, &conn->txops[conn->log.post & conn->log.mask]);
    if (ucs_unlikely(status == -ENXIO)) {
        late   = uct_ha_late(conn, slot);
        status = late != 0 ? -ENXIO :
                 post_on_lane(conn, lane, &conn->txops[conn->log.post & conn->log.mask]);
    }
    if (ucs_likely(status == 0)) {
        ha_log_post(&conn->log, slot, lane->log_mtu);
        uct_ha_room_sent(lane);
        return UCS_OK;
    }
    if (status == -ENXIO) {
        reject_unregistered(conn, slot, late);
        return UCS_OK;
    }
    if (status != -ENOMEM && status != -EAGAIN) {
        conn->tx_slot = HA_NO_SLOT;
        uct_ha_ctl_lane_down(lane, HA_CAUSE_COMPLETION);
    }
    return UCS_ERR_NO_RESOURCE;
}

void uct_ha_tx_backlog(struct uct_ha_conn *conn)
{
    if (!conn->backlogged) {
        conn->backlogged = 1;
        ucs_list_add_tail(&conn->iface->backlog, &conn->backlog_link);
    }
}

unsigned uct_ha_tx_resume(struct uct_ha_conn *conn)
{
    unsigned posted = 0;

    if (conn->credit_due) {
        uct_ha_tx_credit(conn);
    }
    uct_ha_amo_resume(conn);
    while (conn->tx_slot != HA_NO_SLOT &&
           ha_log_next_wait(&conn->log) != conn->log.tail) {
        if (uct_ha_tx_post(conn) != UCS_OK) {
            break;
        }
        posted++;
    }
    if (ha_log_no_backlog(&conn->log) && !conn->credit_due && !uct_ha_amo_owes(conn) &&
        conn->backlogged) {
        conn->backlogged = 0;
        ucs_list_del(&conn->backlog_link);
    }
    return posted;
}

/* A message that grants credits is in the log and not posted: when it is, it
 * tells the total of that moment. */
static int credit_waits(const struct uct_ha_conn *conn)
{
    uint32_t index = conn->credit_index;

    return index - conn->log.head < ha_log_used(&conn->log) &&
           conn->txops[index & conn->log.mask].imm == UCT_HA_IMM_CREDIT_ONLY &&
           ha_log_op(&conn->log, index)->state == HA_OP_WAIT;
}

void uct_ha_tx_credit(struct uct_ha_conn *conn)
{
    struct uct_ha_txop *txop;

    conn->credit_due = 0;
    if (conn->dead || conn->rx_told == conn->rx_consumed || credit_waits(conn)) {
        return; /* some message has told it meanwhile, or will */
    }
    if (ha_log_room(&conn->log) == 0) {
        conn->credit_due = 1;
        uct_ha_tx_backlog(conn);
        return;
    }
    conn->credit_index = conn->log.tail;
    txop         = uct_ha_tx_append(conn, HA_OP_SEND, HA_SEND_IMM, 0);
    txop->imm    = UCT_HA_IMM_CREDIT_ONLY;
    txop->pieces = 0;
    uct_ha_tx_commit(conn);
}

static ucs_status_t result_status(const struct uct_ha_conn *conn, enum ha_op_result result)
{
    switch (result) {
    case HA_RESULT_OK:
    case HA_RESULT_PROVEN:
        return UCS_OK;
    case HA_RESULT_CANCELED:
        return conn->status;
    case HA_RESULT_REJECTED:
    default:
        return UCS_ERR_IO_ERROR;
    }
}

/* The slot in the ring may be used again by what the callbacks do: everything
 * needed is taken out first. */
static void complete(struct uct_ha_conn *conn, uint32_t index, ucs_status_t status)
{
    struct uct_ha_txop *txop       = &conn->txops[index & conn->log.mask];
    uct_completion_t   *comp       = txop->comp;
    struct uct_ha_desc *desc       = txop->desc;
    uct_unpack_callback_t unpack   = txop->unpack;
    void               *unpack_arg = txop->unpack_arg;
    uint32_t            length     = txop->length;
    int                 stained    = txop->flags & UCT_HA_TXOP_STAINED;

    conn->iface->outstanding--;
    if (unpack != NULL && status == UCS_OK) {
        unpack(unpack_arg, desc->data, length);
    }
    if (desc != NULL && !stained) {
        uct_ha_desc_free(conn->iface, desc); /* else it stays with its chunk, unused */
    }
    if (comp != NULL) {
        uct_ha_completion_invoke(comp, status);
    }
}

void uct_ha_tx_complete_flushes(struct uct_ha_conn *conn)
{
    struct uct_ha_flush *flush;
    uct_completion_t    *comp;

    while (!ucs_list_is_empty(&conn->flushes)) {
        flush = ucs_list_head(&conn->flushes, struct uct_ha_flush, list);
        if ((int32_t)(conn->log.head - flush->index) < 0 || (int32_t)(uct_ha_amo_done(conn) - flush->amo) < 0 ||
            uct_ha_conn_ends(conn)) {
            break;
        }
        ucs_list_del(&flush->list);
        comp = flush->comp;
        free(flush);
        uct_ha_completion_invoke(comp, conn->dead ? conn->status : UCS_OK);
    }
}

void uct_ha_tx_retire(struct uct_ha_conn *conn)
{
    enum ha_op_result result;
    uint32_t          index;
    int               retired = 0;

    while (ha_log_retire(&conn->log, &index, &result)) {
        complete(conn, index, result_status(conn, result));
        retired = 1;
    }
    if (ucs_unlikely(!ucs_list_is_empty(&conn->flushes))) {
        uct_ha_tx_complete_flushes(conn);
    }
    if (ucs_unlikely(retired && conn->ep == NULL && ha_log_used(&conn->log) == 0)) {
        uct_ha_ctl_attention(conn); /* nothing holds it open any more */
    }
}

/* A card fails at this operation, here or there. That is replayed like any other end of
 * a lane; but one at which every lane dies, while its rail is well, is at fault itself. */
static int kills_lanes(struct uct_ha_lane *lane, uint32_t index)
{
    struct uct_ha_conn *conn = lane->conn;
    struct uct_ha_ctl  *ctl  = &conn->iface->ctl;
    int                 kills;

    conn->kills  = conn->kills > 0 && conn->killer == index ? conn->kills + 1 : 1;
    conn->killer = index;
    pthread_mutex_lock(&ctl->lock);
    kills = conn->kills >= KILLS_MAX &&
            (ctl->heartbeat == 0 || uct_ha_peer_rail_answers(conn->peer, lane->slot, uct_ha_now()));
    pthread_mutex_unlock(&ctl->lock);
    return kills;
}

static enum ha_cause cause_of(const struct ha_wc *wc)
{
    return wc->status == HA_WC_FLUSHED   ? HA_CAUSE_FLUSH :
           wc->status == HA_WC_NOT_READY ? HA_CAUSE_NOT_READY : HA_CAUSE_COMPLETION;
}

/* The first error of a lane says why; the flushes behind it say nothing. What was
 * executed is decided later by the peer's proof, not here. The peer, whose queue pair is
 * lost as well, may have been heard of first: the operation is at fault all the same. */
static void send_failed(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    struct uct_ha_conn *conn   = lane->conn;
    int                 faulty = wc->status == HA_WC_PROGRAM ||
                                 (wc->status == HA_WC_OP_FAILED &&
                                  kills_lanes(lane, (uint32_t)wc->wr_id));

    if (faulty) {
        /* Believed only when the peer has answered the fence: the memory of a
         * process that dies is gone a moment before its queue pairs. */
        lane->rejected = *wc;
        lane->rejects  = 1;
    }
    if (uct_ha_lane_is_fenced(lane)) {
        return;
    }
    ucs_debug("ha_rc: %s lane %u.%u: send completion %s (vendor 0x%x)",
              ha_rail_name(conn->iface->rail[lane->slot]), lane->slot, lane->gen,
              ha_wc_raw_name(wc->raw), wc->vendor);
    uct_ha_ctl_lane_down(lane, faulty ? HA_CAUSE_PROGRAM : cause_of(wc));
}

void uct_ha_tx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    struct uct_ha_conn *conn = lane->conn;

    if (ucs_unlikely(wc->status != HA_WC_OK)) {
        send_failed(lane, wc);
        return;
    }
    ha_log_success(&conn->log, (uint32_t)wc->wr_id, lane->slot, lane->gen);
    uct_ha_tx_retire(conn);
}

void uct_ha_tx_report(struct uct_ha_conn *conn)
{
    if (conn->reported || conn->ep == NULL || conn->canceled) {
        return;
    }
    conn->reported = 1;
    UCT_HA_STATS_ADD(ep_errors, 1);
    uct_iface_handle_ep_err(&conn->iface->super.super, &conn->ep->super.super, conn->status);
}

ucs_status_t uct_ha_tx_refuse(struct uct_ha_conn *conn)
{
    if (!conn->reported) {
        pthread_mutex_lock(&conn->iface->ctl.lock);
        conn->todo |= UCT_HA_TODO_REPORT;
        uct_ha_ctl_attention_locked(conn);
        pthread_mutex_unlock(&conn->iface->ctl.lock);
    }
    return conn->status;
}

void uct_ha_tx_fail(struct uct_ha_conn *conn)
{
    int owed = ha_log_used(&conn->log) > 0 || !ucs_list_is_empty(&conn->flushes) ||
               uct_ha_amo_outstanding(conn) > 0 ||
               !ucs_list_is_empty(&conn->pending);

    __atomic_store_n(&conn->dead, 1, __ATOMIC_RELAXED);
    conn->tx_slot = HA_NO_SLOT;
    uct_ha_lost_stain(conn, 0);
    uct_ha_lost_stain(conn, 1);
    ha_log_cancel(&conn->log);
    uct_ha_amo_cancel(conn);
    uct_ha_tx_retire(conn);
    /* A peer that has taken its leave while nothing is under way is simply
     * done. The next operation, if there is one, will tell. */
    if (owed || !__atomic_load_n(&conn->peer->bye_rx, __ATOMIC_RELAXED)) {
        uct_ha_tx_report(conn);
    }
    if (conn->ep == NULL) {
        uct_ha_ctl_attention(conn); /* nobody will close it */
    }
}

void uct_ha_tx_queue_pending(struct uct_ha_conn *conn)
{
    if (!conn->pending_queued && !ucs_list_is_empty(&conn->pending)) {
        conn->pending_queued = 1;
        ucs_list_add_tail(&conn->iface->pending, &conn->pending_link);
    }
}
