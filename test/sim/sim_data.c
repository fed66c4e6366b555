/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The data plane: reliable connections as verbs show them. Packets execute in
 * order at the responder; what is lost is repeated by the device, so here it
 * is only late. An acknowledgement may be lost for good, a success may wait to
 * be polled, a received message may become visible late, and a packet may
 * execute until a queue pair has truly stopped.
 */

#include "sim.h"

#define GIVE_UP_TIME (20 * SIM_MS) /* retries of the device */

uint32_t sim_data_packets(uint64_t length, unsigned kind, uint32_t mtu)
{
    uint32_t n = (uint32_t)((length + mtu - 1) / mtu);

    return kind == HA_OP_ATOMIC || kind == HA_OP_FETCH || n == 0 ? 1 : n;
}

uint32_t sim_data_word(const struct sim_pair *p, int x, int slot)
{
    const struct sim_side *side      = &p->side[x];
    const struct sim_qp   *qp        = &side->qp[slot];
    int                    by_ledger = side->proof[slot] == HA_PROOF_LEDGER;

    return ha_psn_add(side->pair.view[slot].psn, by_ledger ? qp->marks : qp->rx);
}

static struct sim_qp *qp_of(struct sim_pair *p, int x, int slot)
{
    return &p->side[x].qp[slot];
}

/* The other end of x's queue pair, or NULL when it is not there (any more). */
static struct sim_qp *responder_of(struct sim_pair *p, int x, int slot)
{
    struct sim_qp *mine = qp_of(p, x, slot), *its = qp_of(p, !x, slot);

    if (p->side[!x].dead || mine->gen != its->gen || its->state < SIM_QP_UP) {
        return NULL;
    }
    return its;
}

/* The wire request that holds packet `pos`. */
static struct sim_wqe *wqe_at(struct sim_qp *qp, uint32_t pos)
{
    for (uint32_t i = 0; i < qp->num_wqe; i++) {
        if (pos < qp->wqe[i].pos + qp->wqe[i].npsn) {
            return &qp->wqe[i];
        }
    }
    return NULL;
}

/* Side x puts its next packet on the wire. */
int sim_data_wire(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp = qp_of(p, x, slot);
    struct sim_wqe *wqe;

    if (p->side[x].dead || qp->wired == qp->posted || (qp->state != SIM_QP_UP && qp->state != SIM_QP_ERRING)) {
        return 0;
    }
    wqe = wqe_at(qp, qp->wired);
    qp->wired += wqe->kind == HA_OP_READ ? wqe->npsn : 1;
    return 1;
}

static void receive_message(struct sim_qp *responder, const struct sim_wqe *wqe)
{
    if (wqe->receives && !responder->final) {
        responder->msg[responder->num_msg++] = wqe->op;
    }
}

/* The responder refuses the request at `wqe`: x's queue pair is in error, and
 * nothing behind it runs. */
static int refuse(struct sim_pair *p, int x, int slot, const struct sim_wqe *wqe)
{
    struct sim_qp *qp = qp_of(p, x, slot);

    if (qp->state != SIM_QP_UP || !sim_path_works(p, !x, slot) || qp->acked != (uint32_t)(wqe - qp->wqe)) {
        return 0;
    }
    sim_trace(p, "side %d: operation %u is refused on lane %d.%u", x, wqe->op, slot, qp->gen);
    qp->state     = SIM_QP_BROKEN;
    qp->error_cqe = 1;
    qp->refused   = 1;
    return 1;
}

/* The next packet of x executes at the other side. A packet that left before
 * a cut may still arrive, rarely. */
int sim_data_execute(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp = qp_of(p, x, slot), *responder = responder_of(p, x, slot);
    struct sim_wqe *wqe;

    if (responder == NULL || responder->state == SIM_QP_ERR || qp->state < SIM_QP_UP || responder->rx >= qp->wired) {
        return 0;
    }
    if (!sim_path_works(p, x, slot) && !sim_chance(p->world, 2)) {
        return 0;
    }
    if (sim_is_slow(p, slot)) {
        return 0;
    }
    wqe = wqe_at(qp, responder->rx);
    if (wqe->op != SIM_TAIL && p->side[x].op[wqe->op].wrong) {
        return refuse(p, x, slot, wqe);
    }
    sim_oracle_packet(p, x, slot);
    p->world->cover[SIM_COVER_EXEC_ERRING] += responder->state == SIM_QP_ERRING;
    p->world->cover[SIM_COVER_EXEC_SENDER_FENCED] += qp->state == SIM_QP_ERR;
    responder->rx += wqe->kind == HA_OP_READ ? wqe->npsn : 1;
    if (responder->rx == wqe->pos + wqe->npsn) {
        responder->rx_wqe++;
        responder->marks += wqe->mark;
    }
    if (responder->rx != wqe->pos + wqe->npsn - wqe->mark) {
        return 1;
    }
    if (wqe->op == SIM_TAIL) {
        return 1;
    }
    receive_message(responder, wqe);
    sim_trace(p, "side %d: operation %u of the peer executes on lane %d.%u", !x, wqe->op, slot, qp->gen);
    if (responder->final) {
        sim_oracle_undead(p, x, wqe->op, slot);
    } else {
        sim_oracle_execute(p, x, wqe->op, slot);
    }
    return 1;
}

/* The acknowledgement (or the answer) of x's oldest executed request arrives. */
int sim_data_ack(struct sim_pair *p, int x, int slot)
{
    struct sim_qp *qp = qp_of(p, x, slot), *responder = responder_of(p, x, slot);

    if (p->side[x].dead || responder == NULL || qp->acked >= responder->rx_wqe || qp->drained_told ||
        (responder->final && qp->gone) || /* two cards that are gone: see docs/failover.md, what remains */
        (qp->state != SIM_QP_UP && qp->state != SIM_QP_ERRING)) {
        return 0;
    }
    if (!sim_path_works(p, !x, slot) || sim_is_slow(p, slot)) {
        return 0;
    }
    if (sim_port_of(p, x, slot)->acks_lost) {
        p->world->cover[SIM_COVER_ACKS_LOST]++;
        return 0;
    }
    if (qp->wqe[qp->acked].kind == HA_OP_READ || qp->wqe[qp->acked].kind == HA_OP_FETCH) {
        p->side[x].op[qp->wqe[qp->acked].op].has_data = 1;
    }
    p->world->cover[SIM_COVER_SILENT] += qp->wqe[qp->acked].silent;
    qp->acked++;
    qp->progress_at = p->world->now;
    return 1;
}

/* A received message becomes visible in x's completion queue. */
int sim_data_complete_receive(struct sim_pair *p, int x, int slot)
{
    struct sim_qp *qp = qp_of(p, x, slot);

    if (p->side[x].dead || qp->visible == qp->num_msg || (qp->gone && !sim_chance(p->world, 40))) {
        return 0;
    }
    qp->visible++;
    return 1;
}

int sim_data_stalled(const struct sim_pair *p, int x, int slot, uint64_t time)
{
    const struct sim_qp *qp = &p->side[x].qp[slot];

    return qp->state == SIM_QP_UP && qp->acked < qp->num_wqe && p->world->now - qp->progress_at > time;
}

/* The device of x has retried often enough. */
int sim_data_give_up(struct sim_pair *p, int x, int slot)
{
    struct sim_qp *qp = qp_of(p, x, slot);

    if (p->side[x].dead || !sim_data_stalled(p, x, slot, GIVE_UP_TIME)) {
        return 0;
    }
    /* An idle simulated device is not a dead one. */
    if (sim_path_works(p, x, slot) && sim_path_works(p, !x, slot) && !sim_port_of(p, x, slot)->acks_lost &&
        responder_of(p, x, slot) != NULL && responder_of(p, x, slot)->state == SIM_QP_UP) {
        return 0;
    }
    p->world->cover[SIM_COVER_RETRY_EXHAUSTED]++;
    sim_trace(p, "side %d: retries exhausted on lane %d.%u", x, slot, qp->gen);
    qp->state     = SIM_QP_BROKEN;
    qp->error_cqe = 1;
    return 1;
}

/* modify(ERR) takes effect at last. */
int sim_data_settle(struct sim_pair *p, int x, int slot)
{
    struct sim_qp *qp = qp_of(p, x, slot);

    if (qp->state != SIM_QP_ERRING || qp->job || qp->gone) {
        return 0;
    }
    qp->state = SIM_QP_ERR;
    return 1;
}

uint32_t sim_data_told(const struct sim_qp *qp)
{
    uint32_t told = qp->acked;

    while (told > qp->polled && qp->wqe[told - 1].silent) {
        told--;
    }
    return told;
}

/* Can nothing happen at x's end of the lane? Most lanes rest most of the time;
 * this spares trying everything that might. */
int sim_data_rests(const struct sim_pair *p, int x, int slot)
{
    const struct sim_side *side = &p->side[x];
    const struct sim_qp   *qp = &side->qp[slot], *its = &p->side[!x].qp[slot];
    int told = !qp->job && !qp->created_untold && !qp->resolve_untold && !qp->close_asked && !qp->error_cqe &&
               side->hold[slot] == 0 && (slot >= p->slots || sim_is_told_down(p, x, slot) == side->port_told[slot]);
    int sent   = qp->wired == qp->posted && qp->acked == qp->num_wqe && qp->polled == sim_data_told(qp);
    int taken  = qp->visible == qp->num_msg && qp->delivered == qp->visible;
    int fenced = qp->drained_told && qp->settled_told;
    int works  = qp->state == SIM_QP_UP && p->alarms_left == 0 && sim_path_works(p, !x, slot) &&
                sim_port_of(p, 0, slot)->slow + sim_port_of(p, 1, slot)->slow == 0;

    if (qp->state == SIM_QP_NONE || qp->state == SIM_QP_INIT) {
        return told && !qp->fence_asked;
    }
    return told && taken && !qp->gone && !its->gone &&
           (works ? sent
                  : qp->state == SIM_QP_ERR && fenced && qp->polled == sim_data_told(qp) &&
                        (its->gen != qp->gen || its->rx >= qp->wired));
}
