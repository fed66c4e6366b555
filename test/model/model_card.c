/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Cards that are gone (option -z): what they were told to stop they do not stop, or
 * they stop and do not say how far they came. They may be dead, or execute packets for
 * ever. So their side declares how many messages it has taken, and takes no more.
 */

#include "model.h"

/* Messages that x's requester knows to have arrived. */
static unsigned acked_messages(const struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot];
    unsigned               n  = 0;

    for (unsigned i = 0; i < qp->acked; i++) {
        n += model_receivers(x) >> qp->op[i] & 1;
    }
    return n;
}

/* What was not seen until now never will be: for the software it has not happened. */
static void forget_unseen(struct model_world *w, int x, int slot)
{
    struct model_qp *qp = &w->side[x].qp[slot];

    while (qp->num_msg > qp->visible) {
        w->side[!x].executed &= (uint8_t) ~(1u << qp->msg[--qp->num_msg]);
    }
}

/* Only when one end is stopped, and what a card that has stopped has written is seen; two cards that are gone wait for
 * each other up to a time limit. */
static int may_declare(const struct model_world *w, int x, int slot)
{
    const struct model_qp *qp = &w->side[x].qp[slot], *its = &w->side[!x].qp[slot];

    return (qp->gone || qp->mute) && qp->fence_asked && !qp->settled_told &&
           (!qp->gone || ha_pair_peer_stopped(&w->side[x].pair, slot) || (its->gen == qp->gen && its->gone)) &&
           (qp->gone ? its->gen != qp->gen || qp->visible >= acked_messages(w, !x, slot) : qp->visible == qp->num_msg);
}

int model_card_declare(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_SETTLED, .slot = slot, .gen = qp->gen, .proof = HA_PROOF_NONE};

    (void)n;
    if (!may_declare(w, x, slot)) {
        return 0;
    }
    if (qp->mute) {
        qp->state = MODEL_QP_ERR; /* it has stopped, and that is all that is known */
    }
    forget_unseen(w, x, slot);
    qp->settled_told = qp->final = 1;
    event.received               = qp->num_msg;
    model_cover[MODEL_COVER_DECLARED]++;
    model_tell("lane %d.%u: no proof, %u messages were taken", slot, qp->gen, qp->num_msg);
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* The drain marker has not come back in time. */
int model_card_give_up(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp    = &w->side[x].qp[slot];
    struct ha_event  event = {.kind = HA_EV_DRAINED, .slot = slot, .gen = qp->gen};

    (void)n;
    if (!qp->gone || !qp->fence_asked || qp->drained_told || qp->polled != model_data_told(qp)) {
        return 0;
    }
    qp->drained_told = 1;
    model_side_give(w, x, &event);
    model_side_follow(w, x);
    return 1;
}

/* The owner is told, and can do nothing about it; variant 1: at least it stops. */
int model_card_dies(struct model_world *w, int x, int slot, int n)
{
    struct model_qp *qp = &w->side[x].qp[slot];

    if (w->cards == 0 || qp->state != MODEL_QP_UP || qp->fence_asked) {
        return 0;
    }
    w->cards--;
    qp->gone = n == 0;
    qp->mute = n == 1;
    model_tell("the card of lane %d.%u is gone%s", slot, qp->gen, n ? ", and has stopped" : "");
    return model_side_down(w, x, slot, HA_EV_LANE_DOWN, HA_CAUSE_PORT);
}
