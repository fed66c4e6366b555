/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_pick.h"

#define WEIGHT_AVAILABLE 5
#define PROBE_ONE_IN     100

/* The n-th set bit, n counted modulo the number of them. */
static int nth_rail(uint32_t mask, uint32_t n)
{
    n %= (uint32_t)__builtin_popcount(mask);
    while (n-- > 0) {
        mask &= mask - 1;
    }
    return __builtin_ctz(mask);
}

static int least_predicted(const struct hte_pick *pick, uint32_t mask)
{
    uint64_t cost, least = UINT64_MAX;
    int      rail, best  = -1;

    for (; mask != 0; mask &= mask - 1) {
        rail = __builtin_ctz(mask);
        cost = pick->predicted[rail] * ((pick->preferred >> rail & 1) ? 1 : WEIGHT_AVAILABLE);
        if (best < 0 || cost < least) {
            best  = rail;
            least = cost;
        }
    }
    return best;
}

static uint32_t candidates(enum hte_policy policy, const struct hte_pick *pick)
{
    uint32_t all  = pick->preferred | pick->available;
    uint32_t bad  = pick->bad_rail < 0 ? 0 : 1u << pick->bad_rail;
    uint32_t good = all & ~bad & ~pick->paused;

    if (policy != HTE_POLICY_LOAD && (good & pick->preferred) != 0) {
        return good & pick->preferred;
    }
    if (good != 0) {
        return good;
    }
    return (all & ~bad) != 0 ? all & ~bad : all;
}

int hte_pick_rail(enum hte_policy policy, const struct hte_pick *pick)
{
    uint32_t mask = candidates(policy, pick);

    if (mask == 0) {
        return -1;
    }
    switch (policy) {
    case HTE_POLICY_ROUND_ROBIN:
        return nth_rail(mask, pick->turn);
    case HTE_POLICY_LOAD:
        if (pick->random % PROBE_ONE_IN != 0) {
            return least_predicted(pick, mask);
        }
        return nth_rail(mask, pick->random / PROBE_ONE_IN);
    case HTE_POLICY_RANDOM:
        break;
    }
    return nth_rail(mask, pick->random);
}
