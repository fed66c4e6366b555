/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/tx.h"

#include "base/now.h"
#include "data/late.h"
#include "lane/ledger.h"
#include "pair/attention.h"
#include "pair/fact.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Beyond so many connections those that are silent are gone through at most as often: to look at each takes longer than
 * its messages, and one that is heard of seldom would be told of after each. */
#define MANY         256u
#define MANY_LOOK_NS 100000000ull

/* All of it is in the bounce buffer, or will be: the answer of a GET that was sent again and whose memory the rail does
 * not know comes there. */
static int fill_sge_bounced(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop, int slot,
                            struct ha_sge *sge)
{
    struct uct_ha_piece piece = {.mem = txop->desc->mem};

    uct_ha_piece_set(&piece, txop->desc->data, txop->core.length, txop->desc->mem);
    return uct_ha_piece_sge(&piece, (unsigned)slot, flow->road.lanes->rail_no[slot], sge) == 0 ? 1 : -ENXIO;
}

/* Gather list of an operation with the keys of `slot`; its length. -ENXIO when a
 * piece is not registered on that rail. */
static int fill_sge(const struct uct_ha_flow *flow, const struct uct_ha_txop *txop, int slot, struct ha_sge *sge)
{
    unsigned rail_no = flow->road.lanes->rail_no[slot];

    if (uct_ha_txop_is_copy(txop) || (txop->flags & UCT_HA_TXOP_BOUNCED)) {
        return fill_sge_bounced(flow, txop, slot, sge);
    }
    for (unsigned i = 0; i < txop->pieces; i++) {
        if (ucs_unlikely(uct_ha_piece_sge(&txop->more->piece[i], (unsigned)slot, rail_no, &sge[i]) != 0)) {
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

    send->flags &= marked ? ~HA_SEND_TELL : ~0u;
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

static int post_on_lane(struct uct_ha_flow *flow, struct uct_ha_lane *lane, struct uct_ha_txop *txop, int silent)
{
    const struct ha_op *op  = ha_log_op(&flow->tx.log, flow->tx.log.post);
    struct uct_ha_out   out = uct_ha_tx_out(flow, flow->tx.log.post, (enum ha_op_kind)op->kind, op->flags);
    struct ha_sge       sge[UCT_HA_IOV_MAX];
    struct ha_send      send;

    uct_ha_tx_describe(flow, &out, lane->send_tag, lane->slot, silent ? 0 : HA_SEND_TELL, &send);
    send.sge = sge;
    if (txop->pieces == 0) {
        ha_sge_set(sge, (uintptr_t)uct_ha_txop_bytes(txop, txop->core.length), txop->core.length, 0);
        send.num_sge = txop->core.length > 0;
        send.flags |= HA_SEND_INLINE;
    } else {
        send.num_sge = fill_sge(flow, txop, lane->slot, sge);
        if (ucs_unlikely(send.num_sge < 0)) {
            return send.num_sge;
        }
    }
    if (ucs_unlikely(ha_send_op_is_atomic(txop->op))) {
        send.atomic.rkey        = send.rkey; /* first: it is where compare_add will be */
        send.atomic.compare_add = txop->more->atomic.compare_add;
        send.atomic.swap        = txop->more->atomic.swap;
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
    if (!flow->is_held && uct_ha_txlog_op(&flow->tx, flow->tx.log.post)->op == HA_READ) {
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
    silent = room && ha_log_may_be_silent(&flow->tx.log, slot, npsn, uct_ha_flow_tell_every(flow, lane));
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
    if (status == -ENXIO && !ha_rail_is_gone(flow->road.lanes->rail[slot])) {
        reject_unregistered(flow, slot, late);
        return UCS_OK;
    }
    not_taken(flow, lane, status); /* also: no memory can be made known to a card that is gone */
    return UCS_ERR_NO_RESOURCE;
}

int uct_ha_tx_grow(struct uct_ha_flow *flow)
{
    if (uct_ha_txlog_grow(&flow->tx) != 0) {
        return 0;
    }
    uct_ha_flow_close_go(flow); /* fewer tell of their success */
    return 1;
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

    if (ucs_unlikely(uct_ha_flow_fence_waits(flow))) {
        flow->fence_next    = 0;
        flow->go.fence_seen = flows->fence_seq;
        flow->amo_fence     = flow->amo_issued;
        uct_ha_flow_close_go(flow); /* who may go now depends on these atomics */
        flags |= HA_OP_FLAG_FENCE;
    }
    if (kind == HA_OP_WRITE && ucs_unlikely(flow->put_counts)) {
        flags |= HA_OP_FLAG_RECEIVE;
        flow->tx.sent++;
    }
    (void)ha_log_append(&flow->tx.log, kind, flags, txop->core.length);
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
    struct uct_ha_lane *lane = flow->road.lane[flow->go.slot];

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

    if (!ha_log_is_silent(&flow->tx.log) || flow->tx.dead || !uct_ha_tx_has_room(flow)) {
        return;
    }
    txop              = uct_ha_tx_begin(flow, HA_WRITE, UCT_HA_BYTES, 0, 0);
    txop->remote_addr = 0;
    txop->rkey        = 0;
    uct_ha_tx_send(flow, HA_OP_TAIL, 0);
}

static int is_too_early(struct uct_ha_flows *flows)
{
    uint64_t now = uct_ha_now();

    if (now < flows->look_at) {
        return 1;
    }
    flows->look_at = now + MANY_LOOK_NS;
    return 0;
}

void uct_ha_tx_tails(struct uct_ha_flows *flows, int all)
{
    struct uct_ha_flow *flow, *next;

    if (!all && flows->count > MANY && is_too_early(flows)) {
        return;
    }
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
    if (flow->tx.dead || flow->go.rx_told == flow->go.rx_consumed || credit_waits(flow)) {
        return; /* some message has told it meanwhile, or will */
    }
    if (!uct_ha_tx_has_room(flow)) {
        flow->credit_due = 1;
        uct_ha_tx_backlog(flow);
        return;
    }
    flow->credit_index = flow->tx.log.tail;
    (void)uct_ha_tx_begin(flow, HA_SEND_IMM, UCT_HA_BYTES, UCT_HA_IMM_CREDIT_ONLY, 0);
    uct_ha_tx_send(flow, HA_OP_SEND, HA_OP_FLAG_QUIET);
}

ucs_status_t uct_ha_tx_refuse(struct uct_ha_flow *flow)
{
    if (!flow->reported) {
        uct_ha_attention_todo(flow->road.conn, UCT_HA_TODO_REPORT);
    }
    return flow->status;
}
