/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The glue of one side as its progress sees it: the user's operations, the
 * log, polling, delivery, and what the core asks progress to do.
 */

#include <string.h>

#include "sim.h"

/* ---- operations ---- */

/* The entry of the log as a work request on x's lane. */
static void fill_wqe(const struct sim_side *side, struct sim_qp *qp, struct sim_wqe *wqe, uint32_t index)
{
    const struct ha_op *entry = ha_log_op(&side->log, index);
    int                 marks = side->pair.view[qp - side->qp].offer == HA_PROOF_LEDGER;

    wqe->op       = side->op_of[index % SIM_LOG_SIZE];
    wqe->index    = index;
    wqe->kind     = entry->kind;
    wqe->pos      = qp->posted;
    wqe->receives = (uint8_t)ha_op_consumes_receive(entry);
    wqe->mark     = marks && ha_op_needs_mark(entry);
    wqe->npsn     = sim_data_packets(entry->length, entry->kind, qp->mtu) + wqe->mark;
}

/* Only a proof by packet number leaves it open how many may be silent. */
static uint32_t tell_every(const struct sim_side *side, int slot)
{
    return side->pair.view[slot].offer == HA_PROOF_PSN ? SIM_TELL_EVERY : 0;
}

static void note_posted(struct sim_pair *p, int x, uint32_t told_before)
{
    struct sim_side *side = &p->side[x];

    if (side->log.head == told_before || (int32_t)(told_before - side->log.head) < 0) {
        side->moved_at = p->world->now; /* nothing was waited for */
    }
    if (!ha_log_is_silent(&side->log)) {
        side->silent_at = p->world->now;
    }
}

/* The newest one, which has not been posted before, might as well have come just now: then the product does both
 * at once. */
static void enter_and_post(struct ha_log *log, uint32_t index, int slot, uint32_t npsn, int silent)
{
    const struct ha_op op = *ha_log_op(log, index);

    if (index + 1 != log->tail || op.posts > 0) {
        ha_log_post(log, slot, npsn, silent);
        return;
    }
    log->tail = index;
    ha_log_append_posted(log, &log->lane[slot], slot, (enum ha_op_kind)op.kind, op.flags, op.length, npsn, silent);
}

int sim_work_post(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp;
    struct sim_wqe  *wqe;
    uint32_t         index, npsn, told = side->log.told;

    slot = side->tx_slot;
    if (slot == HA_NO_SLOT || side->failed) {
        return 0;
    }
    index = ha_log_next_wait(&side->log);
    qp    = &side->qp[slot];
    if (index == side->log.tail) {
        return 0;
    }
    if (ha_log_is_held(&side->log)) {
        p->world->cover[SIM_COVER_FENCED_OP]++;
        return 0;
    }
    if (qp->num_wqe == SIM_WQES_MAX) {
        sim_violation(p, "L1 side %d posts tails without end", x);
        return 1;
    }
    wqe = &qp->wqe[qp->num_wqe];
    fill_wqe(side, qp, wqe, index);
    npsn = ha_log_npsn(ha_log_op(&side->log, index),
                       side->pair.view[slot].offer == HA_PROOF_LEDGER ? 0 : qp->mtu); /* as the log wants it */
    if (!ha_log_psn_room(&side->log, slot, npsn)) {
        return 0;
    }
    wqe->silent = (uint8_t)ha_log_may_be_silent(&side->log, slot, npsn, tell_every(side, slot));
    if (qp->state == SIM_QP_INIT || qp->state == SIM_QP_NONE) {
        sim_violation(p, "side %d posts on lane %d.%u, which is not connected", x, slot, qp->gen);
    }
    if (wqe->op != SIM_TAIL) {
        sim_oracle_post(p, x, wqe->op, slot);
    }
    sim_trace(p, "side %d: posts operation %d on lane %d.%u%s", x, (int)wqe->op, slot, qp->gen,
              wqe->silent ? ", silently" : "");
    enter_and_post(&side->log, index, slot, npsn, wqe->silent);
    note_posted(p, x, told);
    if (qp->num_wqe == qp->acked) {
        qp->progress_at = p->world->now;
    }
    qp->num_wqe++;
    qp->posted += wqe->npsn;
    p->world->cover[SIM_COVER_PSN_WRAP] += ha_psn_add(qp->psn, qp->posted) < qp->psn;
    return 1;
}

void sim_work_retire(struct sim_pair *p, int x)
{
    struct sim_side  *side = &p->side[x];
    enum ha_op_result result;
    uint32_t          index;

    while (ha_log_retire(&side->log, &index, &result)) {
        side->moved_at = p->world->now;
        if (side->op_of[index % SIM_LOG_SIZE] != SIM_TAIL) {
            sim_oracle_end(p, x, side->op_of[index % SIM_LOG_SIZE], result);
        }
    }
}

/* Somebody waits, or it has been silent for long: an operation of no effect that tells. */
int sim_work_tail(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    uint32_t         index;

    (void)slot;
    if (!ha_log_is_silent(&side->log) || !sim_user_has_room(side) || side->failed ||
        (!side->flushing && p->world->now - side->silent_at < p->world->silence)) {
        return 0;
    }
    index                             = ha_log_append(&side->log, HA_OP_TAIL, 0, 0);
    side->op_of[index % SIM_LOG_SIZE] = SIM_TAIL;
    p->world->cover[SIM_COVER_TAIL]++;
    return 1;
}

/* What has all ended is retired at once, as by the product. */
static void succeed(struct sim_pair *p, int x, uint32_t index, int slot)
{
    struct sim_side *side  = &p->side[x];
    uint32_t         ended = ha_log_success(&side->log, index, slot, side->qp[slot].gen, (int)(index & 1));

    if (!ha_log_all_ended(&side->log, index, ended)) {
        return;
    }
    for (uint32_t i = side->log.head; i != index + 1; i++) {
        side->moved_at = p->world->now;
        if (side->op_of[i % SIM_LOG_SIZE] != SIM_TAIL) {
            sim_oracle_end(p, x, side->op_of[i % SIM_LOG_SIZE], HA_RESULT_OK);
        }
    }
    ha_log_retire_to(&side->log, index + 1);
}

/* A success that is told stands for all before it. */
int sim_work_poll_send(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp   = &side->qp[slot];

    if (qp->polled == sim_data_told(qp) || side->failed) {
        return 0;
    }
    qp->polled += 1 + sim_below(p->world, sim_data_told(qp) - qp->polled);
    while (qp->wqe[qp->polled - 1].silent) {
        qp->polled++; /* of one that tells */
    }
    succeed(p, x, qp->wqe[qp->polled - 1].index, slot);
    sim_work_retire(p, x);
    return 1;
}

int sim_work_poll_error(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind = HA_EV_LANE_DOWN, .slot = slot, .gen = qp->gen, .cause = HA_CAUSE_COMPLETION};

    if (!qp->error_cqe || qp->polled != sim_data_told(qp)) {
        return 0;
    }
    qp->error_cqe = 0;
    if (qp->refused && !p->side[x].failed) {
        event.cause = HA_CAUSE_PROGRAM;
        p->world->cover[SIM_COVER_REJECTED]++;
        p->side[x].op[qp->wqe[qp->acked].op].refused = 1;
        ha_log_reject(&p->side[x].log, qp->wqe[qp->acked].index);
        sim_work_retire(p, x);
    }
    sim_side_give(p, x, &event);
    return 1;
}

/* ---- messages ---- */

int sim_work_deliver(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp   = &side->qp[slot];

    uint32_t op;

    if (qp->delivered == qp->taken || side->rx_slot != slot) {
        return 0;
    }
    op = qp->msg[qp->delivered++];
    if (p->side[!x].op[op].kind != HA_OP_SEND) {
        return 1; /* a WRITE that only counts */
    }
    sim_trace(p, "side %d: delivers message %u from lane %d.%u", x, op, slot, qp->gen);
    sim_oracle_deliver(p, x, op);
    return 1;
}

int sim_work_poll_receive(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp   = &side->qp[slot];

    if (qp->taken == qp->visible || qp->state == SIM_QP_NONE) {
        return 0;
    }
    qp->taken++;
    if (side->rx_slot != slot) {
        p->world->cover[SIM_COVER_HELD]++;
    } else {
        sim_work_deliver(p, x, slot);
    }
    return 1;
}

/* ---- what the core asks for ---- */

void sim_work_create(struct sim_pair *p, int x, int slot, uint32_t gen)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp   = &side->qp[slot];

    sim_oracle_create(p, x, slot, gen);
    memset(qp, 0, sizeof(*qp));
    qp->gen   = gen;
    qp->state = SIM_QP_INIT;
    qp->mtu   = slot == 0 ? 1024 : 2048;
    qp->psn   = sim_chance(p->world, 50) ? HA_PSN_MASK - sim_below(p->world, 12) : sim_below(p->world, HA_PSN_MASK);
    qp->ledger_addr    = sim_random(p->world);
    qp->ledger_key     = (uint32_t)sim_random(p->world);
    qp->created_untold = 1;
    qp->mute           = (uint8_t)sim_chance(p->world, 3);
    side->born[slot]   = p->world->now;
    ha_log_lane_start(&side->log, slot, gen, qp->psn);
    sim_trace(p, "side %d: builds lane %d.%u", x, slot, gen);
}

int sim_work_created(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind        = HA_EV_QP_CREATED,
                             .slot        = slot,
                             .gen         = qp->gen,
                             .psn         = qp->psn,
                             .qpn         = 100 + qp->gen * 2 + (uint32_t)slot,
                             .mtu         = (uint16_t)qp->mtu,
                             .proof       = p->side[x].proof[slot],
                             .ledger_addr = qp->ledger_addr,
                             .ledger_key  = qp->ledger_key};

    if (!qp->created_untold) {
        return 0;
    }
    qp->created_untold = 0;
    if (sim_chance(p->world, 2)) {
        event.kind = HA_EV_QP_FAILED;
        qp->state  = SIM_QP_NONE;
        p->world->cover[SIM_COVER_CONNECT_FAILED]++;
    }
    sim_side_give(p, x, &event);
    return 1;
}

int sim_work_drained(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind = HA_EV_DRAINED, .slot = slot, .gen = qp->gen};

    if (qp->drained_told || !qp->fence_asked || (qp->state != SIM_QP_ERR && !qp->gone) || qp->job ||
        qp->polled != sim_data_told(qp) || qp->error_cqe) {
        return 0;
    }
    p->world->cover[SIM_COVER_MARKER_LOST] += qp->state != SIM_QP_ERR;
    qp->drained_told = 1;
    sim_side_give(p, x, &event);
    return 1;
}

static void cover_resolution(struct sim_pair *p, struct sim_qp *qp, const struct sim_qp *its,
                             const struct ha_resolution *res)
{
    p->world->cover[SIM_COVER_RETIRED] += res->retired;
    p->world->cover[SIM_COVER_REPLAYED] += res->replayed;
    p->world->cover[SIM_COVER_FETCH_UNKNOWN] += res->unknown;
    for (uint32_t i = 0; i < qp->num_wqe; i++) {
        if (qp->wqe[i].pos < its->rx && qp->wqe[i].pos + qp->wqe[i].npsn > its->rx) {
            p->world->cover[SIM_COVER_PARTIAL]++;
        }
    }
}

/* Which operations does the log give up? Behind a ledger one at most is in doubt. */
static void note_unknown(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side   = &p->side[x];
    unsigned         doubts = 0;

    for (uint32_t i = side->log.head; i != side->log.tail; i++) {
        const struct ha_op *entry = ha_log_op(&side->log, i);

        if (entry->state == HA_OP_DONE && entry->result == HA_RESULT_UNKNOWN) {
            doubts += (unsigned)sim_oracle_unknown(p, x, side->op_of[i % SIM_LOG_SIZE]);
        }
    }
    if (doubts > 1 && side->pair.view[slot].proof == HA_PROOF_LEDGER) {
        sim_violation(p, "I2 %u operations of side %d are in doubt, the ledger leaves one", doubts, x);
    }
}

void sim_work_resolve(struct sim_pair *p, int x, int slot)
{
    struct sim_side      *side  = &p->side[x];
    struct sim_qp        *qp    = &side->qp[slot];
    const struct ha_view *view  = &side->pair.view[slot];
    struct ha_evidence    peer  = ha_pair_evidence(&side->pair, slot);
    struct ha_event       event = {.kind = HA_EV_RESOLVED, .slot = slot, .gen = qp->gen};
    struct ha_resolution  res;
    int                   rc;

    sim_oracle_resolve(p, x, slot);
    rc = ha_log_resolve(&side->log, slot, qp->gen, &peer, &res);
    sim_trace(p, "side %d: resolves lane %d.%u: k %u, retired %u, replayed %u, unknown %u", x, slot, qp->gen, res.k,
              res.retired, res.replayed, res.unknown);
    p->world->cover[SIM_COVER_EMPTY_PROOF] += view->proof == HA_PROOF_EMPTY;
    if (rc != 0) {
        event.kind  = HA_EV_BAD_PROOF;
        event.value = ha_pair_bad_proof(rc);
        sim_side_give(p, x, &event);
        return;
    }
    cover_resolution(p, qp, &p->side[!x].qp[slot], &res);
    qp->resolved_k     = res.k;
    qp->resolve_untold = 1; /* the control context may come in between */
    note_unknown(p, x, slot);
    sim_work_retire(p, x);
}

int sim_work_resolved(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind = HA_EV_RESOLVED, .slot = slot, .gen = qp->gen, .value = qp->resolved_k};

    if (!qp->resolve_untold) {
        return 0;
    }
    qp->resolve_untold = 0;
    sim_side_give(p, x, &event);
    return 1;
}

/* The drain of the receives ends when the proven number was delivered, and
 * only then: an empty completion queue says nothing. */
int sim_work_check_close(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind     = HA_EV_DELIVERED,
                             .slot     = slot,
                             .gen      = qp->gen,
                             .value    = qp->delivered,
                             .received = qp->taken,
                             .proof    = qp->final ? HA_PROOF_NONE : p->side[x].proof[slot]};

    if (!qp->close_asked) {
        return 0;
    }
    p->world->cover[SIM_COVER_UNPOLLED] += qp->delivered < qp->close_k;
    if (qp->delivered < qp->close_k) {
        return 0;
    }
    qp->close_asked = 0;
    event.psn       = sim_data_word(p, x, slot);
    sim_side_give(p, x, &event);
    return 1;
}

void sim_work_fail(struct sim_pair *p, int x, uint32_t why)
{
    struct sim_side *side = &p->side[x];

    sim_trace(p, "side %d: fails: %s", x, ha_fail_name(why));
    sim_oracle_fail(p, x);
    p->world->cover[SIM_COVER_ERROR_END]++;
    side->failed = 1;
    ha_log_cancel(&side->log);
    sim_work_retire(p, x);
    while (side->submitted < side->num_ops) { /* new operations are refused at once */
        sim_oracle_end(p, x, side->submitted++, HA_RESULT_CANCELED);
    }
    side->flushing = 0; /* with the same error */
    side->failed   = 2;
}

/* What has arrived is delivered before the queue pairs go. */
void sim_work_gone(struct sim_pair *p, int x)
{
    struct sim_side *side = &p->side[x];
    struct sim_qp   *qp;

    sim_trace(p, "side %d: gone", x);
    if (side->rx_slot != HA_NO_SLOT && !side->failed) {
        qp          = &side->qp[side->rx_slot];
        qp->visible = qp->taken = qp->num_msg;
        while (sim_work_deliver(p, x, side->rx_slot)) {
            continue;
        }
    }
    sim_oracle_gone(p, x);
    side->gone = 1;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (side->qp[slot].state != SIM_QP_NONE) {
            side->qp[slot].state = SIM_QP_ERR;
        }
    }
}
