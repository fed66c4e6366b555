/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The data plane: reliable connections. What was posted is on the wire; its
 * packets execute in order at the responder, also after the requester was
 * stopped and while the responder's fence settles. An acknowledgement may
 * never come; a success may wait to be polled; a message may be seen late.
 */

#include "model.h"

static struct model_qp *responder_of(struct model_world *w, int x, int slot)
{
    struct model_qp *mine = &w->side[x].qp[slot], *its = &w->side[!x].qp[slot];

    return its->gen == mine->gen && its->state >= MODEL_QP_UP ? its : 0;
}

int model_data_is_cut(const struct model_world *w, int slot, unsigned gen)
{
    return gen < w->dead[slot];
}

/* A cut hits the lanes that are there; a later generation finds the rail well. */
int model_data_cut(struct model_world *w, int x, int slot, int n)
{
    const struct model_qp *a = &w->side[0].qp[slot], *b = &w->side[1].qp[slot];
    unsigned               gen = a->gen > b->gen ? a->gen : b->gen;
    int something              = (a->state == MODEL_QP_INIT || a->state == MODEL_QP_UP || b->state == MODEL_QP_INIT ||
                     b->state == MODEL_QP_UP);

    (void)x;
    (void)n;
    if (w->cuts == 0 || !something || model_data_is_cut(w, slot, gen)) {
        return 0;
    }
    w->cuts--;
    w->dead[slot] = (uint8_t)(gen + 1);
    return 1;
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

int model_data_post(struct model_world *w, int x, int slot, int n)
{
    struct model_side *side = &w->side[x];
    struct model_qp   *qp   = &side->qp[slot];
    uint32_t           index, npsn;
    int                silent;

    (void)n;
    if (side->tx_slot != slot || side->failed) {
        return 0;
    }
    index = ha_log_next_wait(&side->log);
    if (index == side->log.tail) {
        return 0;
    }
    if (ha_log_is_held(&side->log)) {
        model_cover[MODEL_COVER_FENCED_OP]++;
        return 0;
    }
    npsn   = model_npsn(ha_log_op(&side->log, index));
    silent = ha_log_may_be_silent(&side->log, slot, npsn, model_proof() == HA_PROOF_PSN ? MODEL_TELL : 0);
    if (!ha_log_psn_room(&side->log, slot, npsn)) {
        return 0;
    }
    if (qp->num_ops == MODEL_OPS_MAX) {
        model_violation(w, "I1 more is posted on a lane than there are operations");
        return 1;
    }
    model_tell("posts %c%u on lane %d.%u%s", model_kind(x, index), index, slot, qp->gen, silent ? ", silently" : "");
    model_oracle_post(w, x, index, slot);
    enter_and_post(&side->log, index, slot, npsn, silent);
    model_cover[MODEL_COVER_SILENT] += (unsigned)silent;
    qp->silent            = (uint8_t)(qp->silent | silent << qp->num_ops);
    qp->op[qp->num_ops++] = (uint8_t)index;
    return 1;
}

/* Nothing will tell of what was posted, and that is asked for. */
int model_data_tail(struct model_world *w, int x, int slot, int n)
{
    struct ha_log *log = &w->side[x].log;

    (void)slot;
    (void)n;
    if (!ha_log_is_silent(log) || w->side[x].failed || log->tail == model_num_ops(x) ||
        model_kind(x, log->tail) != 'T') {
        return 0;
    }
    ha_log_append(log, HA_OP_TAIL, 0, 0);
    model_cover[MODEL_COVER_TAIL]++;
    return 1;
}

unsigned model_data_told(const struct model_qp *qp)
{
    unsigned told = qp->acked;

    while (told > qp->polled && (qp->silent >> (told - 1) & 1)) {
        told--;
    }
    return told;
}

/* The next packet of x executes at the other side. */
static int execute(struct model_world *w, int x, int slot)
{
    struct model_qp *qp = &w->side[x].qp[slot], *its = responder_of(w, x, slot);
    unsigned         end = 0, op;

    if (its == 0 || its->state == MODEL_QP_ERR || its->rx_ops >= qp->num_ops) {
        return 0;
    }
    op = qp->op[its->rx_ops];
    for (unsigned i = 0; i <= its->rx_ops; i++) {
        end += model_packets(x, qp->op[i]) + model_mark(x, qp->op[i]);
    }
    model_oracle_packet(w, x, slot);
    its->rx++;
    model_cover[MODEL_COVER_ERRING] += its->state == MODEL_QP_ERRING;
    model_cover[MODEL_COVER_SENDER_FENCED] += qp->state == MODEL_QP_ERR;
    model_cover[MODEL_COVER_READ_AGAIN] += model_kind(x, op) == 'R' && (w->side[x].executed >> op & 1);
    model_cover[MODEL_COVER_WRAP] += ha_psn_add(model_psn(slot), its->rx) < model_psn(slot);
    model_tell("packet of %c%u executes on lane %d.%u", model_kind(x, op), op, slot, qp->gen);
    if (its->rx == end) {
        its->rx_ops++;
        its->marks = (uint8_t)(its->marks + model_mark(x, op));
    }
    if (its->rx != end - model_mark(x, op)) {
        return 1;
    }
    if (its->final) {
        model_oracle_execute_undead(w, x, op);
        return 1;
    }
    model_oracle_execute(w, x, op);
    if (model_receivers(x) >> op & 1) {
        its->msg[its->num_msg++] = (uint8_t)op;
        if (!model_options.late_recvs) {
            its->visible = its->num_msg;
        }
        model_side_follow(w, !x);
        model_cover[MODEL_COVER_HELD] += its->delivered < its->visible;
    }
    return 1;
}

int model_data_execute(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    return !model_data_is_cut(w, slot, w->side[x].qp[slot].gen) && execute(w, x, slot);
}

/* It left before the cut. */
int model_data_execute_late(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    return model_data_is_cut(w, slot, w->side[x].qp[slot].gen) && execute(w, x, slot);
}

void model_data_retire(struct model_world *w, int x)
{
    enum ha_op_result result;
    uint32_t          index;

    while (ha_log_retire(&w->side[x].log, &index, &result)) {
        model_oracle_end(w, x, index, result);
    }
}

/* What has all ended is retired at once, as by the product. */
static void succeed(struct model_world *w, int x, uint32_t index, int slot)
{
    struct ha_log *log   = &w->side[x].log;
    uint32_t       ended = ha_log_success(log, index, slot, w->side[x].qp[slot].gen, (int)(index & 1));

    if (!ha_log_all_ended(log, index, ended)) {
        return;
    }
    for (uint32_t i = log->head; i != index + 1; i++) {
        model_oracle_end(w, x, i, HA_RESULT_OK);
        ha_log_op(log, i)->state = HA_OP_FREE; /* nobody looks, but two states would be told apart here */
    }
    ha_log_retire_to(log, index + 1);
}

/* `n` + 1 successes are polled by the completion of the last of them. */
int model_data_poll_send(struct model_world *w, int x, int slot, int n)
{
    struct model_side *side = &w->side[x];
    struct model_qp   *qp   = &side->qp[slot];

    if (qp->polled + n >= qp->acked || (qp->silent >> (qp->polled + n) & 1) || side->failed) {
        return 0;
    }
    qp->polled = (uint8_t)(qp->polled + n + 1);
    succeed(w, x, qp->op[qp->polled - 1], slot);
    model_data_retire(w, x);
    model_side_follow(w, x);
    return 1;
}

/* The acknowledgement or the answer of x's oldest executed request arrives. */
static int acknowledge(struct model_world *w, int x, int slot)
{
    struct model_qp *qp = &w->side[x].qp[slot], *its = responder_of(w, x, slot);
    unsigned         op;

    if (its == 0 || qp->acked >= its->rx_ops || (its->final && qp->gone) || qp->drained_told ||
        (qp->state != MODEL_QP_UP && qp->state != MODEL_QP_ERRING)) {
        return 0;
    }
    op = qp->op[qp->acked++];
    w->side[x].has_data |= (uint8_t)(1u << op);
    model_tell("%c%u is acknowledged on lane %d.%u", model_kind(x, op), op, slot, qp->gen);
    if (!model_options.late_sends) {
        model_data_poll_send(w, x, slot, qp->acked - qp->polled - 1);
    }
    return 1;
}

int model_data_ack(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    return !model_data_is_cut(w, slot, w->side[x].qp[slot].gen) && acknowledge(w, x, slot);
}

int model_data_ack_late(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    return model_data_is_cut(w, slot, w->side[x].qp[slot].gen) && acknowledge(w, x, slot);
}

/* A received message becomes visible at x. */
int model_data_show_receive(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp = &w->side[x].qp[slot];

    (void)n;
    if (qp->visible == qp->num_msg || qp->state == MODEL_QP_NONE) {
        return 0;
    }
    qp->visible++;
    model_side_follow(w, x);
    return 1;
}
