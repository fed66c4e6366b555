/* SPDX-License-Identifier: BSD-3-Clause */

/* What strikes a side from outside: dead rails, false triggers, time limits,
 * and its own user. */

#include "model.h"

int model_side_down(struct model_world *w, int x, int slot, enum ha_event_kind kind, unsigned cause)
{
    struct ha_event event = {.kind = kind, .slot = slot, .gen = w->side[x].qp[slot].gen, .cause = (uint8_t)cause};

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
    struct ha_event event = {.kind = HA_EV_RAIL, .slot = slot, .value = 0};

    (void)n;
    if (!model_data_is_cut(w, slot, w->side[x].qp[slot].gen) || !lives(w, x, slot)) {
        return 0;
    }
    model_tell("finds lane %d.%u dead", slot, w->side[x].qp[slot].gen);
    if (model_options.ports) {
        model_side_give(w, x, &event);
    }
    return model_side_down(w, x, slot, HA_EV_LANE_DOWN, HA_CAUSE_COMPLETION);
}

/* The cut, and the first side to find out, in one. */
int model_side_cut_noticed(struct model_world *w, int x, int slot, int n)
{
    if (w->cuts == 0 || !lives(w, x, slot) || !model_data_cut(w, 0, slot, n)) {
        return 0;
    }
    return model_side_detect(w, x, slot, n);
}

int model_side_port_up(struct model_world *w, int x, int slot, int n)
{
    struct ha_event event = {.kind = HA_EV_RAIL, .slot = slot, .value = 1};

    (void)n;
    if (w->side[x].pair.lane[slot].usable || (model_options.for_ever && slot == 0 && w->dead[0] != 0)) {
        return 0;
    }
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_alarm(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    if (w->alarms == 0 || !lives(w, x, slot) || w->side[x].qp[slot].state != MODEL_QP_UP) {
        return 0;
    }
    w->alarms--;
    return model_side_down(w, x, slot, HA_EV_LANE_DOWN, HA_CAUSE_FLUSH);
}

/* A suspicion without a reason; one that the core refuses costs nothing. */
int model_side_suspect(struct model_world *w, int x, int slot, int n)
{
    (void)n;
    if (w->suspicions == 0 || !lives(w, x, slot) || w->side[x].qp[slot].state != MODEL_QP_UP) {
        return 0;
    }
    model_side_down(w, x, slot, HA_EV_LANE_SUSPECT, HA_CAUSE_RTO);
    w->suspicions -= w->side[x].qp[slot].fence_asked;
    return 1;
}

/* Rail 0 has been well for so long that work goes back to it. */
int model_side_fail_back(struct model_world *w, int x, int slot, int n)
{
    const struct ha_pair *pair = &w->side[x].pair;

    (void)slot;
    (void)n;
    if (pair->failback_at == 0 || !model_side_run_at(w, x, HA_CTX_PROGRESS, pair->failback_at)) {
        return 0;
    }
    model_cover[MODEL_COVER_FAILBACK] += pair->lane[1].cause == HA_CAUSE_FAILBACK;
    return 1;
}

/* ---- time limits and users ---- */

int model_side_deadline(struct model_world *w, int x, int slot, int n)
{
    static const struct ha_event event = {.kind = HA_EV_TIMER};
    struct model_side           *side  = &w->side[x];

    (void)slot;
    (void)n;
    if (w->giveups == 0 || side->pair.deadline == 0 || ha_pair_failed(&side->pair)) {
        return 0;
    }
    w->giveups--;
    model_tell("the deadline passes");
    model_side_give_at(w, x, &event, side->pair.deadline);
    if (!ha_pair_failed(&side->pair)) {
        model_violation(w, "L1 nothing ends at the deadline");
    }
    model_side_follow(w, x);
    return 1;
}

int model_side_cancel(struct model_world *w, int x, int slot, int n)
{
    struct ha_event event = {.kind = HA_EV_PEER_LOST, .value = HA_FAIL_CANCELED};

    (void)slot;
    (void)n;
    if (w->giveups == 0 || w->side[x].closed || ha_pair_failed(&w->side[x].pair)) {
        return 0;
    }
    w->giveups--;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

int model_side_close(struct model_world *w, int x, int slot, int n)
{
    static const struct ha_event event = {.kind = HA_EV_CLOSE};
    struct model_side           *side  = &w->side[x];

    (void)slot;
    (void)n;
    if (side->closed || !model_has_ended(w, x)) {
        return 0;
    }
    side->closed = 1;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}
