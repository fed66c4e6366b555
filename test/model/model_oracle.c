/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The oracle knows what really happened to every operation and holds it
 * against the invariants of docs/failover.md. It uses none of the guards of
 * the core. The first violation stays.
 */

#include "model.h"

/* Is it a violation that this run lets pass, to see what damage follows? */
static int is_ignored(const char *text)
{
    unsigned n = 0;

    if (text[0] != 'I' && text[0] != 'L') {
        return 0; /* of the model itself */
    }
    for (const char *p = text + 1; text[0] == 'I' && *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (unsigned)(*p - '0');
    }
    return model_options.ignored >> n & 1;
}

void model_violation(struct model_world *w, const char *text)
{
    if (w->violation == 0 && !is_ignored(text)) {
        w->violation = text;
    }
}

static uint8_t bit(unsigned op)
{
    return (uint8_t)(1u << op);
}

/* Is x's queue pair of that generation stopped for good? */
static int is_stopped(const struct model_world *w, int x, int slot, unsigned gen)
{
    const struct model_qp *qp = &w->side[x].qp[slot];

    return qp->gen != gen || qp->state == MODEL_QP_ERR || qp->state <= MODEL_QP_INIT || qp->final;
}

/* ---- posting and executing ---- */

void model_oracle_post(struct model_world *w, int x, unsigned op, int slot)
{
    const struct model_side *side = &w->side[x];
    const struct model_qp   *qp = &side->qp[slot], *its = &w->side[!x].qp[slot];

    if (side->ended & bit(op)) {
        model_violation(w, "I1 an operation is posted after its end");
    }
    for (int i = 0; i < HA_SLOTS; i++) {
        for (unsigned n = 0; n < side->qp[i].num_ops; n++) {
            if (side->qp[i].op[n] == op &&
                (!is_stopped(w, 0, i, side->qp[i].gen) || !is_stopped(w, 1, i, side->qp[i].gen))) {
                model_violation(w, "I3 an operation is posted again while an earlier lane of it lives");
            }
        }
    }
    if (qp->state < MODEL_QP_UP || its->gen != qp->gen || its->state < MODEL_QP_UP) {
        model_violation(w, "I3 an operation is posted before both ends of the lane are connected");
    }
    if (side->pair.lane[slot].act == 0) {
        model_violation(w, "I8 an operation is posted on a lane without epoch");
    }
}

void model_oracle_packet(struct model_world *w, int x, int slot)
{
    const struct model_side *peer = &w->side[!x];

    if (peer->qp[slot].final) {
        return; /* nobody has said that it has stopped */
    }
    if (peer->qp[slot].settled_told ||
        (peer->pair.lane[slot].gen == peer->qp[slot].gen && peer->pair.lane[slot].st >= HA_LANE_FENCED)) {
        model_violation(w, "I10 a packet executes after the proof was given");
    }
    if (peer->failed) {
        model_violation(w, "I7 a packet executes after the error end");
    }
}

void model_oracle_execute(struct model_world *w, int x, unsigned op)
{
    struct model_side *side   = &w->side[x];
    uint8_t            before = (uint8_t)(bit(op) - 1);
    uint8_t            reads  = (uint8_t)(model_ops_of_kind(x, 'R') | model_ops_of_kind(x, 'T'));
    uint8_t            behind = (uint8_t) ~(before | bit(op));

    if (model_kind(x, op) == 'R') {
        if (side->executed & behind & model_ops_of_kind(x, 'F')) {
            model_violation(w, "I9 a READ executes after an operation fenced behind it");
        }
    } else {
        if (side->executed & bit(op)) {
            model_violation(w, "I4 an operation executes twice");
        }
        if (before & ~reads & ~side->executed & ~side->doubt) {
            model_violation(w, "I5 an operation executes before an earlier one");
        }
        if (behind & ~reads & side->executed & ~side->doubt) {
            model_violation(w, "I5 an operation executes after a later one");
        }
    }
    side->executed |= bit(op);
}

/* By a card that nobody could stop. A message goes nowhere, a READ is not answered. */
void model_oracle_execute_undead(struct model_world *w, int x, unsigned op)
{
    struct model_side *side = &w->side[x];

    if (model_kind(x, op) == 'S' || model_kind(x, op) == 'R' || model_kind(x, op) == 'T') {
        return;
    }
    model_cover[MODEL_COVER_UNDEAD]++;
    if (side->executed & bit(op)) {
        model_violation(w, "I4 an operation executes twice");
    }
    side->executed |= bit(op);
}

/* ---- resolving and ending ---- */

/* The proof that x is about to adopt must be the truth, and final. */
void model_oracle_resolve(struct model_world *w, int x, int slot)
{
    const struct model_qp *mine = &w->side[x].qp[slot];
    const char            *lie  = model_proof_lie(w, x, slot);

    if ((mine->state != MODEL_QP_ERR && !(mine->gone && mine->drained_told)) || mine->polled != model_data_told(mine)) {
        model_violation(w, "I3 a lane is resolved before it is stopped and drained here");
    }
    if (!is_stopped(w, !x, slot, mine->gen)) {
        model_violation(w, "I3 a lane is resolved before the peer has stopped it");
    }
    if (lie != 0) {
        model_violation(w, lie);
    }
}

/* What x has given up on this lane, of which the peer could prove nothing; by ledger that is one at most. */
void model_oracle_doubt(struct model_world *w, int x, int slot)
{
    struct model_side *side  = &w->side[x];
    unsigned           proof = side->pair.view[slot].proof, writes = 0;

    for (unsigned i = 0; i < model_num_ops(x) && (proof == HA_PROOF_NONE || proof == HA_PROOF_LEDGER); i++) {
        if (side->log_ops[i].state != HA_OP_DONE || side->log_ops[i].result != HA_RESULT_UNKNOWN ||
            side->log_ops[i].slot != slot || side->log_ops[i].gen != side->qp[slot].gen) {
            continue;
        }
        if (model_kind(x, i) == 'S' || model_kind(x, i) == 'R' || model_kind(x, i) == 'T') {
            model_violation(w, "I2 an operation that may be repeated ends in doubt");
        }
        writes += model_kind(x, i) != 'A'; /* an atomic may have its mark, and have lost its answer */
        if (proof == HA_PROOF_LEDGER && writes > 1) {
            model_violation(w, "I2 more than one operation is in doubt by ledger");
        }
        side->doubt |= bit(i);
        model_cover[MODEL_COVER_DOUBT]++;
    }
}

static int may_end_so(const struct model_world *w, int x, unsigned op, enum ha_op_result result)
{
    const struct model_side *side     = &w->side[x];
    char                     kind     = model_kind(x, op);
    int                      answered = kind == 'R' || kind == 'A';

    switch (result) {
    case HA_RESULT_OK:
        return (side->executed & bit(op)) && (side->has_data & bit(op));
    case HA_RESULT_PROVEN:
        return kind == 'T' || ((side->executed & bit(op)) && !answered);
    case HA_RESULT_UNKNOWN:
        return (side->doubt & bit(op)) || (kind == 'A' && (side->executed & bit(op)) && !(side->has_data & bit(op)));
    case HA_RESULT_CANCELED:
        return side->failed == 1;
    default:
        return 0;
    }
}

void model_oracle_end(struct model_world *w, int x, unsigned op, enum ha_op_result result)
{
    struct model_side *side = &w->side[x];

    model_tell("%c%u ends (%s)", model_kind(x, op), op,
               result == HA_RESULT_OK        ? "success"
               : result == HA_RESULT_PROVEN  ? "success by proof"
               : result == HA_RESULT_UNKNOWN ? "result unknown"
                                             : "canceled");
    if (side->ended & bit(op)) {
        model_violation(w, "I1 an operation ends twice");
    }
    if (side->failed > 1) {
        model_violation(w, "I7 an operation ends after the error end");
    }
    if (!may_end_so(w, x, op, result)) {
        model_violation(w, "I2 an operation ends with a result that is not the truth");
    }
    side->ended |= bit(op);
}

/* Message `op` of the peer is delivered at x. */
void model_oracle_deliver(struct model_world *w, int x, unsigned op)
{
    struct model_side *peer   = &w->side[!x];
    uint8_t            sends  = model_receivers(!x);
    uint8_t            before = (uint8_t)(bit(op) - 1);

    if (peer->delivered & bit(op)) {
        model_violation(w, "I5 a message is delivered twice");
    }
    if (sends & before & ~peer->delivered & ~peer->doubt) {
        model_violation(w, "I5 a message is delivered before an earlier one");
    }
    if (peer->delivered & ~before & ~bit(op)) {
        model_violation(w, "I5 a message is delivered after a later one");
    }
    if (!(peer->executed & bit(op))) {
        model_violation(w, "I2 a message is delivered that never came");
    }
    if (w->side[x].failed) {
        model_violation(w, "I7 a message is delivered after the error end");
    }
    peer->delivered |= bit(op);
}

/* ---- lanes ---- */

void model_oracle_create(struct model_world *w, int x, int slot, unsigned gen)
{
    const struct ha_lane *its = &w->side[!x].pair.lane[slot];

    if (slot >= model_slots()) {
        model_violation(w, "I11 a lane is built on a rail that the endpoint does not have");
    }
    model_cover[MODEL_COVER_SINGLE] += model_options.single && gen > 1;
    if (its->gen < gen && !(its->gen == gen - 1 && its->st == HA_LANE_CLOSED)) {
        model_violation(w, "I11 a generation begins before the peer has closed the one before");
    }
    if (w->side[x].qp[slot].state != MODEL_QP_NONE) {
        model_violation(w, "I11 a queue pair is built over a living one");
    }
}

void model_oracle_destroy(struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot];

    if ((qp->state == MODEL_QP_UP || qp->state == MODEL_QP_ERRING) && !qp->final) {
        model_violation(w, "I3 a queue pair is destroyed unfenced");
    }
    if (qp->delivered != qp->num_msg) {
        model_violation(w, "I6 a lane is closed before all of its messages were delivered");
    }
    if (qp->polled != model_data_told(qp)) {
        model_violation(w, "I6 a lane is closed with successes unpolled");
    }
}

void model_oracle_fail(struct model_world *w, int x)
{
    if (w->side[x].failed) {
        model_violation(w, "I7 the error end is reported twice");
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (!is_stopped(w, x, slot, w->side[x].qp[slot].gen)) {
            model_violation(w, "I7 operations are ended while a queue pair lives");
        }
    }
}

void model_oracle_gone(struct model_world *w, int x)
{
    const struct model_side *peer = &w->side[!x];

    if (w->side[x].failed || ha_pair_failed(&peer->pair)) {
        return;
    }
    if (model_receivers(!x) & peer->ended & ~peer->delivered & ~peer->doubt) {
        model_violation(w, "I5 a side goes without a message that its peer saw succeed");
    }
}

/* ---- after every step ---- */

static void check_lane(const struct model_world *before, struct model_world *w, int x, int slot)
{
    const struct ha_lane *was = &before->side[x].pair.lane[slot];
    const struct ha_lane *is  = &w->side[x].pair.lane[slot];
    const struct ha_view *had = &before->side[x].pair.view[slot];
    const struct ha_view *saw = &w->side[x].pair.view[slot];

    if (is->gen < was->gen || (is->gen == was->gen && is->st < was->st)) {
        model_violation(w, "I11 a lane moves back");
    }
    if (saw->gen < had->gen || (saw->gen == had->gen && saw->st < had->st)) {
        model_violation(w, "I11 what is known of the peer's lane moves back");
    }
    if (is->gen == was->gen && was->act != 0 && is->act != was->act) {
        model_violation(w, "I8 a lane serves two epochs");
    }
    if (is->act > w->side[x].pair.epoch) {
        model_violation(w, "I8 a lane serves an epoch that has not begun");
    }
    for (int y = 0; y < 2 && is->act != 0; y++) {
        for (int t = 0; t < HA_SLOTS; t++) {
            const struct ha_lane *other = &w->side[y].pair.lane[t];
            int                   same  = t == slot && other->gen == is->gen;

            if (other->act == is->act && !same) {
                model_violation(w, "I8 two lanes serve one epoch");
            }
            if (same && other->act != 0 && other->act != is->act) {
                model_violation(w, "I8 the two sides give one lane different epochs");
            }
        }
    }
}

void model_oracle_step(const struct model_world *before, struct model_world *w)
{
    for (int x = 0; x < 2; x++) {
        const struct model_side *side = &w->side[x];

        for (int slot = 0; slot < HA_SLOTS; slot++) {
            check_lane(before, w, x, slot);
        }
        if (side->pair.epoch < before->side[x].pair.epoch) {
            model_violation(w, "I11 the epoch moves back");
        }
        if (!side->gone &&
            (side->tx_slot != ha_pair_tx_slot(&side->pair) || side->rx_slot != ha_pair_rx_slot(&side->pair))) {
            model_violation(w, "L1 the glue was not told that its lanes changed");
        }
    }
}
