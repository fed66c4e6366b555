/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The glue of one side as its control context sees it: it feeds the core with
 * facts and performs what the core asks for. It stands for the product's
 * asynchronous handler and job thread.
 */

#include "sim.h"

#define SUSPECT_TIME (3 * SIM_MS)
#define LOST_TIME    (400 * SIM_MS)

static void refresh_lanes(struct sim_pair *p, int x)
{
    struct sim_side *side = &p->side[x];

    side->tx_slot = ha_pair_tx_slot(&side->pair);
    side->rx_slot = ha_pair_rx_slot(&side->pair);
    sim_trace(p, "side %d: posts on %d, delivers from %d", x, side->tx_slot, side->rx_slot);
}

/* Of a cold connection no standby is built before it is needed; work that shall go back needs one. */
uint64_t sim_side_hold_of(const struct sim_pair *p, int x, int slot)
{
    const struct sim_side *side = &p->side[x];

    if (side->cold && (slot != HA_PREFERRED_SLOT || side->pair.cfg.failback == 0)) {
        return 100000 * SIM_S;
    }
    return ha_damp_hold(&side->damp[slot]);
}

static int is_to_blame(unsigned cause)
{
    return cause != HA_CAUSE_PROGRAM && cause != HA_CAUSE_FAILBACK && cause != HA_CAUSE_CLOSE;
}

/* modify(ERR). A connect job under way must end first. */
static void fence(struct sim_pair *p, int x, int slot, uint32_t cause)
{
    struct sim_qp *qp = &p->side[x].qp[slot];

    sim_trace(p, "side %d: fences lane %d.%u (%s)", x, slot, qp->gen, ha_cause_name(cause));
    qp->fence_asked = 1;
    if (cause == HA_CAUSE_PEER) {
        cause = p->side[x].pair.view[slot].cause;
    }
    if (is_to_blame(cause) && ha_damp_flap(&p->side[x].damp[slot], p->side[x].born[slot], p->world->now)) {
        p->side[x].hold[slot] = sim_side_hold_of(p, x, slot);
    }
    if (qp->job) {
        p->world->cover[SIM_COVER_FENCED_CONNECTING]++;
    } else if (qp->state == SIM_QP_INIT) {
        qp->state = SIM_QP_ERR; /* it never heard a packet */
    } else {
        qp->state = SIM_QP_ERRING;
    }
}

static void perform(struct sim_pair *p, int x, const struct ha_action *action)
{
    struct sim_side *side = &p->side[x];
    int              slot = action->slot;

    switch (action->kind) {
    case HA_ACT_CREATE_QP:
        sim_work_create(p, x, slot, action->gen);
        break;
    case HA_ACT_CONNECT_QP:
        side->qp[slot].job = 1;
        sim_oracle_connect(p, x, slot);
        break;
    case HA_ACT_FENCE:
        fence(p, x, slot, action->value);
        break;
    case HA_ACT_RESOLVE:
        sim_work_resolve(p, x, slot);
        break;
    case HA_ACT_CHECK_CLOSE:
        side->qp[slot].close_asked = 1;
        side->qp[slot].close_k     = action->value;
        break;
    case HA_ACT_DESTROY_QP:
        sim_trace(p, "side %d: destroys lane %d.%u", x, slot, action->gen);
        sim_oracle_destroy(p, x, slot);
        side->qp[slot].state = SIM_QP_NONE;
        break;
    case HA_ACT_SEND:
        side->send_wanted = 1;
        side->send_slot   = slot;
        side->send_asks |= action->value != 0;
        break;
    case HA_ACT_LANES:
        refresh_lanes(p, x);
        break;
    case HA_ACT_FAIL:
        sim_work_fail(p, x, action->value);
        break;
    case HA_ACT_GONE:
        sim_work_gone(p, x);
        break;
    }
}

static void perform_all(struct sim_pair *p, int x, const struct ha_action *actions, int n)
{
    if (n == HA_ACTIONS_MAX) {
        sim_violation(p, "L1 side %d: an action may be lost, there are too many", x);
    }
    for (int i = 0; i < n; i++) {
        perform(p, x, &actions[i]);
    }
}

/* Both lanes fenced here by own decision while the peer has done the same and
 * neither has heard of it. */
static void cover_lanes(struct sim_pair *p)
{
    const struct ha_pair *a = &p->side[0].pair, *b = &p->side[1].pair;
    int                   fenced = 0;

    for (int slot = 0; slot < HA_SLOTS; slot++) {
        int here  = a->lane[slot].st == HA_LANE_FENCED || a->lane[slot].q == HA_QP_ERRING;
        int there = b->lane[slot].st == HA_LANE_FENCED || b->lane[slot].q == HA_QP_ERRING;

        fenced += here || there;
        if (here && there && a->lane[slot].gen == b->lane[slot].gen && a->view[slot].st < HA_LANE_FENCED &&
            b->view[slot].st < HA_LANE_FENCED) {
            p->world->cover[SIM_COVER_DOUBLE_START]++;
        }
    }
    p->world->cover[SIM_COVER_BOTH_LANES] += fenced == HA_SLOTS;
}

void sim_side_give(struct sim_pair *p, int x, const struct ha_event *event)
{
    struct ha_action actions[HA_ACTIONS_MAX];

    p->side[x].rests_until[HA_CTX_ASYNC] = p->side[x].rests_until[HA_CTX_PROGRESS] = 0;
    perform_all(p, x, actions, ha_pair_step(&p->side[x].pair, event, p->world->now, actions));
    cover_lanes(p);
}

/* What the latest transition of the core was, for the coverage. */
static void cover_transition(struct sim_pair *p, int x, const struct ha_pair *before)
{
    struct sim_side      *side = &p->side[x];
    const struct ha_pair *now  = &side->pair;

    if (now->epoch > before->epoch) {
        p->world->cover[SIM_COVER_FAILOVER] += now->epoch > 1;
        p->world->cover[SIM_COVER_ONE_RAIL] += now->epoch > 1 && p->slots == 1;
        p->world->cover[SIM_COVER_SLOT_1_FIRST] += now->epoch == 1 && now->lane[1].act == 1;
        p->world->cover[SIM_COVER_PASSIVE] += now->epoch > 1 && p->world->now < p->side[!x].busy_until;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_lane *was = &before->lane[slot], *is = &now->lane[slot];

        p->world->cover[SIM_COVER_SKIPPED] += is->gen > was->gen && is->st == HA_LANE_FENCED;
        p->world->cover[SIM_COVER_FAILBACK] += was->q == HA_QP_UP && is->q == HA_QP_ERRING &&
                                               is->cause == HA_CAUSE_FAILBACK;
        p->world->cover[SIM_COVER_ABANDONED] += was->q == HA_QP_INIT && is->q == HA_QP_ERR;
        p->world->cover[SIM_COVER_STANDBY_DIED] += was->st < HA_LANE_FENCED && was->gen == is->gen &&
                                                   is->q == HA_QP_ERRING && was->q == HA_QP_UP && is->act == 0 &&
                                                   now->epoch > 0;
    }
}

/* As in the product, the core is asked after an event and when its timer says so. */
int sim_side_pair_run(struct sim_pair *p, int x, enum ha_context ctx)
{
    struct sim_side *side = &p->side[x];
    struct ha_action actions[HA_ACTIONS_MAX];
    struct ha_pair   before;
    int              n;

    if (p->world->now < side->rests_until[ctx]) {
        return 0;
    }
    before = side->pair;
    n      = ha_pair_run(&side->pair, ctx, p->world->now, actions);
    if (n < 0) {
        side->rests_until[ctx] = ha_pair_next_timer(&side->pair);
        return 0;
    }
    side->rests_until[HA_CTX_ASYNC] = side->rests_until[HA_CTX_PROGRESS] = 0;
    perform_all(p, x, actions, n);
    cover_transition(p, x, &before);
    cover_lanes(p);
    return 1;
}

/* ---- facts ---- */

/* Only progress can count, and it must have polled every receive. */
static int all_polled(const struct sim_pair *p, int x, const struct sim_qp *qp)
{
    return qp->taken == qp->num_msg && p->world->now >= p->side[x].busy_until;
}

/* What was acknowledged to the peer was seen. Of the rest, what is not seen yet may be lost; but a card that
 * has only stopped has shown everything soon after. */
static int acked_is_taken(const struct sim_pair *p, int x, int slot)
{
    const struct sim_qp *qp = &p->side[x].qp[slot], *its = &p->side[!x].qp[slot];
    uint32_t             acked = 0;

    for (uint32_t i = 0; i < its->acked && its->gen == qp->gen; i++) {
        acked += its->wqe[i].receives;
    }
    return qp->taken == (qp->mute ? qp->num_msg : qp->visible) && qp->taken >= acked &&
           p->world->now >= p->side[x].busy_until;
}

/* There is no proof: how much was taken is declared when one of the ends is stopped. Of two cards that
 * are gone none waits for the other. */
static int may_declare(const struct sim_pair *p, int x, int slot)
{
    const struct sim_qp *qp = &p->side[x].qp[slot], *its = &p->side[!x].qp[slot];

    if (!qp->fence_asked || qp->settled_told || qp->job || (!qp->gone && !(qp->mute && qp->state == SIM_QP_ERR))) {
        return 0;
    }
    return (!qp->gone || its->gone || p->side[!x].dead || ha_pair_peer_stopped(&p->side[x].pair, slot)) &&
           acked_is_taken(p, x, slot);
}

static int declare(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side  = &p->side[x];
    struct sim_qp   *qp    = &side->qp[slot];
    struct ha_event  event = {
         .kind = HA_EV_SETTLED, .slot = slot, .gen = qp->gen, .proof = HA_PROOF_NONE, .received = qp->taken};

    if (!may_declare(p, x, slot)) {
        return 0;
    }
    p->world->cover[SIM_COVER_UNSEEN] += qp->num_msg - qp->taken;
    for (uint32_t i = qp->taken; i < qp->num_msg; i++) {
        sim_oracle_never_taken(p, !x, qp->msg[i]);
    }
    qp->num_msg      = qp->taken;
    qp->settled_told = qp->final = 1;
    p->world->cover[SIM_COVER_DECLARED]++;
    p->world->cover[SIM_COVER_DECLARED_SOME] += qp->taken > 0;
    p->world->cover[SIM_COVER_BOTH_CARDS] += qp->gone && p->side[!x].qp[slot].gone;
    sim_trace(p, "side %d: no proof of lane %d.%u, %u receives were taken", x, slot, qp->gen, qp->taken);
    sim_side_give(p, x, &event);
    p->world->cover[SIM_COVER_DECLARED_STANDBY] += side->pair.lane[slot].act == 0 && p->side[!x].qp[slot].posted > 0;
    return 1;
}

/* The barrier has passed: the proof is final. */
int sim_side_settled(struct sim_pair *p, int x, int slot)
{
    struct sim_qp  *qp    = &p->side[x].qp[slot];
    struct ha_event event = {.kind = HA_EV_SETTLED, .slot = slot, .gen = qp->gen};

    if (qp->gone || qp->mute) {
        return declare(p, x, slot);
    }
    if (!qp->fence_asked || qp->settled_told || qp->state != SIM_QP_ERR) {
        return 0;
    }
    event.proof = p->side[x].proof[slot];
    if (ha_proof_has_count(event.proof) && !all_polled(p, x, qp)) {
        return 0;
    }
    qp->settled_told = 1;
    event.psn        = sim_data_word(p, x, slot);
    event.received   = qp->taken;
    p->world->cover[SIM_COVER_PROOF_COUNT] += event.proof == HA_PROOF_COUNT;
    p->world->cover[SIM_COVER_PROOF_LEDGER] += event.proof == HA_PROOF_LEDGER;
    if (p->side[x].pair.lane[slot].proof == HA_PROOF_EMPTY) {
        p->world->cover[SIM_COVER_EMPTY_PROOF]++;
    }
    sim_side_give(p, x, &event);
    return 1;
}

/* The connect job ends. */
int sim_side_connected(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side  = &p->side[x];
    struct sim_qp   *qp    = &side->qp[slot];
    struct ha_event  event = {.kind = HA_EV_QP_CONNECTED, .slot = slot, .gen = qp->gen};

    if (!qp->job) {
        return 0;
    }
    qp->job = 0;
    if (sim_is_told_down(p, x, slot) || sim_chance(p->world, sim_path_works(p, x, slot) ? 1 : 40)) {
        event.kind = HA_EV_QP_FAILED;
        p->world->cover[SIM_COVER_CONNECT_FAILED]++;
    } else {
        qp->state = SIM_QP_UP;
    }
    if (qp->fence_asked) {
        qp->state = SIM_QP_ERRING;
    }
    qp->progress_at = p->world->now;
    sim_side_give(p, x, &event);
    return 1;
}

int sim_side_timer(struct sim_pair *p, int x, int slot)
{
    struct ha_event  event = {.kind = HA_EV_TIMER, .value = !p->doomed};
    struct sim_side *side  = &p->side[x];

    (void)slot;
    if (p->world->now < side->patience || ha_pair_next_timer(&side->pair) > p->world->now) {
        return 0;
    }
    side->patience = p->world->now + sim_below(p->world, SIM_MS / 4); /* jitter is the glue's */
    for (int i = 0; i < 2 && ha_pair_next_timer(&side->pair) <= p->world->now; i++) {
        sim_side_give(p, x, &event); /* the end of a deadline, and a retransmission */
    }
    if (ha_pair_next_timer(&side->pair) <= p->world->now) {
        sim_violation(p, "L1 the timer of side %d fires for ever", x);
    }
    return 1;
}

int sim_side_send(struct sim_pair *p, int x, int slot)
{
    (void)slot;
    if (!p->side[x].send_wanted) {
        return 0;
    }
    p->side[x].send_wanted = 0;
    sim_wire_send(p, x);
    return 1;
}

/* Somebody waits to be told, and nothing is. What was posted silently may be silent; of a success that was
 * not polled nothing is known yet. */
static int is_overdue(struct sim_pair *p, int x, int slot)
{
    const struct sim_side *side = &p->side[x];
    const struct sim_qp   *qp   = &side->qp[slot];

    if (slot != side->tx_slot || (int32_t)(side->log.told - side->log.head) <= 0 || !ha_log_no_backlog(&side->log) ||
        qp->polled != sim_data_told(qp) || p->world->now - side->moved_at <= SUSPECT_TIME) {
        return 0;
    }
    if (qp->acked == qp->num_wqe) {
        sim_violation(p, "L1 side %d suspects lane %d.%u, where everything was acknowledged", x, slot, qp->gen);
    }
    return 1;
}

/* No progress, or no heartbeat while the other rail answers. */
int sim_side_suspect(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side  = &p->side[x];
    struct ha_event  event = {.kind = HA_EV_LANE_SUSPECT, .slot = slot, .gen = side->qp[slot].gen};
    unsigned         st    = side->pair.lane[slot].st;

    if (side->qp[slot].state != SIM_QP_UP || p->world->now - side->qp[slot].suspected_at < SUSPECT_TIME) {
        return 0;
    }
    if (is_overdue(p, x, slot)) {
        event.cause = HA_CAUSE_RTO;
    } else if (!sim_path_works(p, !x, slot) && sim_path_works(p, !x, !slot) &&
               p->world->now - sim_hurt_at(p, slot) > SUSPECT_TIME && sim_chance(p->world, 5)) {
        event.cause = HA_CAUSE_HEARTBEAT;
    } else if (side->slow_left > 0 && (sim_port_of(p, 0, slot)->slow || sim_port_of(p, 1, slot)->slow) &&
               sim_chance(p->world, 20)) {
        event.cause = HA_CAUSE_SLOW;
    } else {
        return 0;
    }
    side->slow_left -= event.cause == HA_CAUSE_SLOW;
    p->world->cover[SIM_COVER_LEFT_SLOW] += event.cause == HA_CAUSE_SLOW;
    sim_side_give(p, x, &event);
    if (side->pair.lane[slot].q == HA_QP_ERRING && st < HA_LANE_FENCED) {
        p->world->cover[SIM_COVER_SUSPECT]++;
    } else {
        p->world->cover[SIM_COVER_SUSPECT_REFUSED]++;
    }
    side->qp[slot].suspected_at = p->world->now; /* ask again later */
    return 1;
}

/* A hard trigger without a reason: the lane is lost although it was fine. */
int sim_side_alarm(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side = &p->side[x];
    struct ha_event event = {.kind = HA_EV_LANE_DOWN, .slot = slot, .gen = side->qp[slot].gen, .cause = HA_CAUSE_FLUSH};

    if (p->alarms_left == 0 || side->pair.lane[slot].st >= HA_LANE_FENCED || !sim_chance(p->world, 4)) {
        return 0;
    }
    p->alarms_left--;
    p->world->cover[SIM_COVER_ALARM]++;
    sim_side_give(p, x, &event);
    return 1;
}

/* Port events reach the control context. */
int sim_side_port(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side  = &p->side[x];
    struct ha_event  event = {.slot = slot, .gen = side->pair.lane[slot].gen, .cause = HA_CAUSE_PORT};

    if (slot >= p->slots || sim_is_told_down(p, x, slot) == side->port_told[slot]) {
        return 0;
    }
    side->port_told[slot] = (uint8_t)sim_is_told_down(p, x, slot);
    event.kind            = HA_EV_RAIL;
    event.value           = !side->port_told[slot];
    sim_trace(p, "side %d: rail %d is %s", x, slot, event.value ? "up" : "down");
    sim_side_give(p, x, &event);
    if (side->port_told[slot]) {
        event.kind = HA_EV_LANE_DOWN;
        sim_side_give(p, x, &event);
    }
    return 1;
}

/* Heartbeats are missing on every rail. */
int sim_side_lost(struct sim_pair *p, int x, int slot)
{
    struct ha_event event = {.kind = HA_EV_PEER_LOST, .value = HA_FAIL_PEER_DEAD};

    (void)slot;
    if (!p->doomed || p->side[x].lost_told || p->world->now - p->world->doom_at < LOST_TIME) {
        return 0;
    }
    for (int i = 0; i < p->slots && !p->side[!x].dead; i++) {
        if (sim_path_works(p, !x, i)) {
            return 0;
        }
    }
    p->side[x].lost_told = 1;
    sim_trace(p, "side %d: the peer is silent on every rail", x);
    sim_side_give(p, x, &event);
    return 1;
}

/* The rail has failed: it is left alone for a while. */
int sim_side_hold(struct sim_pair *p, int x, int slot)
{
    struct sim_side *side  = &p->side[x];
    struct ha_event  event = {.kind = HA_EV_HOLD, .slot = slot, .wait = side->hold[slot]};

    if (event.wait == 0) {
        return 0;
    }
    side->hold[slot] = 0;
    p->world->cover[SIM_COVER_HOLD]++;
    sim_side_give(p, x, &event);
    return 1;
}
