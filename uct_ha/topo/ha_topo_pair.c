/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_topo_pair.h"

#include <stdio.h>
#include <string.h>

#define WEIGHT_NEAR  (HA_TOPO_BRIDGES_MAX + 1)
#define WEIGHT_CARD  (WEIGHT_NEAR * (HA_TOPO_FAR + 1))
#define WEIGHT_AWAKE (2 * WEIGHT_CARD)

/* 0 = cannot back it; else the larger the better. */
static int score(const struct ha_topo_rail *rail, const struct ha_topo_rail *standby)
{
    if (standby->link_layer == HA_LINK_NONE || standby->link_layer != rail->link_layer) {
        return 0;
    }
    return 1 + (standby->active || standby->was_active ? WEIGHT_AWAKE : 0) +
           (ha_topo_same_card(rail, standby) ? 0 : WEIGHT_CARD) +
           WEIGHT_NEAR * (HA_TOPO_FAR - (int)ha_topo_near(rail, standby)) + (int)ha_topo_common_bridges(rail, standby);
}

/* Of two that score the same: of the ports of one card the ACTIVE one. A card that is
 * down at the moment keeps its place, so that this host pairs its rails as its peers do. */
static int goes_before(const struct ha_topo_rail *a, const struct ha_topo_rail *b, int a_backs, int b_backs)
{
    if (ha_topo_same_card(a, b) && !a->active != !b->active) {
        return a->active;
    }
    return a_backs < b_backs;
}

/* Starting behind the rail itself spreads equals over all. `backs` counts how
 * many rails each one backs already. */
static void choose(const struct ha_topo_rail *rails, int num, int rail, const int *backs, struct ha_topo_choice *choice)
{
    int best = HA_TOPO_NONE, best_score = 0;

    memset(choice, 0, sizeof(*choice));
    for (int step = 1; step < num; step++) {
        int i     = (rail + step) % num;
        int value = score(&rails[rail], &rails[i]);

        if (value == 0 || value < best_score) {
            continue;
        }
        choice->equals = value == best_score ? choice->equals + 1 : 1;
        if (value > best_score || goes_before(&rails[i], &rails[best], backs[i], backs[best])) {
            best = i;
        }
        best_score = value;
    }
    choice->standby = best;
}

static void judge(const struct ha_topo_rail *rails, int rail, struct ha_topo_choice *choice)
{
    if (choice->standby >= 0) {
        choice->near        = ha_topo_near(&rails[rail], &rails[choice->standby]);
        choice->shared_fate = choice->near == HA_TOPO_SAME_CARD;
    }
}

void ha_topo_pair(const struct ha_topo_rail *rails, int num, struct ha_topo_choice *choices)
{
    int backs[HA_RAILS_MAX] = {0};

    for (int i = 0; i < num; i++) {
        choose(rails, num, i, backs, &choices[i]);
        judge(rails, i, &choices[i]);
        if (choices[i].standby >= 0) {
            backs[choices[i].standby]++;
        }
    }
}

const char *ha_topo_reason(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices, int i, char *buf,
                           size_t size)
{
    const struct ha_topo_choice *choice = &choices[i];
    char                         near[64], turn[48] = "";
    const char                  *asleep;

    if (choice->standby == HA_TOPO_UNUSED) {
        snprintf(buf, size, "not used: in no group of UCX_HA_RC_RAILS");
        return buf;
    }
    if (choice->standby == HA_TOPO_NONE) {
        snprintf(buf, size, "%s",
                 choice->by_user                       ? "alone in its group of UCX_HA_RC_RAILS"
                 : rails[i].link_layer == HA_LINK_NONE ? "cannot be opened"
                                                       : "no other rail has its link layer");
        return buf;
    }
    if (choice->equals > 1) {
        snprintf(turn, sizeof(turn), ", %u equals taken in turn", choice->equals);
    }
    asleep = rails[choice->standby].active ? "" : ", its port is NOT ACTIVE";
    ha_topo_near_text(&rails[i], &rails[choice->standby], near, sizeof(near));
    if (choice->shared_fate) {
        snprintf(buf, size, "%sSHARED FATE: both on one card%s%s", choice->by_user ? "UCX_HA_RC_RAILS; " : "", asleep,
                 turn);
    } else {
        snprintf(buf, size, "%sother card, %s%s%s", choice->by_user ? "UCX_HA_RC_RAILS; " : "", near, asleep, turn);
    }
    return buf;
}
