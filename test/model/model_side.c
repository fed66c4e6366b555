/* SPDX-License-Identifier: BSD-3-Clause */

/* The glue of one side: it performs what the core asks for, and feeds it with
 * what its queue pairs do. */

#include <string.h>

#include "model.h"

#define MODEL_ROUNDS_MAX 100 /* more transitions at once are endless */

/* ---- what the core asks for ---- */

void model_side_refresh(struct model_side *side)
{
    side->tx_slot = (int8_t)ha_pair_tx_slot(&side->pair);
    side->rx_slot = (int8_t)ha_pair_rx_slot(&side->pair);
}

static void create(struct model_world *w, int x, int slot, uint32_t gen)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_QP_CREATED, .slot = slot, .gen = gen};

    model_oracle_create(w, x, slot, gen);
    memset(qp, 0, sizeof(*qp));
    qp->gen     = (uint8_t)gen;
    qp->state   = MODEL_QP_INIT;
    event.qpn   = gen * 2 + (uint32_t)slot;
    event.psn   = model_psn(slot);
    event.mtu   = model_mtu(slot);
    event.proof = model_options.proof;
    ha_log_lane_start(&w->side[x].log, slot, gen, event.psn);
    model_tell("builds lane %d.%u", slot, gen);
    model_side_give(w, x, &event);
}

static void connect(struct model_world *w, int x, int slot)
{
    w->side[x].qp[slot].job = 1;
    if (!model_options.split) {
        model_side_connected(w, x, slot, 0);
    }
}

/* modify(ERR). A connect job under way must end first. */
static void fence(struct model_world *w, int x, int slot, uint32_t cause)
{
    struct model_qp *qp = &w->side[x].qp[slot];

    model_tell("fences lane %d.%u (%s)", slot, qp->gen, ha_cause_name(cause));
    qp->fence_asked = 1;
    if (qp->state == MODEL_QP_INIT && !qp->job) {
        qp->state = MODEL_QP_ERR; /* it never heard a packet */
    } else if (qp->state == MODEL_QP_UP) {
        qp->state = MODEL_QP_ERRING;
    }
}

/* Packets of the operation that executed only in part, if there is one. */
static unsigned partial(struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot], *its = &w->side[!x].qp[slot];
    unsigned               whole = 0;

    for (unsigned i = 0; i < its->rx_ops && i < qp->num_ops; i++) {
        whole += model_packets(x, qp->op[i]) + model_mark(x, qp->op[i]);
    }
    return its->gen == qp->gen ? its->rx - whole : 0;
}

static void resolve(struct model_world *w, int x, int slot)
{
    struct model_side    *side  = &w->side[x];
    struct model_qp      *qp    = &side->qp[slot];
    const struct ha_view *view  = &side->pair.view[slot];
    struct ha_evidence    peer  = ha_pair_evidence(&side->pair, slot);
    struct ha_event       event = {.kind = HA_EV_BAD_PROOF, .slot = slot, .gen = qp->gen};
    struct ha_resolution  res;
    int                   rc;

    model_oracle_resolve(w, x, slot);
    rc = ha_log_resolve(&side->log, slot, qp->gen, &peer, &res);
    if (rc != 0) {
        event.value = ha_pair_bad_proof(rc);
        model_side_give(w, x, &event);
        return;
    }
    model_tell("resolves lane %d.%u: k %u, retired %u, replayed %u, unknown %u", slot, qp->gen, res.k, res.retired,
               res.replayed, res.unknown);
    model_cover[MODEL_COVER_RETIRED] += res.retired;
    model_cover[MODEL_COVER_REPLAYED] += res.replayed;
    model_cover[MODEL_COVER_UNKNOWN] += res.unknown;
    model_cover[MODEL_COVER_PARTIAL] += partial(w, x, slot);
    model_cover[MODEL_COVER_EMPTY] += view->proof == HA_PROOF_EMPTY;
    model_oracle_doubt(w, x, slot);
    model_data_retire(w, x);
    qp->resolved_k     = (uint8_t)res.k;
    qp->resolve_untold = 1;
    if (!model_options.split) {
        model_side_resolved(w, x, slot, 0);
    }
}

static void end_with_error(struct model_world *w, int x, uint32_t why)
{
    struct model_side *side = &w->side[x];

    model_tell("fails: %s", ha_fail_name(why));
    model_oracle_fail(w, x);
    side->failed = 1;
    ha_log_cancel(&side->log);
    model_data_retire(w, x);
    side->failed = 2;
}

/* What has arrived is delivered before the queue pairs go. */
static void leave(struct model_world *w, int x)
{
    struct model_side *side = &w->side[x];

    model_tell("is gone");
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        model_cover[MODEL_COVER_CLOSING_CUT] += w->dead[slot] != 0;
        side->qp[slot].visible = side->qp[slot].num_msg;
    }
    model_side_follow(w, x);
    model_oracle_gone(w, x);
    side->gone = 1;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (side->qp[slot].state != MODEL_QP_NONE) {
            side->qp[slot].state = MODEL_QP_ERR;
        }
    }
}

static void perform(struct model_world *w, int x, const struct ha_action *action)
{
    struct model_side *side = &w->side[x];
    int                slot = action->slot;

    switch (action->kind) {
    case HA_ACT_CREATE_QP:
        create(w, x, slot, action->gen);
        break;
    case HA_ACT_CONNECT_QP:
        connect(w, x, slot);
        break;
    case HA_ACT_FENCE:
        fence(w, x, slot, action->value);
        break;
    case HA_ACT_RESOLVE:
        resolve(w, x, slot);
        break;
    case HA_ACT_CHECK_CLOSE:
        side->qp[slot].close_asked = 1;
        side->qp[slot].close_k     = (uint8_t)action->value;
        break;
    case HA_ACT_DESTROY_QP:
        model_tell("closes lane %d.%u", slot, action->gen);
        model_oracle_destroy(w, x, slot);
        side->qp[slot].state = MODEL_QP_NONE;
        break;
    case HA_ACT_SEND:
        side->send_wanted = 1;
        break;
    case HA_ACT_LANES:
        model_side_refresh(side);
        model_tell("posts on %d, delivers from %d", side->tx_slot, side->rx_slot);
        break;
    case HA_ACT_FAIL:
        end_with_error(w, x, action->value);
        break;
    case HA_ACT_GONE:
        leave(w, x);
        break;
    }
}

static void perform_all(struct model_world *w, int x, const struct ha_action *actions, int n)
{
    if (n == HA_ACTIONS_MAX) {
        model_violation(w, "L1 an action may be lost, there are too many");
    }
    for (int i = 0; i < n; i++) {
        perform(w, x, &actions[i]);
    }
}

/* Nothing but a give-up may end a pair. The core's own run-time checks are
 * there for broken devices; they never find anything here. */
static void check_failure(struct model_world *w, int x)
{
    if (!ha_pair_failed(&w->side[x].pair) || model_options.unchecked) {
        return;
    }
    switch (w->side[x].pair.fail) {
    case HA_FAIL_PROOF_WINDOW:
        model_violation(w, "I10 run-time check: proof outside of the posted window");
        break;
    case HA_FAIL_PROOF_ACKED:
        model_violation(w, "I10 run-time check: proof below what was acknowledged");
        break;
    case HA_FAIL_PROOF_MOVED:
        model_violation(w, "I10 run-time check: proof moved after the fence");
        break;
    case HA_FAIL_COUNT:
        model_violation(w, "I6 run-time check: message count differs from the proof");
        break;
    case HA_FAIL_GENERATION:
        model_violation(w, "I11 run-time check: peer more than one generation ahead");
        break;
    default:
        if (w->giveups == model_options.giveups) {
            model_violation(w, "L1 an endpoint fails although nobody has given up");
        }
        break;
    }
}

void model_side_give_at(struct model_world *w, int x, const struct ha_event *event, uint64_t now)
{
    struct ha_action actions[HA_ACTIONS_MAX];

    perform_all(w, x, actions, ha_pair_step(&w->side[x].pair, event, now, actions));
    check_failure(w, x);
}

void model_side_give(struct model_world *w, int x, const struct ha_event *event)
{
    model_side_give_at(w, x, event, MODEL_NOW);
}

/* ---- what follows at once ---- */

static int deliver(struct model_world *w, int x)
{
    struct model_side *side = &w->side[x];
    struct model_qp   *qp;

    if (side->rx_slot == HA_NO_SLOT || side->failed) {
        return 0;
    }
    qp = &side->qp[side->rx_slot];
    if (qp->delivered == qp->visible) {
        return 0;
    }
    model_tell("delivers %c%u from lane %d.%u", model_kind(!x, qp->msg[qp->delivered]), qp->msg[qp->delivered],
               side->rx_slot, qp->gen);
    model_oracle_deliver(w, x, qp->msg[qp->delivered++]);
    return 1;
}

static int drained(struct model_world *w, int x, int slot)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_DRAINED, .slot = slot, .gen = qp->gen};

    if (qp->drained_told || !qp->fence_asked || qp->state != MODEL_QP_ERR || qp->polled != model_data_told(qp)) {
        return 0;
    }
    qp->drained_told = 1;
    model_side_give(w, x, &event);
    return 1;
}

static int check_close(struct model_world *w, int x, int slot)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind     = HA_EV_DELIVERED,
                              .slot     = slot,
                              .gen      = qp->gen,
                              .value    = qp->delivered,
                              .received = qp->num_msg,
                              .proof    = qp->final ? HA_PROOF_NONE : (uint8_t)model_proof()};

    model_cover[MODEL_COVER_WAITED] += qp->close_asked && qp->delivered < qp->close_k;
    if (!qp->close_asked || qp->delivered < qp->close_k) {
        return 0;
    }
    qp->close_asked = 0;
    event.psn       = model_word(w, x, slot);
    model_side_give(w, x, &event);
    return 1;
}

void model_side_follow(struct model_world *w, int x)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              more, n, rounds = 0;

    do {
        if (rounds++ == MODEL_ROUNDS_MAX) {
            model_violation(w, "L1 the core never comes to rest");
        }
        more = deliver(w, x);
        if (model_eager) {
            more |= model_reduce_post(w, x);
        }
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            more |= drained(w, x, slot) | check_close(w, x, slot);
        }
        n = model_options.at_once ? ha_pair_run(&w->side[x].pair, HA_CTX_ASYNC, MODEL_NOW, actions) : -1;
        if (n >= 0) {
            perform_all(w, x, actions, n);
        }
    } while ((more || n >= 0) && w->violation == 0 && !w->side[x].gone);
}

/* ---- contexts ---- */

int model_side_run_at(struct model_world *w, int x, enum ha_context ctx, uint64_t now)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int              n = ha_pair_run(&w->side[x].pair, ctx, now, actions);

    if (n < 0) {
        return 0;
    }
    perform_all(w, x, actions, n);
    check_failure(w, x);
    model_side_follow(w, x);
    return 1;
}

static int run(struct model_world *w, int x, enum ha_context ctx)
{
    return model_side_run_at(w, x, ctx, MODEL_NOW);
}

int model_side_run_async(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    (void)n;
    return run(w, x, HA_CTX_ASYNC);
}

/* Progress does what the handler may do as well; only what is its own is a
 * choice of its own. */
int model_side_run_progress(struct model_world *w, int x, int slot, int n)
{
    int rounds = 0;

    (void)slot;
    (void)n;
    if (!ha_pair_wants_progress(&w->side[x].pair, MODEL_NOW) || !run(w, x, HA_CTX_PROGRESS)) {
        return 0;
    }
    while (model_options.at_once && w->violation == 0 && run(w, x, HA_CTX_PROGRESS)) {
        if (rounds++ == MODEL_ROUNDS_MAX) {
            model_violation(w, "L1 the core never comes to rest");
        }
    }
    return 1;
}

/* ---- facts ---- */

/* modify(ERR) has taken effect, and the expected packet number was read; or every receive was polled. */
int model_side_settle(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_SETTLED, .slot = slot, .gen = qp->gen, .proof = (uint8_t)model_proof()};

    (void)n;
    if (qp->state != MODEL_QP_ERRING || qp->job || qp->gone || qp->mute) {
        return 0;
    }
    if (ha_proof_has_count(event.proof) && qp->visible != qp->num_msg) {
        return 0;
    }
    qp->state        = MODEL_QP_ERR;
    qp->settled_told = 1;
    event.psn        = model_word(w, x, slot);
    event.received   = qp->num_msg;
    model_tell("lane %d.%u has settled after %u packets", slot, qp->gen, qp->rx);
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* The connect job ends; variant 1: without success. */
int model_side_connected(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = n ? HA_EV_QP_FAILED : HA_EV_QP_CONNECTED, .slot = slot, .gen = qp->gen};

    if (!qp->job || (n && !model_data_is_cut(w, slot, qp->gen))) {
        return 0;
    }
    qp->job   = 0;
    qp->state = qp->fence_asked ? MODEL_QP_ERRING : MODEL_QP_UP;
    model_tell("lane %d.%u %s", slot, qp->gen, n ? "could not be connected" : "is connected");
    model_side_give(w, x, &event);
    if (model_options.split) {
        model_side_follow(w, x);
    }
    return 1;
}

int model_side_resolved(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_RESOLVED, .slot = slot, .gen = qp->gen, .value = qp->resolved_k};

    (void)n;
    if (!qp->resolve_untold) {
        return 0;
    }
    qp->resolve_untold = 0;
    model_side_give(w, x, &event);
    if (model_options.split) {
        model_side_follow(w, x);
    }
    return 1;
}
