/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The glue of one side: it feeds the core with facts and performs what the
 * core asks for. Control packets are snapshots of the core; they stay on the
 * way after they were heard, so that they come again, until newer ones push
 * them out: lost.
 */

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
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = HA_EV_QP_CREATED, .slot = slot, .gen = gen };

    model_oracle_create(w, x, slot, gen);
    memset(qp, 0, sizeof(*qp));
    qp->gen   = (uint8_t)gen;
    qp->state = MODEL_QP_INIT;
    event.qpn = gen * 2 + (uint32_t)slot;
    event.psn = model_psn(slot);
    event.mtu = model_mtu(slot);
    ha_log_lane_start(&w->side[x].log, slot, gen, event.psn);
    model_tell("builds lane %d.%u", slot, gen);
    model_side_give(w, x, &event);
}

static void connect(struct model_world *w, int x, int slot)
{
    w->side[x].qp[slot].job = 1;
    if (!model_options.split)
        model_side_connected(w, x, slot, 0);
}

/* modify(ERR). A connect job under way must end first. */
static void fence(struct model_world *w, int x, int slot, uint32_t cause)
{
    struct model_qp *qp = &w->side[x].qp[slot];

    model_tell("fences lane %d.%u (%s)", slot, qp->gen, ha_cause_name(cause));
    qp->fence_asked = 1;
    if (qp->state == MODEL_QP_INIT && !qp->job)
        qp->state = MODEL_QP_ERR; /* it never heard a packet */
    else if (qp->state == MODEL_QP_UP)
        qp->state = MODEL_QP_ERRING;
}

/* Packets of the operation that executed only in part, if there is one. */
static unsigned partial(struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot], *its = &w->side[!x].qp[slot];
    unsigned whole            = 0;

    for (unsigned i = 0; i < its->rx_ops && i < qp->num_ops; i++)
        whole += model_packets(x, qp->op[i]);
    return its->gen == qp->gen ? its->rx - whole : 0;
}

static void resolve(struct model_world *w, int x, int slot)
{
    struct model_side *side    = &w->side[x];
    struct model_qp *qp        = &side->qp[slot];
    const struct ha_view *view = &side->pair.view[slot];
    struct ha_event event      = { .kind = HA_EV_BAD_PROOF, .slot = slot, .gen = qp->gen };
    struct ha_resolution res;
    int rc;

    model_oracle_resolve(w, x, slot);
    rc = ha_log_resolve(&side->log, slot, qp->gen, view->proof == HA_PROOF_EMPTY, view->rxpsn, &res);
    if (rc != 0) {
        event.value = rc == HA_EPROOF_WINDOW ? HA_FAIL_PROOF_WINDOW : HA_FAIL_PROOF_ACKED;
        model_side_give(w, x, &event);
        return;
    }
    model_tell("resolves lane %d.%u: k %u, retired %u, replayed %u, unknown %u", slot, qp->gen, res.k,
               res.retired, res.replayed, res.unknown);
    model_cover[MODEL_COVER_RETIRED]  += res.retired;
    model_cover[MODEL_COVER_REPLAYED] += res.replayed;
    model_cover[MODEL_COVER_UNKNOWN]  += res.unknown;
    model_cover[MODEL_COVER_PARTIAL]  += partial(w, x, slot);
    model_cover[MODEL_COVER_EMPTY]    += view->proof == HA_PROOF_EMPTY;
    model_data_retire(w, x);
    qp->resolved_k     = (uint8_t)res.k;
    qp->resolve_untold = 1;
    if (!model_options.split)
        model_side_resolved(w, x, slot, 0);
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
    for (int slot = 0; slot < HA_SLOTS; slot++)
        side->qp[slot].visible = side->qp[slot].num_msg;
    model_side_follow(w, x);
    model_oracle_gone(w, x);
    side->gone = 1;
    for (int slot = 0; slot < HA_SLOTS; slot++)
        if (side->qp[slot].state != MODEL_QP_NONE)
            side->qp[slot].state = MODEL_QP_ERR;
}

static void perform(struct model_world *w, int x, const struct ha_action *action)
{
    struct model_side *side = &w->side[x];
    int slot                = action->slot;

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
    for (int i = 0; i < n; i++)
        perform(w, x, &actions[i]);
}

/* Nothing but a give-up may end a pair. The core's own run-time checks are
 * there for broken devices; they never find anything here. */
static void check_failure(struct model_world *w, int x)
{
    if (!ha_pair_failed(&w->side[x].pair) || model_options.unchecked)
        return;
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
    case HA_FAIL_NO_PROOF:
        model_violation(w, "I10 run-time check: no proof");
        break;
    default:
        if (w->giveups == model_options.giveups)
            model_violation(w, "L1 an endpoint fails although nobody has given up");
        break;
    }
}

void model_side_give(struct model_world *w, int x, const struct ha_event *event)
{
    struct ha_action actions[HA_ACTIONS_MAX];

    perform_all(w, x, actions, ha_pair_step(&w->side[x].pair, event, MODEL_NOW, actions));
    check_failure(w, x);
}

/* ---- what follows at once ---- */

static int deliver(struct model_world *w, int x)
{
    struct model_side *side = &w->side[x];
    struct model_qp *qp;

    if (side->rx_slot == HA_NO_SLOT || side->failed)
        return 0;
    qp = &side->qp[side->rx_slot];
    if (qp->delivered == qp->visible)
        return 0;
    model_tell("delivers %c%u from lane %d.%u", model_kind(!x, qp->msg[qp->delivered]),
               qp->msg[qp->delivered], side->rx_slot, qp->gen);
    model_oracle_deliver(w, x, qp->msg[qp->delivered++]);
    return 1;
}

static int drained(struct model_world *w, int x, int slot)
{
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = HA_EV_DRAINED, .slot = slot, .gen = qp->gen };

    if (qp->drained_told || !qp->fence_asked || qp->state != MODEL_QP_ERR || qp->polled != qp->acked)
        return 0;
    qp->drained_told = 1;
    model_side_give(w, x, &event);
    return 1;
}

static int check_close(struct model_world *w, int x, int slot)
{
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = HA_EV_DELIVERED, .slot = slot, .gen = qp->gen,
                              .value = qp->delivered, .proof = HA_PROOF_PSN };

    model_cover[MODEL_COVER_WAITED] += qp->close_asked && qp->delivered < qp->close_k;
    if (!qp->close_asked || qp->delivered < qp->close_k)
        return 0;
    qp->close_asked = 0;
    event.psn       = ha_psn_add(model_psn(slot), qp->rx);
    model_side_give(w, x, &event);
    return 1;
}

void model_side_follow(struct model_world *w, int x)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int more, n, rounds = 0;

    do {
        if (rounds++ == MODEL_ROUNDS_MAX)
            model_violation(w, "L1 the core never comes to rest");
        more = deliver(w, x);
        for (int slot = 0; slot < HA_SLOTS; slot++)
            more |= drained(w, x, slot) | check_close(w, x, slot);
        n = model_options.at_once ?
            ha_pair_run(&w->side[x].pair, HA_CTX_ASYNC, MODEL_NOW, actions) : -1;
        if (n >= 0)
            perform_all(w, x, actions, n);
    } while ((more || n >= 0) && w->violation == 0 && !w->side[x].gone);
}

/* ---- contexts ---- */

static int run(struct model_world *w, int x, enum ha_context ctx)
{
    struct ha_action actions[HA_ACTIONS_MAX];
    int n = ha_pair_run(&w->side[x].pair, ctx, MODEL_NOW, actions);

    if (n < 0)
        return 0;
    perform_all(w, x, actions, n);
    check_failure(w, x);
    model_side_follow(w, x);
    return 1;
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
    if (!ha_pair_wants_progress(&w->side[x].pair, MODEL_NOW) || !run(w, x, HA_CTX_PROGRESS))
        return 0;
    while (model_options.at_once && w->violation == 0 && run(w, x, HA_CTX_PROGRESS))
        if (rounds++ == MODEL_ROUNDS_MAX)
            model_violation(w, "L1 the core never comes to rest");
    return 1;
}

/* ---- facts ---- */

/* modify(ERR) has taken effect, and the expected packet number was read. */
int model_side_settle(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = HA_EV_SETTLED, .slot = slot, .gen = qp->gen,
                              .proof = HA_PROOF_PSN };

    (void)n;
    if (qp->state != MODEL_QP_ERRING || qp->job)
        return 0;
    qp->state        = MODEL_QP_ERR;
    qp->settled_told = 1;
    event.psn        = ha_psn_add(model_psn(slot), qp->rx);
    model_tell("lane %d.%u has settled after %u packets", slot, qp->gen, qp->rx);
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* The connect job ends; variant 1: without success. */
int model_side_connected(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = n ? HA_EV_QP_FAILED : HA_EV_QP_CONNECTED, .slot = slot,
                              .gen = qp->gen };

    if (!qp->job || (n && !model_data_is_cut(w, slot, qp->gen)))
        return 0;
    qp->job   = 0;
    qp->state = qp->fence_asked ? MODEL_QP_ERRING : MODEL_QP_UP;
    model_tell("lane %d.%u %s", slot, qp->gen, n ? "could not be connected" : "is connected");
    model_side_give(w, x, &event);
    if (model_options.split)
        model_side_follow(w, x);
    return 1;
}

int model_side_resolved(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp   = &w->side[x].qp[slot];
    struct ha_event event = { .kind = HA_EV_RESOLVED, .slot = slot, .gen = qp->gen,
                              .value = qp->resolved_k };

    (void)n;
    if (!qp->resolve_untold)
        return 0;
    qp->resolve_untold = 0;
    model_side_give(w, x, &event);
    if (model_options.split)
        model_side_follow(w, x);
    return 1;
}

static int lane_down(struct model_world *w, int x, int slot, enum ha_event_kind kind, unsigned cause)
{
    struct ha_event event = { .kind = kind, .slot = slot, .gen = w->side[x].qp[slot].gen,
                              .cause = (uint8_t)cause };

    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* Does x's end of the lane believe that it lives? */
static int lives(const struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot];

    return (qp->state == MODEL_QP_UP || qp->state == MODEL_QP_INIT) && !qp->fence_asked;
}

int model_side_detect(struct model_world *w, int x, int slot, int n)
{
    struct ha_event event = { .kind = HA_EV_RAIL, .slot = slot, .value = 0 };

    (void)n;
    if (!model_data_is_cut(w, slot, w->side[x].qp[slot].gen) || !lives(w, x, slot))
        return 0;
    model_tell("finds lane %d.%u dead", slot, w->side[x].qp[slot].gen);
    if (model_options.ports)
        model_side_give(w, x, &event);
    return lane_down(w, x, slot, HA_EV_LANE_DOWN, HA_CAUSE_COMPLETION);
}

int model_side_port_up(struct model_world *w, int x, int slot, int n)
{
    struct ha_event event = { .kind = HA_EV_RAIL, .slot = slot, .value = 1 };

    (void)n;
    if (w->side[x].pair.lane[slot].usable ||
        (model_options.for_ever && slot == 0 && w->dead[0] != 0))
        return 0;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_alarm(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    if (w->alarms == 0 || !lives(w, x, slot) || w->side[x].qp[slot].state != MODEL_QP_UP)
        return 0;
    w->alarms--;
    return lane_down(w, x, slot, HA_EV_LANE_DOWN, HA_CAUSE_FLUSH);
}

/* A suspicion without a reason; one that the core refuses costs nothing. */
int model_side_suspect(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    if (w->suspicions == 0 || !lives(w, x, slot) || w->side[x].qp[slot].state != MODEL_QP_UP)
        return 0;
    lane_down(w, x, slot, HA_EV_LANE_SUSPECT, HA_CAUSE_RTO);
    w->suspicions -= w->side[x].qp[slot].fence_asked;
    return 1;
}

/* ---- time limits and users ---- */

int model_side_deadline(struct model_world *w, int x, int slot, int n)
{
    static const struct ha_event event = { .kind = HA_EV_TIMER };
    struct model_side *side            = &w->side[x];
    struct ha_action actions[HA_ACTIONS_MAX];

    (void)slot;
    (void)n;
    if (w->giveups == 0 || side->pair.deadline == 0 || ha_pair_failed(&side->pair))
        return 0;
    w->giveups--;
    model_tell("the deadline passes");
    perform_all(w, x, actions, ha_pair_step(&side->pair, &event, side->pair.deadline, actions));
    if (!ha_pair_failed(&side->pair))
        model_violation(w, "L1 nothing ends at the deadline");
    model_side_follow(w, x);
    return 1;
}

int model_side_cancel(struct model_world *w, int x, int slot, int n)
{
    struct ha_event event = { .kind = HA_EV_PEER_LOST, .value = HA_FAIL_CANCELED };

    (void)slot;
    (void)n;
    if (w->giveups == 0 || w->side[x].closed || ha_pair_failed(&w->side[x].pair))
        return 0;
    w->giveups--;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_close(struct model_world *w, int x, int slot, int n)
{
    static const struct ha_event event = { .kind = HA_EV_CLOSE };
    struct model_side *side            = &w->side[x];

    (void)slot;
    (void)n;
    if (side->closed || side->ended != (1u << model_num_ops(x)) - 1)
        return 0;
    side->closed = 1;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* ---- control packets ---- */

int model_side_would_resend(const struct model_side *side)
{
    static const struct ha_event event = { .kind = HA_EV_TIMER };
    struct ha_action actions[HA_ACTIONS_MAX];
    struct ha_pair pair = side->pair;
    int n               = 0;

    if (!side->gone && pair.dirty)
        n = ha_pair_step(&pair, &event, pair.rtx_at, actions);
    for (int i = 0; i < n; i++)
        if (actions[i].kind == HA_ACT_SEND)
            return 1;
    return 0;
}

/* A side that has forgotten the pair says no more than that. */
static void snapshot(const struct model_side *side, struct ha_record *record)
{
    if (!side->gone) {
        ha_pair_snapshot(&side->pair, record);
    } else {
        memset(record, 0, sizeof(*record));
        record->flags = record->seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
        for (int slot = 0; slot < HA_SLOTS; slot++)
            record->lane[slot].st = HA_LANE_CLOSED;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        record->lane[slot].cause = HA_CAUSE_NONE; /* decides nothing */
        if (!model_options.no_echo && !side->gone)
            continue;
        record->lane[slot].seen_gen = 0;
        record->lane[slot].seen_st  = HA_LANE_CLOSED;
    }
    if (model_options.no_echo)
        record->seen_epoch = record->seen_flags = 0;
}

/* The present snapshot takes place `n` on the way; what was there is lost. */
int model_side_send(struct model_world *w, int x, int slot, int n)
{
    struct model_side *side = &w->side[x];
    struct ha_record record;

    (void)slot;
    if (n >= model_options.channel || n > w->net_used[!x])
        return 0;
    if (!side->send_wanted && !model_side_would_resend(side))
        return 0;
    side->send_wanted = 0;
    snapshot(side, &record);
    for (int i = 0; i < w->net_used[!x]; i++)
        if (memcmp(&w->net[!x][i], &record, sizeof(record)) == 0) {
            w->net_heard[!x] &= (uint8_t)~(1u << i);
            return 1;
        }
    w->net[!x][n] = record;
    w->net_heard[!x] &= (uint8_t)~(1u << n);
    if (n == w->net_used[!x])
        w->net_used[!x]++;
    model_tell("sends: epoch %u  0.%u %s  1.%u %s  flags %x", record.epoch, record.lane[0].gen,
               ha_lane_status_name(record.lane[0].st), record.lane[1].gen,
               ha_lane_status_name(record.lane[1].st), record.flags);
    return 1;
}

/* The latest packet does not arrive, and nothing newer is under way. */
int model_side_lose(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    (void)n;
    if (!w->side[x].send_wanted)
        return 0;
    w->side[x].send_wanted = 0;
    return 1;
}

static int hear(struct model_world *w, int x, int n)
{
    struct ha_record record = w->net[x][n];
    struct ha_event event   = { .kind = HA_EV_RECORD, .record = &record };

    if (w->side[x].gone) {
        w->side[x].send_wanted = 1;
        return 1;
    }
    model_tell("hears: epoch %u  0.%u %s  1.%u %s  flags %x", record.epoch, record.lane[0].gen,
               ha_lane_status_name(record.lane[0].st), record.lane[1].gen,
               ha_lane_status_name(record.lane[1].st), record.flags);
    if (!model_options.unchecked && ha_packet_record_check(&w->side[x].pair, &record) != 0) {
        model_violation(w, "a genuine control packet is refused");
        return 1;
    }
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_receive(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    if (n >= w->net_used[x] || (w->net_heard[x] >> n & 1))
        return 0;
    w->net_heard[x] |= (uint8_t)((model_options.luck & 1u) << n);
    return hear(w, x, n);
}

int model_side_receive_again(struct model_world *w, int x, int slot, int n)
{
    (void)slot;
    return n < w->net_used[x] && (w->net_heard[x] >> n & 1) && hear(w, x, n);
}
