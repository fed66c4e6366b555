/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The oracle knows what really happened to every operation and holds it
 * against the invariants I1 ... I12 of docs/failover.md. It uses none of the
 * guards of the core. The first violation ends the schedule.
 */

#include <stdarg.h>
#include <stdio.h>

#include "sim.h"

void sim_violation(struct sim_pair *p, const char *format, ...)
{
    va_list args;

    if (p->world->violation[0] != '\0') {
        return;
    }
    va_start(args, format);
    vsnprintf(p->world->violation, sizeof(p->world->violation), format, args);
    va_end(args);
    sim_trace(p, "VIOLATION: %s", p->world->violation);
}

/* ---- execution ---- */

void sim_oracle_packet(struct sim_pair *p, int x, int slot)
{
    const struct sim_qp *responder = &p->side[!x].qp[slot];

    if (responder->final) {
        return; /* nobody has said that it has stopped */
    }
    if (responder->settled_told) {
        sim_violation(p, "I10 lane %d.%u executes at side %d after its proof", slot, responder->gen, !x);
    }
    if (p->side[!x].failed && !responder->gone) {
        sim_violation(p, "I7 lane %d.%u executes at side %d after its error end", slot, responder->gen, !x);
    }
}

/* By a card that nobody could stop. A message goes nowhere, a READ is not answered. */
void sim_oracle_undead(struct sim_pair *p, int x, uint32_t i, int slot)
{
    struct sim_op *op = &p->side[x].op[i];

    if (op->kind == HA_OP_SEND || op->kind == HA_OP_READ) {
        return;
    }
    p->world->cover[SIM_COVER_UNDEAD]++;
    if (op->executed) {
        sim_violation(p, "I4 operation %u of side %d executes twice, late, on lane %d", i, x, slot);
    }
    op->executed = op->undead = 1;
}

/* A message that was executed and never seen has not happened; a PUT with immediate data has. */
void sim_oracle_never_taken(struct sim_pair *p, int x, uint32_t i)
{
    struct sim_side *side = &p->side[x];

    if (side->op[i].kind != HA_OP_SEND) {
        return;
    }
    side->op[i].executed = 0;
    if (i < side->next_executed) {
        side->next_executed = i;
    }
}

void sim_oracle_execute(struct sim_pair *p, int x, uint32_t i, int slot)
{
    struct sim_side *side = &p->side[x];
    struct sim_op   *op   = &side->op[i];

    if (op->kind == HA_OP_READ) {
        if (i < side->fenced_executed) {
            sim_violation(p, "I9 READ %u of side %d executes after operation %u, fenced behind it", i, x,
                          side->fenced_executed - 1);
        }
        p->world->cover[SIM_COVER_READ_AGAIN] += op->executed;
        op->executed = 1;
        return;
    }
    if (op->executed) {
        sim_violation(p, "I4 operation %u of side %d executes twice, now on lane %d", i, x, slot);
    }
    if (op->unknown) {
        sim_violation(p, "I4 operation %u of side %d executes, it was given up as in doubt", i, x);
    }
    while (side->next_executed < side->num_ops &&
           (side->op[side->next_executed].kind == HA_OP_READ || side->op[side->next_executed].wrong ||
            side->op[side->next_executed].unknown ||
            (side->op[side->next_executed].executed && side->next_executed < i))) {
        side->next_executed++;
    }
    if (i > side->next_executed) {
        sim_violation(p, "I5 operation %u of side %d executes before %u", i, x, side->next_executed);
    }
    op->executed        = 1;
    side->next_executed = i + 1;
    if (op->fence) {
        side->fenced_executed = i + 1;
    }
}

/* ---- posting, resolving, ending ---- */

/* Is x's queue pair of that generation stopped for good? */
static int is_stopped(const struct sim_pair *p, int x, int slot, uint32_t gen)
{
    const struct sim_qp *qp = &p->side[x].qp[slot];

    return qp->gen != gen || qp->state == SIM_QP_ERR || qp->state <= SIM_QP_INIT || qp->final;
}

void sim_oracle_post(struct sim_pair *p, int x, uint32_t i, int slot)
{
    struct sim_op *op = &p->side[x].op[i];

    if (op->slot >= 0 && (!is_stopped(p, 0, op->slot, op->gen) || !is_stopped(p, 1, op->slot, op->gen))) {
        sim_violation(p, "I3 operation %u of side %d is posted again while lane %d.%u lives", i, x, op->slot, op->gen);
    }
    if (op->ended) {
        sim_violation(p, "I1 operation %u of side %d is posted after its end", i, x);
    }
    if (p->side[!x].qp[slot].gen != p->side[x].qp[slot].gen || p->side[!x].qp[slot].state < SIM_QP_UP) {
        sim_violation(p, "side %d posts on lane %d.%u before the peer is ready for it", x, slot,
                      p->side[x].qp[slot].gen);
    }
    if (p->side[x].pair.lane[slot].act == 0) {
        sim_violation(p, "I8 side %d posts on a lane without epoch", x);
    }
    op->slot = (int8_t)slot;
    op->gen  = p->side[x].qp[slot].gen;
}

/* Is what the peer proves something else than what happened there? */
static int is_false(const struct sim_pair *p, int x, int slot)
{
    const struct ha_view *view = &p->side[x].pair.view[slot];
    const struct sim_qp  *mine = &p->side[x].qp[slot], *its = &p->side[!x].qp[slot];
    uint32_t              numbers = view->proof == HA_PROOF_LEDGER ? its->marks : its->rx;

    return (ha_proof_has_word(view->proof) && view->rxpsn != ha_psn_add(mine->psn, numbers)) ||
           (ha_proof_has_count(view->proof) && view->received != its->num_msg);
}

/* The proof that x is about to adopt must be the truth, and final. */
void sim_oracle_resolve(struct sim_pair *p, int x, int slot)
{
    const struct ha_view *view = &p->side[x].pair.view[slot];
    const struct sim_qp  *mine = &p->side[x].qp[slot], *its = &p->side[!x].qp[slot];
    uint32_t              rx = its->gen == mine->gen ? its->rx : 0;

    if ((mine->state != SIM_QP_ERR && !(mine->gone && mine->drained_told)) || mine->polled != sim_data_told(mine)) {
        sim_violation(p, "I3 side %d resolves lane %d.%u before it is stopped and drained", x, slot, mine->gen);
    }
    if (its->gen == mine->gen && its->state >= SIM_QP_UP && its->state != SIM_QP_ERR && !its->final) {
        sim_violation(p, "I3 side %d resolves lane %d.%u before the peer has stopped it", x, slot, mine->gen);
    }
    if (view->proof == HA_PROOF_EMPTY ? rx != 0 : its->gen == mine->gen && is_false(p, x, slot)) {
        sim_violation(p, "I10 proof %u, %u of lane %d.%u is not the truth (%u packets after %u)", view->rxpsn,
                      view->received, slot, mine->gen, rx, mine->psn);
    }
}

/* An operation ends without anybody knowing whether it ran, 1, or knowing that
 * it ran but not its answer, 0. Doubt must not be where the lane's order tells. */
int sim_oracle_unknown(struct sim_pair *p, int x, uint32_t i)
{
    struct sim_side *side = &p->side[x];
    struct sim_op   *op   = &side->op[i];

    if (op->unknown) {
        return 0;
    }
    op->unknown = 1;
    p->world->cover[SIM_COVER_DOUBT] += op->kind != HA_OP_FETCH || !op->executed;
    p->world->cover[SIM_COVER_MARK_LOST] += op->kind != HA_OP_FETCH && op->executed;
    if (p->side[x].pair.view[op->slot].proof == HA_PROOF_NONE && op->kind != HA_OP_SEND && op->kind != HA_OP_READ) {
        return 1;
    }
    if (!ha_proof_has_count(p->side[!x].proof[op->slot]) && !(op->kind == HA_OP_FETCH && op->executed)) {
        sim_violation(p, "I2 operation %u of side %d ends in doubt, the proof leaves none", i, x);
    }
    for (uint32_t j = 0; j < i; j++) {
        if (side->op[j].slot == op->slot && side->op[j].gen == op->gen && !side->op[j].ended &&
            side->op[j].kind == HA_OP_SEND && !side->op[j].executed) {
            sim_violation(p, "I2 operation %u of side %d ends in doubt, message %u before it never came", i, x, j);
        }
    }
    return op->kind != HA_OP_FETCH || !op->executed;
}

static int may_end_so(const struct sim_pair *p, int x, const struct sim_op *op, enum ha_op_result result)
{
    int answered = op->kind == HA_OP_READ || op->kind == HA_OP_FETCH;

    switch (result) {
    case HA_RESULT_OK:
        return op->executed && (!answered || op->has_data);
    case HA_RESULT_PROVEN:
        return op->executed && !answered;
    case HA_RESULT_UNKNOWN:
        return op->unknown && !op->has_data && !op->refused;
    case HA_RESULT_REJECTED:
        return op->wrong && !op->executed;
    case HA_RESULT_CANCELED:
        return p->side[x].failed;
    default:
        return 0;
    }
}

void sim_oracle_end(struct sim_pair *p, int x, uint32_t i, enum ha_op_result result)
{
    struct sim_op *op = &p->side[x].op[i];

    if (op->ended) {
        sim_violation(p, "I1 operation %u of side %d ends twice", i, x);
    }
    if (p->side[x].failed && result != HA_RESULT_CANCELED && p->side[x].failed > 1) {
        sim_violation(p, "I7 operation %u of side %d ends after the error end", i, x);
    }
    if (!may_end_so(p, x, op, result)) {
        sim_violation(p,
                      "I2 operation %u (kind %u) of side %d ends with result %d, executed %u, "
                      "data %u",
                      i, op->kind, x, (int)result, op->executed, op->has_data);
    }
    op->ended  = 1;
    op->result = (uint8_t)result;
    p->side[x].ended++;
}

void sim_oracle_deliver(struct sim_pair *p, int x, uint32_t i)
{
    struct sim_side *peer = &p->side[!x];

    while (peer->next_delivered < peer->num_ops && peer->op[peer->next_delivered].kind != HA_OP_SEND) {
        peer->next_delivered++;
    }
    if (peer->op[i].delivered) {
        sim_violation(p, "I5 message %u is delivered twice at side %d", i, x);
    }
    if (i != peer->next_delivered) {
        sim_violation(p, "I5 message %u is delivered at side %d, %u is next", i, x, peer->next_delivered);
    }
    if (!peer->op[i].executed) {
        sim_violation(p, "I2 message %u is delivered at side %d but never came", i, x);
    }
    if (p->side[x].failed) {
        sim_violation(p, "I7 message %u is delivered at side %d after its error end", i, x);
    }
    peer->op[i].delivered = 1;
    peer->next_delivered  = i + 1;
}

/* ---- lanes ---- */

void sim_oracle_create(struct sim_pair *p, int x, int slot, uint32_t gen)
{
    const struct ha_lane *its = &p->side[!x].pair.lane[slot];

    if (its->gen < gen && !(its->gen == gen - 1 && its->st == HA_LANE_CLOSED)) {
        sim_violation(p, "I11 side %d begins lane %d.%u, the peer is at generation %u %s", x, slot, gen, its->gen,
                      ha_lane_status_name(its->st));
    }
    if (p->side[x].qp[slot].state != SIM_QP_NONE) {
        sim_violation(p, "side %d builds a queue pair over a living one", x);
    }
    p->world->cover[SIM_COVER_GENERATION_4] += gen >= 4;
}

/* x learns where the peer wants its marks. */
void sim_oracle_connect(struct sim_pair *p, int x, int slot)
{
    const struct sim_qp *its = &p->side[!x].qp[slot];
    uint64_t             addr;
    uint32_t             key;
    int                  by_ledger = ha_pair_ledger(&p->side[x].pair, slot, &addr, &key);

    if (its->gen != p->side[x].qp[slot].gen) {
        return;
    }
    if (by_ledger != (p->side[!x].proof[slot] == HA_PROOF_LEDGER) ||
        (by_ledger && (addr != its->ledger_addr || key != its->ledger_key))) {
        sim_violation(p, "I10 side %d connects lane %d.%u and would leave its marks elsewhere", x, slot, its->gen);
    }
}

/* Before a queue pair goes, everything it received must have been delivered. */
void sim_oracle_destroy(struct sim_pair *p, int x, int slot)
{
    const struct sim_qp *qp = &p->side[x].qp[slot], *its = &p->side[!x].qp[slot];

    if ((qp->state == SIM_QP_UP || qp->state == SIM_QP_BROKEN || qp->state == SIM_QP_ERRING) && !qp->final) {
        sim_violation(p, "side %d destroys lane %d.%u unfenced", x, slot, qp->gen);
    }
    if (qp->delivered != qp->num_msg) {
        sim_violation(p, "I6 side %d destroys lane %d.%u with %u of %u messages delivered", x, slot, qp->gen,
                      qp->delivered, qp->num_msg);
    }
    if (qp->polled != sim_data_told(qp)) {
        sim_violation(p, "I6 side %d destroys lane %d.%u with successes unpolled", x, slot, qp->gen);
    }
    if (its->gen == qp->gen && its->close_asked && its->close_k > its->num_msg) {
        sim_violation(p, "I6 side %d waits for messages that never came", !x);
    }
}

static void check_lane(struct sim_pair *p, int x, int slot)
{
    struct sim_side      *side = &p->side[x];
    const struct ha_lane *lane = &side->pair.lane[slot];
    uint64_t              rank = (uint64_t)lane->gen << 8 | lane->st;

    if (rank < side->rank[slot]) {
        sim_violation(p, "I11 lane %d of side %d moves back", slot, x);
    }
    side->rank[slot] = rank;
    if (lane->act == 0) {
        return;
    }
    if (lane->act >= SIM_EPOCHS_MAX) {
        sim_violation(p, "epoch %u: an endless failover", lane->act);
        return;
    }
    if (p->lane_of[lane->act].slot < 0) {
        p->lane_of[lane->act].slot = (int8_t)slot;
        p->lane_of[lane->act].gen  = lane->gen;
        for (uint32_t e = 1; e < lane->act; e++) {
            if (p->lane_of[e].slot == slot && p->lane_of[e].gen == lane->gen) {
                sim_violation(p, "I8 lane %d.%u serves epochs %u and %u", slot, lane->gen, e, lane->act);
            }
        }
        sim_trace(p, "epoch %u is lane %d.%u", lane->act, slot, lane->gen);
    } else if (p->lane_of[lane->act].slot != slot || p->lane_of[lane->act].gen != lane->gen) {
        sim_violation(p, "I8 epoch %u is lane %d.%u here, %d.%u at side %d", lane->act, p->lane_of[lane->act].slot,
                      p->lane_of[lane->act].gen, slot, lane->gen, x);
    }
}

static void check_slots(struct sim_pair *p, int x)
{
    struct sim_side *side = &p->side[x];

    if (side->tx_slot != ha_pair_tx_slot(&side->pair) || side->rx_slot != ha_pair_rx_slot(&side->pair)) {
        sim_violation(p, "side %d was not told that its lanes changed", x);
    }
    if (side->pair.epoch < side->epoch) {
        sim_violation(p, "I11 the epoch of side %d moves back", x);
    }
    side->epoch = side->pair.epoch;
}

void sim_oracle_step(struct sim_pair *p)
{
    for (int x = 0; x < 2; x++) {
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            check_lane(p, x, slot);
        }
        if (!p->side[x].gone) {
            check_slots(p, x);
        }
    }
}

/* ---- the end ---- */

/* Operations may be ended only when no queue pair can touch their buffers, or
 * when that was waited for long enough. */
void sim_oracle_fail(struct sim_pair *p, int x)
{
    if (p->side[x].failed) {
        sim_violation(p, "I7 side %d is failed twice", x);
    }
    if (p->world->now >= p->side[x].pair.drain_at) {
        return;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (!is_stopped(p, x, slot, p->side[x].qp[slot].gen)) {
            sim_violation(p, "I7 side %d ends its operations while lane %d.%u lives", x, slot, p->side[x].qp[slot].gen);
        }
    }
}

/* Nothing that its sender saw succeed may still be undelivered at x. */
void sim_oracle_gone(struct sim_pair *p, int x)
{
    const struct sim_side *peer = &p->side[!x];

    if (p->side[x].failed || ha_pair_failed(&peer->pair) || peer->dead) {
        return;
    }
    if (p->doomed && p->world->plot == SIM_PLOT_CUT_OFF &&
        p->world->now - p->world->doom_at >= p->side[x].pair.cfg.deadline) {
        return; /* both have let go and nobody can tell: docs/failover.md, "What is not proven" */
    }
    for (uint32_t i = 0; i < peer->num_ops; i++) {
        if (peer->op[i].kind == HA_OP_SEND && peer->op[i].ended && !peer->op[i].delivered) {
            sim_violation(p, "I5 side %d goes without message %u", x, i);
        }
    }
}

int sim_oracle_idle(const struct sim_pair *p)
{
    for (int x = 0; x < 2; x++) {
        if (!p->side[x].dead && !p->side[x].gone) {
            return 0;
        }
    }
    return 1;
}

/* Half of the pairs have a deadline that faults may outlast. They may end, but not before
 * all the time is over that a peer that answers is given. */
static int ran_out(const struct sim_pair *p)
{
    for (int x = 0; x < 2; x++) {
        const struct ha_pair *pair = &p->side[x].pair;

        if (pair->cfg.deadline < pair->cfg.linger && pair->fail == HA_FAIL_DEADLINE && pair->lost_at != 0 &&
            pair->drain_at - pair->cfg.drain_timeout >= pair->lost_at + HA_PATIENCE * pair->cfg.deadline) {
            return 1;
        }
    }
    return 0;
}

void sim_oracle_finish(struct sim_pair *p)
{
    for (int x = 0; x < 2; x++) {
        const struct sim_side *side = &p->side[x];

        if (side->dead) {
            continue;
        }
        if (!side->gone) {
            sim_violation(p, "L1 side %d has not finished: %u of %u operations, epoch %u", x, side->ended,
                          side->num_ops, side->pair.epoch);
        }
        if (side->failed && !p->doomed && !ran_out(p)) {
            sim_violation(p, "L1 side %d failed (%s) although a rail stayed usable", x, ha_fail_name(side->pair.fail));
        }
        if (side->ended != side->num_ops && !side->failed) {
            sim_violation(p, "I1 side %d: %u of %u operations ended", x, side->ended, side->num_ops);
        }
    }
}
