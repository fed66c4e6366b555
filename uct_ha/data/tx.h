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

#include "data/flow.h"

/* The connection has ended: its status. The user is told from progress, once. */
ucs_status_t uct_ha_tx_refuse(struct uct_ha_flow *flow);

/* A window that has grown makes the difference negative. */
static inline int uct_ha_tx_has_credit(const struct uct_ha_flow *flow)
{
    return (int16_t)(flow->tx.sent - flow->tx_granted) < (int)flow->tx_credits;
}

/* May a new operation enter the log? UCS_OK, UCS_ERR_NO_RESOURCE, or the error
 * of a dead connection. `message`: it needs a credit. */
static inline ucs_status_t uct_ha_tx_check(struct uct_ha_flow *flow, int message)
{
    if (ucs_unlikely(ha_log_room(&flow->tx.log) == 0 || flow->tx.dead || (message && !uct_ha_tx_has_credit(flow)) ||
                     (!ucs_list_is_empty(&flow->pending) && flow->flows->dispatching != flow))) {
        flow->post_refused = 0;
        return flow->tx.dead ? uct_ha_tx_refuse(flow) : UCS_ERR_NO_RESOURCE;
    }
    return UCS_OK;
}

/* The caller checked. The descriptor is valid until uct_ha_tx_commit(). `flags`: HA_OP_FLAG_QUIET where nobody
 * waits for the end, and what is sent is in the log or in a bounce buffer. */
static inline struct uct_ha_txop *uct_ha_tx_append_flags(struct uct_ha_flow *flow, enum ha_op_kind kind,
                                                         enum ha_send_op op, size_t length, unsigned flags)
{
    struct uct_ha_flows *flows = flow->flows;
    struct uct_ha_txop  *txop;
    uint32_t             index;

    if (ucs_unlikely(flow->fence_next || flow->fence_seen != flows->fence_seq)) {
        flow->fence_next = 0;
        flow->fence_seen = flows->fence_seq;
        flags |= HA_OP_FLAG_FENCE;
    }
    if (kind == HA_OP_WRITE && ucs_unlikely(flow->put_counts)) {
        flags |= HA_OP_FLAG_RECEIVE;
        flow->tx.sent++;
    }
    index = ha_log_append(&flow->tx.log, kind, flags, length);
    flows->outstanding++;
    txop         = uct_ha_txlog_op(&flow->tx, index);
    txop->op     = (uint8_t)op;
    txop->length = (uint32_t)length;
    txop->comp   = NULL;
    txop->desc   = NULL;
    txop->unpack = NULL;
    txop->flags  = 0;
    return txop;
}

static inline struct uct_ha_txop *uct_ha_tx_append(struct uct_ha_flow *flow, enum ha_op_kind kind, enum ha_send_op op,
                                                   size_t length)
{
    return uct_ha_tx_append_flags(flow, kind, op, length, 0);
}

/* Post the entry at log.post on the active lane; UCS_ERR_NO_RESOURCE leaves it
 * waiting. */
ucs_status_t uct_ha_tx_post(struct uct_ha_flow *flow);

void uct_ha_tx_backlog(struct uct_ha_flow *flow);

/* The newest operation is filled in: send it, now or when its turn comes. */
static inline void uct_ha_tx_commit(struct uct_ha_flow *flow)
{
    if (ucs_unlikely(flow->tx_slot == HA_NO_SLOT || flow->tx.log.post != flow->tx.log.tail - 1 ||
                     uct_ha_tx_post(flow) != UCS_OK)) {
        uct_ha_tx_backlog(flow);
    }
}

/* Post what waits, as far as it goes. */
void uct_ha_tx_post_waiting(struct uct_ha_flow *flow);

/* Somebody waits for the end of all that is under way: when nothing would tell, something is sent that does. */
void uct_ha_tx_tail(struct uct_ha_flow *flow);

/* ... of every connection, or of those that have sent nothing since the last call. */
void uct_ha_tx_tails(struct uct_ha_flows *flows, int all);

void uct_ha_tx_retire(struct uct_ha_flow *flow);
void uct_ha_tx_complete_flushes(struct uct_ha_flow *flow);

/* A message that only tells the peer how many of its messages were consumed. */
void uct_ha_tx_credit(struct uct_ha_flow *flow);

/* Send completion of a lane, good or bad. */
void uct_ha_tx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc);

/* An operation was rejected. Outside of any lock: tell, and end the connection if the operation
 * could not report it. */
void uct_ha_tx_rejected(struct uct_ha_flow *flow);

#endif
