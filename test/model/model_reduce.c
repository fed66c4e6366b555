/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What need not be explored when only safety is asked for (option -R; packets
 * then carry no echo, and a context runs through). Each by argument, but for the
 * first, which is a bound; that none hides what is broken is tested: run_mutants
 * breaks the core under -R as well.
 *
 * 1. All operations of a side but the last are posted as soon as they can be.
 *    One that is posted and never executes is, when its lane is resolved, where
 *    one is that was not posted. The last one may be late, and is then among
 *    those that wait while a lane is not resolved.
 * 2. A cut happens when the first side notices it. Before that it changes
 *    nothing but luck: packets of a cut lane may still execute and be
 *    acknowledged, so that an unnoticed cut is no cut.
 * 3. A control packet whose arrival would change nothing is not there. Merging
 *    takes maxima of what only grows (test_core_merge), so it never will.
 * 4. When no fault is left, no lane is being fenced or resolved, no packet says
 *    so, and both sides work on the same lane, nothing can disturb it any more:
 *    its data plane and the control plane do not touch each other, nor do its
 *    two directions. One order stands for all.
 */

#include <string.h>

#include "model.h"

int model_eager;

/* ---- 1: posting ---- */

int model_reduce_post(struct model_world *w, int x)
{
    struct model_side *side = &w->side[x];

    return side->tx_slot != HA_NO_SLOT && ha_log_next_wait(&side->log) + 1 < side->log.tail &&
           model_data_post(w, x, side->tx_slot, 0);
}

/* ---- 3: packets ---- */

static void same_time(struct ha_pair *a, const struct ha_pair *b)
{
    a->now    = b->now;
    a->rtx_at = b->rtx_at;
    a->rtx_n  = b->rtx_n;
    a->dirty  = b->dirty;
}

static int is_stale(const struct model_side *side, const struct ha_record *record)
{
    struct ha_event  event = {.kind = HA_EV_RECORD, .record = record};
    struct ha_action actions[HA_ACTIONS_MAX];
    struct ha_pair   pair;
    int              n;

    if (ha_packet_record_check(&side->pair, record) != 0) {
        return 0; /* will be a violation */
    }
    memcpy(&pair, &side->pair, sizeof(pair));
    n = ha_pair_step(&pair, &event, MODEL_NOW, actions);
    for (int i = 0; i < n; i++) {
        if (actions[i].kind != HA_ACT_SEND) {
            return 0;
        }
    }
    same_time(&pair, &side->pair);
    return memcmp(&pair, &side->pair, sizeof(pair)) == 0;
}

void model_reduce_net(struct model_world *w)
{
    for (int x = 0; x < 2; x++) {
        for (int i = 0; i < w->net_used[x]; i++) {
            if (!is_stale(&w->side[x], &w->net[x][i])) {
                continue;
            }
            w->net[x][i] = w->net[x][--w->net_used[x]];
            i--;
        }
    }
}

/* ---- 4: the end ---- */

static int is_at_rest(const struct model_side *side, int slot)
{
    const struct ha_lane *lane = &side->pair.lane[slot];

    return lane->q != HA_QP_ERRING && lane->st != HA_LANE_FENCED && lane->st != HA_LANE_RESOLVED;
}

static int works_alone(const struct model_side *side, int slot)
{
    const struct ha_pair *pair = &side->pair;

    return side->tx_slot == slot && side->rx_slot == slot && !side->failed && pair->view[slot].st == HA_LANE_READY &&
           is_at_rest(side, 0) && is_at_rest(side, 1);
}

int model_reduce_is_quiet(const struct model_world *w)
{
    const struct model_side *a = &w->side[0], *b = &w->side[1];
    int                      slot = a->tx_slot;

    if (w->cuts != 0 || w->alarms != 0 || w->suspicions != 0 || w->giveups != 0 || w->cards != 0) {
        return 0;
    }
    for (int x = 0; x < 2; x++) {
        for (int i = 0; i < w->net_used[x]; i++) {
            if (slot != HA_NO_SLOT && w->net[x][i].lane[slot].st >= HA_LANE_FENCED) {
                return 0;
            }
        }
    }
    return slot != HA_NO_SLOT && works_alone(a, slot) && works_alone(b, slot) && a->pair.epoch == b->pair.epoch &&
           a->pair.lane[slot].gen == b->pair.lane[slot].gen;
}
