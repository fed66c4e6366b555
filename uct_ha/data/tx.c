/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/tx.h"

#include "data/late.h"
#include "lane/ledger.h"
#include "pair/attention.h"
#include "pair/fact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KILLS_MAX 3 /* lanes that one operation may end */

/* A GET that was sent again and whose memory the rail does not know: the answer
 * comes to the bounce buffer. */
static int fill_sge_bounced(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop, int slot,
                            struct ha_sge *sge)
{
    struct uct_ha_piece piece = {.mem = txop->desc->mem};

    uct_ha_piece_set(&piece, txop->desc->data, txop->length, txop->desc->mem);
    return uct_ha_piece_sge(&piece, (unsigned)slot, flow->road.lanes->rail_no[slot], sge) == 0 ? 1 : -ENXIO;
}

/* Gather list of an operation with the keys of `slot`; its length. -ENXIO when a
 * piece is not registered on that rail. */
static int fill_sge(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop, int slot, struct ha_sge *sge)
{
    unsigned rail_no = flow->road.lanes->rail_no[slot];

    if (ucs_unlikely(txop->flags & UCT_HA_TXOP_BOUNCED)) {
        return fill_sge_bounced(flow, txop, slot, sge);
    }
    for (unsigned i = 0; i < txop->pieces; i++) {
        if (ucs_unlikely(uct_ha_piece_sge(&txop->piece[i], (unsigned)slot, rail_no, &sge[i]) != 0)) {
            return -ENXIO;
        }
    }
    return txop->pieces;
}

/* The peer proves by ledger. A mark that cannot be posted is the lane's end: the
 * operation is under way, and what became of it the proof has to say. */
static int post_marked(struct uct_ha_flow *flow, struct uct_ha_lane *lane, struct ha_send *send)
{
    const struct ha_op *op     = ha_log_op(&flow->tx.log, flow->tx.log.post);
    int                 marked = ha_op_needs_mark(op);
    int                 status;

    send->flags |= marked ? HA_SEND_SILENT : 0;
    status = ha_rc_error(ha_rc_post_send(lane->rc, send));
    if (status != 0 || !marked) {
        return status;
    }
    uct_ha_lane_sent(lane);
    if (uct_ha_ledger_mark(lane, uct_ha_wr_id(UCT_HA_WR_MARK, lane->id, flow->tx.log.post),
                           flow->tx.log.lane[lane->slot].nxt + 1) != 0) {
        uct_ha_flow_stop(flow);
        uct_ha_fact_lane_down(lane, HA_CAUSE_COMPLETION);
    }
    return status;
}

static int post_on_lane(struct uct_ha_flow *flow, struct uct_ha_lane *lane, const struct uct_ha_txop *txop, int silent)
{
    struct ha_sge  sge[UCT_HA_IOV_MAX];
    struct ha_send send;

    uct_ha_tx_describe(flow, txop, lane, lane->slot, flow->tx.log.post, txop->op, silent ? HA_SEND_SILENT : 0, &send);
    send.sge = sge;
    if (txop->pieces == 0) {
        sge[0].addr   = (uintptr_t)txop->bytes;
        sge[0].length = txop->length;
        send.num_sge  = txop->length > 0;
        send.flags |= HA_SEND_INLINE;
    } else {
        send.num_sge = fill_sge(flow, txop, lane->slot, sge);
        if (ucs_unlikely(send.num_sge < 0)) {
            return send.num_sge;
        }
    }
    if (ucs_unlikely(ha_send_op_is_atomic(txop->op))) {
        send.atomic.rkey        = send.rkey; /* first: it is where compare_add will be */
        send.atomic.compare_add = txop->atomic.compare_add;
        send.atomic.swap        = txop->atomic.swap;
    }
    if (ucs_unlikely(lane->log_mtu == 0)) {
        return post_marked(flow, lane, &send);
    }
    return ha_rc_error(ha_rc_post_send(lane->rc, &send));
}

void uct_ha_tx_rejected(struct uct_ha_flow *flow)
{
    struct ha_event event = {.kind = HA_EV_PEER_LOST, .value = flow->tx.fatal};

    if (flow->tx.rejected.raw != 0) {
        ucs_error("ha_rc [HA-503]: operation rejected: %s (vendor 0x%x); check addresses, lengths and "
                  "remote keys",
                  ha_wc_raw_name(flow->tx.rejected.raw), flow->tx.rejected.vendor);
        flow->tx.rejected.raw = 0;
    }
    if (flow->tx.fatal != HA_FAIL_NONE) {
        flow->tx.fatal = HA_FAIL_NONE;
        uct_ha_flow_stop(flow);
        uct_ha_fact(flow->road.conn, &event);
    }
}

/* The memory cannot be made known to the rail that has to carry on. */
static void reject_unregistered(struct uct_ha_flow *flow, int slot, int error)
{
    if (flow->ep == NULL && uct_ha_txlog_op(&flow->tx, flow->tx.log.post)->op == HA_READ) {
        ha_log_reject(&flow->tx.log, flow->tx.log.post); /* who wanted to read has gone */
        uct_ha_attention(flow->road.conn);
        return;
    }
    ucs_error("ha_rc [HA-504]: memory of an operation cannot be registered on rail %s: %s; it fails "
              "(check the locked-memory limit, ulimit -l)",
              ha_rail_name(flow->road.lanes->rail[slot]), strerror(-error));
    uct_ha_txlog_reject(&flow->tx, flow->tx.log.post);
    uct_ha_tx_rejected(flow);
    ha_log_next_wait(&flow->tx.log);
    uct_ha_attention(flow->road.conn); /* progress ends it: no completion will come */
}

/* Silent sends may hold all places in the completion queue. Each lane has one more, for a send that tells,
 * when none such is under way. */
static int has_own_place(const struct uct_ha_flow *flow, const struct uct_ha_lane *lane)
{
    return lane->tell_every > 1 && (int32_t)(flow->tx.log.told - flow->tx.log.head) <= 0;
}

/* It waits, for room or for another lane. */
static void not_taken(struct uct_ha_flow *flow, struct uct_ha_lane *lane, int status)
{
    if (status != -ENOMEM && status != -EAGAIN) {
        uct_ha_flow_stop(flow);
        uct_ha_fact_lane_down(lane, HA_CAUSE_COMPLETION);
    }
}

ucs_status_t uct_ha_tx_post(struct uct_ha_flow *flow)
{
    int                 slot = flow->tx_slot;
    struct uct_ha_lane *lane = flow->road.lane[slot];
    const struct ha_op *op   = ha_log_op(&flow->tx.log, flow->tx.log.post);
    uint32_t            npsn = ha_log_npsn(op, lane->log_mtu);
    int                 room = uct_ha_room_for_send(lane->room);
    int                 status, silent, late = -ENXIO;

    if (ucs_unlikely(ha_log_is_held(&flow->tx.log))) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (ucs_unlikely(!room && !has_own_place(flow, lane))) {
        return UCS_ERR_NO_RESOURCE; /* completions have to be polled first */
    }
    if (ucs_unlikely(!ha_log_psn_room(&flow->tx.log, slot, npsn))) {
        return UCS_ERR_NO_RESOURCE;
    }
    silent = room && ha_log_may_be_silent(&flow->tx.log, slot, npsn, lane->tell_every);
    status = post_on_lane(flow, lane, uct_ha_txlog_op(&flow->tx, flow->tx.log.post), silent);
    if (ucs_unlikely(status == -ENXIO)) {
        late   = uct_ha_late(flow, slot);
        status = late != 0 ? -ENXIO : post_on_lane(flow, lane, uct_ha_txlog_op(&flow->tx, flow->tx.log.post), silent);
    }
    if (ucs_likely(status == 0)) {
        ha_log_post(&flow->tx.log, slot, npsn, silent);
        uct_ha_lane_sent(lane);
        if (ucs_unlikely(silent && !flow->silent_listed)) {
            uct_ha_flow_list_silent(flow);
        }
        if (ucs_unlikely(!__atomic_load_n(&flow->tx.awake, __ATOMIC_RELAXED))) {
            uct_ha_attention_posted(flow->road.conn);
        }
        return UCS_OK;
    }
    if (status == -ENXIO) {
        reject_unregistered(flow, slot, late);
        return UCS_OK;
    }
    not_taken(flow, lane, status);
    return UCS_ERR_NO_RESOURCE;
}

void uct_ha_tx_backlog(struct uct_ha_flow *flow)
{
    uct_ha_flow_close_go(flow);
    if (!flow->backlogged) {
        flow->backlogged = 1;
        ucs_list_add_tail(&flow->flows->backlog, &flow->backlog_link);
    }
}

static void append(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags)
{
    struct uct_ha_flows *flows = flow->flows;
    struct uct_ha_txop  *txop  = uct_ha_txlog_op(&flow->tx, flow->tx.log.tail);

    if (ucs_unlikely(flow->fence_next || flow->fence_seen != flows->fence_seq)) {
        flow->fence_next = 0;
        flow->fence_seen = flows->fence_seq;
        flags |= HA_OP_FLAG_FENCE;
    }
    if (kind == HA_OP_WRITE && ucs_unlikely(flow->put_counts)) {
        flags |= HA_OP_FLAG_RECEIVE;
        flow->tx.sent++;
    }
    (void)ha_log_append(&flow->tx.log, kind, flags, txop->length);
    flows->outstanding++;
}

void uct_ha_tx_send(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags)
{
    append(flow, kind, flags);
    if (ucs_unlikely(flow->tx_slot == HA_NO_SLOT || flow->tx.log.post != flow->tx.log.tail - 1 ||
                     uct_ha_tx_post(flow) != UCS_OK)) {
        uct_ha_tx_backlog(flow);
    }
}

void uct_ha_tx_not_taken(struct uct_ha_flow *flow, enum ha_op_kind kind, unsigned flags, int status)
{
    struct uct_ha_lane *lane = flow->go.lane;

    append(flow, kind, flags);
    uct_ha_tx_backlog(flow);
    not_taken(flow, lane, ha_rc_error(status));
}

void uct_ha_tx_post_waiting(struct uct_ha_flow *flow)
{
    while (flow->tx_slot != HA_NO_SLOT && ha_log_next_wait(&flow->tx.log) != flow->tx.log.tail &&
           uct_ha_tx_post(flow) == UCS_OK) {
    }
}

/* Its log may be full: then there are some in it that tell, and room will be. */
void uct_ha_tx_tail(struct uct_ha_flow *flow)
{
    struct uct_ha_txop *txop;

    if (!ha_log_is_silent(&flow->tx.log) || flow->tx.dead || ha_log_room(&flow->tx.log) == 0) {
        return;
    }
    txop              = uct_ha_tx_begin(flow, HA_WRITE, 0, 0, 0);
    txop->remote_addr = 0;
    txop->rkey        = 0;
    uct_ha_tx_send(flow, HA_OP_TAIL, 0);
}

void uct_ha_tx_tails(struct uct_ha_flows *flows, int all)
{
    struct uct_ha_flow *flow, *next;

    ucs_list_for_each_safe (flow, next, &flows->silent, silent_link) {
        if (!all && flow->silent_tail != flow->tx.log.tail) {
            flow->silent_tail = flow->tx.log.tail;
            continue;
        }
        uct_ha_tx_tail(flow);
        if (ha_log_silent(&flow->tx.log) == 0) {
            flow->silent_listed = 0;
            ucs_list_del(&flow->silent_link);
            uct_ha_flow_close_go(flow); /* which relies on the list */
        }
    }
}

/* A message that grants credits is in the log and not posted: when it is, it
 * tells the total of that moment. */
static int credit_waits(const struct uct_ha_flow *flow)
{
    uint32_t index = flow->credit_index;

    return index - flow->tx.log.head < ha_log_used(&flow->tx.log) &&
           uct_ha_txlog_op(&flow->tx, index)->imm == UCT_HA_IMM_CREDIT_ONLY &&
           ha_log_op(&flow->tx.log, index)->state == HA_OP_WAIT;
}

void uct_ha_tx_credit(struct uct_ha_flow *flow)
{
    flow->credit_due = 0;
    if (flow->tx.dead || flow->rx_told == flow->rx_consumed || credit_waits(flow)) {
        return; /* some message has told it meanwhile, or will */
    }
    if (ha_log_room(&flow->tx.log) == 0) {
        flow->credit_due = 1;
        uct_ha_tx_backlog(flow);
        return;
    }
    flow->credit_index = flow->tx.log.tail;
    (void)uct_ha_tx_begin(flow, HA_SEND_IMM, 0, UCT_HA_IMM_CREDIT_ONLY, 0);
    uct_ha_tx_send(flow, HA_OP_SEND, HA_OP_FLAG_QUIET);
}

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
static inline void complete(struct uct_ha_flow *flow, const struct uct_ha_txop *txop, ucs_status_t status)
{
    uct_completion_t   *comp    = txop->comp;
    struct uct_ha_desc *desc    = txop->desc;
    int                 stained = txop->flags & UCT_HA_TXOP_STAINED;

    flow->flows->outstanding--;
    if (txop->pieces == 0) {
        return;
    }
    if (txop->unpack != NULL && status == UCS_OK) {
        txop->unpack(txop->unpack_arg, desc->data, txop->length);
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
    if (ucs_unlikely(some && flow->ep == NULL && ha_log_used(&flow->tx.log) == 0)) {
        uct_ha_attention(flow->road.conn); /* nothing holds it open any more */
    }
}

void uct_ha_tx_retire(struct uct_ha_flow *flow)
{
    enum ha_op_result result;
    uint32_t          index;
    int               some = 0;

    while (ha_log_retire(&flow->tx.log, &index, &result)) {
        complete(flow, uct_ha_txlog_op(&flow->tx, index), result_status(flow, result));
        some = 1;
    }
    retired(flow, some);
}

/* All before `end` has just succeeded. What was sent from the log itself concerns nobody any more. */
static void retire_to(struct uct_ha_flow *flow, uint32_t end)
{
    struct ha_log            *log = &flow->tx.log;
    const struct uct_ha_txop *txop;
    uint32_t                  held = (int32_t)(flow->tx.held - end) < 0 ? flow->tx.held : end;

    while ((int32_t)(held - log->head) > 0) {
        txop = uct_ha_txlog_op(&flow->tx, log->head);
        ha_log_retire_to(log, log->head + 1);
        complete(flow, txop, UCS_OK);
    }
    if ((int32_t)(end - log->head) > 0) {
        flow->flows->outstanding -= end - log->head;
        ha_log_retire_to(log, end);
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

ucs_status_t uct_ha_tx_refuse(struct uct_ha_flow *flow)
{
    if (!flow->reported) {
        uct_ha_attention_todo(flow->road.conn, UCT_HA_TODO_REPORT);
    }
    return flow->status;
}
