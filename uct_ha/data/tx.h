/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TX_H_
#define UCT_HA_TX_H_

/*
 * Sending: from an appended operation to its completion. Data part only:
 * progress, no lock.
 *
 *   uct_ha_tx_append()  log entry + descriptor to fill in
 *   uct_ha_tx_commit()  posts it at once when the lane is there and nothing waits
 *   uct_ha_tx_success() a success completion came
 *   uct_ha_tx_retire()  ends what is done, oldest first, and calls the user
 */

#include "uct/iface.h"

/* The connection has ended: its status. The user is told from progress, once. */
ucs_status_t uct_ha_tx_refuse(struct uct_ha_conn *conn);

/* A window that has grown makes the difference negative. */
static inline int uct_ha_tx_has_credit(const struct uct_ha_conn *conn)
{
    return (int16_t)(conn->tx_sent - conn->tx_granted) < (int)conn->tx_credits;
}

/* May a new operation enter the log? UCS_OK, UCS_ERR_NO_RESOURCE, or the error
 * of a dead connection. `message`: it needs a credit. */
static inline ucs_status_t uct_ha_tx_check(struct uct_ha_conn *conn, int message)
{
    if (ucs_unlikely(ha_log_room(&conn->log) == 0 || conn->dead ||
                     (message && !uct_ha_tx_has_credit(conn)) ||
                     (!ucs_list_is_empty(&conn->pending) && conn->iface->dispatching != conn))) {
        conn->post_refused = 0;
        return conn->dead ? uct_ha_tx_refuse(conn) : UCS_ERR_NO_RESOURCE;
    }
    return UCS_OK;
}

/* The caller checked. The descriptor is valid until uct_ha_tx_commit(). */
static inline struct uct_ha_txop *uct_ha_tx_append(struct uct_ha_conn *conn, enum ha_op_kind kind,
                                                   enum ha_send_op op, size_t length)
{
    struct uct_ha_iface *iface = conn->iface;
    struct uct_ha_txop  *txop;
    unsigned             flags = 0;
    uint32_t             index;

    if (ucs_unlikely(conn->fence_next || conn->fence_seen != iface->fence_seq)) {
        conn->fence_next = 0;
        conn->fence_seen = iface->fence_seq;
        flags            = HA_OP_FLAG_FENCE;
    }
    if (kind == HA_OP_WRITE && ucs_unlikely(conn->put_counts)) {
        flags |= HA_OP_FLAG_RECEIVE;
        conn->tx_sent++;
    }
    index = ha_log_append(&conn->log, kind, flags, length);
    iface->outstanding++;
    txop         = &conn->txops[index & conn->log.mask];
    txop->op     = (uint8_t)op;
    txop->length = (uint32_t)length;
    txop->comp   = NULL;
    txop->desc   = NULL;
    txop->unpack = NULL;
    txop->flags  = 0;
    txop->behind = conn->reads_end;
    if (kind == HA_OP_READ || kind == HA_OP_FETCH) {
        conn->reads_end = index + 1;
    }
    return txop;
}

/* Post the entry at log.post on the active lane; UCS_ERR_NO_RESOURCE leaves it
 * waiting. */
ucs_status_t uct_ha_tx_post(struct uct_ha_conn *conn);

void uct_ha_tx_backlog(struct uct_ha_conn *conn);

/* The newest operation is filled in: send it, now or when its turn comes. */
static inline void uct_ha_tx_commit(struct uct_ha_conn *conn)
{
    if (ucs_unlikely(conn->tx_slot == HA_NO_SLOT ||
                     conn->log.post != conn->log.tail - 1 || uct_ha_tx_post(conn) != UCS_OK)) {
        uct_ha_tx_backlog(conn);
    }
}

/* Post what waits, as far as it goes. Returns operations posted. */
unsigned uct_ha_tx_resume(struct uct_ha_conn *conn);

void uct_ha_tx_retire(struct uct_ha_conn *conn);
void uct_ha_tx_complete_flushes(struct uct_ha_conn *conn);

/* A message that only tells the peer how many of its messages were consumed. */
void uct_ha_tx_credit(struct uct_ha_conn *conn);

/* Send completion of a lane, good or bad. */
void uct_ha_tx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc);

/* Entry `index` of the log was the program's fault. Afterwards, outside of any
 * lock: tell, and end the connection if the operation could not report it. */
void uct_ha_tx_reject(struct uct_ha_conn *conn, uint32_t index);
void uct_ha_tx_rejected(struct uct_ha_conn *conn);

/* The log holds operations in doubt; the control lock is held. */
void uct_ha_tx_doubt(struct uct_ha_conn *conn);

/* End everything with `status` and tell the user once when it matters to him. */
void uct_ha_tx_fail(struct uct_ha_conn *conn);
void uct_ha_tx_report(struct uct_ha_conn *conn);

/* The connection has requests queued: it takes its turn. */
void uct_ha_tx_queue_pending(struct uct_ha_conn *conn);

/* Let queued requests of the users try again. Returns how many went. */
unsigned uct_ha_tx_dispatch(struct uct_ha_iface *iface);

/* The requests that wait leave: to `cb`, but atomics without result end here when their endpoint does.
 * cb NULL: they are forgotten. */
void uct_ha_tx_purge(struct uct_ha_conn *conn, uct_pending_purge_callback_t cb, void *arg);

#endif
