/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/retire.h"

#include "data/tx.h"
#include "pair/attention.h"
#include "pair/fact.h"

#include <stdlib.h>

#define KILLS_MAX 3 /* lanes that one operation may end */

static ucs_status_t result_status(const struct uct_ha_flow *flow, enum ha_op_result result)
{
    switch (result) {
    case HA_RESULT_OK:
    case HA_RESULT_PROVEN:
        return UCS_OK;
    case HA_RESULT_CANCELED:
        return flow->status;
    case HA_RESULT_REJECTED:
    default:
        return UCS_ERR_IO_ERROR;
    }
}

/* The slot in the ring may be used again by what the callbacks do: everything
 * needed is taken out first. */
static inline void conclude(struct uct_ha_flow *flow, const struct uct_ha_txop *txop, ucs_status_t status)
{
    const struct uct_ha_more *more    = txop->more;
    uct_completion_t         *comp    = uct_ha_txop_comp(txop);
    struct uct_ha_desc       *desc    = txop->desc;
    int                       stained = txop->flags & UCT_HA_TXOP_STAINED;

    uct_ha_flow_got(flow, txop);
    if (more != NULL && more->unpack != NULL && status == UCS_OK) {
        more->unpack(more->unpack_arg, desc->data, txop->core.length);
    }
    if (desc != NULL && !stained) {
        uct_ha_desc_free(uct_ha_flow_pool(flow), desc); /* else it stays with its chunk, unused */
    }
    if (comp != NULL) {
        uct_ha_completion_invoke(comp, status);
    }
}

void uct_ha_tx_complete_flushes(struct uct_ha_flow *flow)
{
    struct uct_ha_flush *flush;
    uct_completion_t    *comp;

    while (!ucs_list_is_empty(&flow->flushes)) {
        flush = ucs_list_head(&flow->flushes, struct uct_ha_flush, list);
        if ((int32_t)(flow->tx.log.head - flush->index) < 0 || (int32_t)(flow->amo_done - flush->amo) < 0 ||
            uct_ha_flow_ends(flow)) {
            break;
        }
        ucs_list_del(&flush->list);
        comp = flush->comp;
        free(flush);
        uct_ha_completion_invoke(comp, flow->tx.dead ? flow->status : UCS_OK);
    }
}

static inline void retired(struct uct_ha_flow *flow, int some)
{
    if (ucs_unlikely(!ucs_list_is_empty(&flow->flushes))) {
        uct_ha_tx_complete_flushes(flow);
    }
    if (ucs_unlikely(some && !flow->is_held && ha_log_used(&flow->tx.log) == 0)) {
        uct_ha_attention(flow->road.conn); /* nothing holds it open any more */
    }
}

void uct_ha_tx_retire(struct uct_ha_flow *flow)
{
    const struct uct_ha_txop *txop;
    enum ha_op_result         result;
    uint32_t                  index;
    int                       some = 0;

    while (ha_log_retire(&flow->tx.log, &index, &result)) {
        txop = uct_ha_txlog_op(&flow->tx, index);
        flow->flows->outstanding--;
        if (txop->pieces > 0) {
            conclude(flow, txop, result_status(flow, result));
        }
        some = 1;
    }
    retired(flow, some);
}

/* Its end concerns nobody: at most a bounce buffer comes back. */
static inline int is_nobodys(const struct uct_ha_txop *txop)
{
    return txop->pieces == 0 || (uct_ha_txop_is_copy(txop) && !(txop->flags & UCT_HA_TXOP_STAINED));
}

static inline void retire_silently(struct uct_ha_flow *flow, uint32_t end)
{
    flow->flows->outstanding -= end - flow->tx.log.head;
    ha_log_retire_to(&flow->tx.log, end);
}

/* All before `end` has just succeeded. What was sent from the log itself concerns nobody any more. */
static void retire_to(struct uct_ha_flow *flow, uint32_t end)
{
    struct ha_log            *log = &flow->tx.log;
    const struct uct_ha_txop *txop;
    uint32_t                  held = (int32_t)(flow->tx.held - end) < 0 ? flow->tx.held : end;

    for (uint32_t i = log->head; (int32_t)(held - i) > 0; i++) {
        txop = uct_ha_txlog_op(&flow->tx, i);
        if (ucs_unlikely(!is_nobodys(txop))) {
            retire_silently(flow, i + 1);
            conclude(flow, txop, UCS_OK);
        } else if (txop->pieces > 0) {
            uct_ha_desc_free(uct_ha_flow_pool(flow), txop->desc);
        }
    }
    if ((int32_t)(end - log->head) > 0) {
        retire_silently(flow, end);
    }
    if (ucs_unlikely(log->head != log->tail && ha_log_op(log, log->head)->state == HA_OP_DONE)) {
        uct_ha_tx_retire(flow);
        return;
    }
    retired(flow, 1);
}

/* A card fails at this operation, here or there. That is replayed like any other end of
 * a lane; but one at which every lane dies, while its rail is well, is at fault itself. */
static int kills_lanes(struct uct_ha_lane *lane, uint32_t index)
{
    struct uct_ha_flow *flow = uct_ha_flow_of(lane->road);

    flow->kills  = flow->kills > 0 && flow->killer == index ? flow->kills + 1 : 1;
    flow->killer = index;
    return flow->kills >= KILLS_MAX && uct_ha_fact_rail_is_well(lane);
}

static enum ha_cause cause_of(const struct ha_wc *wc)
{
    return wc->status == HA_WC_FLUSHED     ? HA_CAUSE_FLUSH
           : wc->status == HA_WC_NOT_READY ? HA_CAUSE_NOT_READY
                                           : HA_CAUSE_COMPLETION;
}

/* The first error of a lane says why; the flushes behind it say nothing. What was
 * executed is decided later by the peer's proof, not here. The peer, whose queue pair is
 * lost as well, may have been heard of first: the operation is at fault all the same. */
static void send_failed(struct uct_ha_lane *lane, const struct ha_wc *wc)
{
    struct uct_ha_flow *flow   = uct_ha_flow_of(lane->road);
    int                 faulty = wc->status == HA_WC_PROGRAM ||
                 (wc->status == HA_WC_OP_FAILED && kills_lanes(lane, (uint32_t)wc->wr_id));

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
              ha_rail_name(flow->road.lanes->rail[lane->slot]), lane->slot, lane->gen, ha_wc_raw_name(wc->raw),
              wc->vendor);
    uct_ha_fact_lane_down(lane, faulty ? HA_CAUSE_PROGRAM : cause_of(wc));
}

/* Work requests that a success stands for. One that the log knows nothing of any more, for itself; a mark, on a
 * lane where nothing is silent, for its operation as well. */
static inline unsigned covered(const struct uct_ha_lane *lane, const struct ha_wc *wc, uint32_t ended, unsigned before)
{
    return ucs_unlikely(lane->log_mtu == 0) ? 1u + (wc->wr_id >> 60 == UCT_HA_WR_MARK) : ucs_max(ended, before + 1);
}

void uct_ha_tx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc, unsigned before)
{
    struct uct_ha_flow *flow  = uct_ha_flow_of(lane->road);
    uint32_t            index = (uint32_t)wc->wr_id, ended;
    int                 seen;

    if (ucs_unlikely(wc->status != HA_WC_OK)) {
        uct_ha_lane_polled(lane, 1);
        send_failed(lane, wc);
        return;
    }
    seen  = (int32_t)(flow->tx.held - flow->tx.log.head) > 0; /* users are called, before all are retired */
    ended = ha_log_success(&flow->tx.log, index, lane->slot, lane->gen, seen);
    uct_ha_lane_polled(lane, covered(lane, wc, ended, before));
    if (ucs_likely(ha_log_all_ended(&flow->tx.log, index, ended))) {
        retire_to(flow, index + 1);
    } else {
        uct_ha_tx_retire(flow);
    }
}
