/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/setup.h"

#include "base/stats.h"

#define JUST_NS 100000000ull

static uint64_t last_ns; /* when the last one of the process got its lane */

static void count_under_way(const struct uct_ha_setup *setup, int change)
{
    if (setup->accepted) {
        UCT_HA_STATS_ADD(accepting, change);
    } else {
        UCT_HA_STATS_ADD(connecting, change);
    }
}

static void raise_to(uint64_t *most, uint64_t value)
{
    uint64_t old = __atomic_load_n(most, __ATOMIC_RELAXED);

    while (value > old && !__atomic_compare_exchange_n(most, &old, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void count_success(const struct uct_ha_setup *setup, uint64_t ns)
{
    if (setup->accepted) {
        UCT_HA_STATS_ADD(accepts, 1);
        UCT_HA_STATS_ADD(accept_ns_total, ns);
        raise_to(&uct_ha_stats_total.accept_ns_max, ns);
    } else {
        UCT_HA_STATS_ADD(connects, 1);
        UCT_HA_STATS_ADD(connect_ns_total, ns);
        raise_to(&uct_ha_stats_total.connect_ns_max, ns);
    }
    UCT_HA_STATS_ADD(setup_hist[uct_ha_setup_bin(ns)], 1);
}

static void count_failure(const struct uct_ha_setup *setup)
{
    if (setup->accepted) {
        UCT_HA_STATS_ADD(accept_failures, 1);
    } else {
        UCT_HA_STATS_ADD(connect_failures, 1);
    }
}

int uct_ha_setup_is_busy(uint64_t now)
{
    return now < __atomic_load_n(&last_ns, __ATOMIC_RELAXED) + JUST_NS ||
           __atomic_load_n(&uct_ha_stats_total.connecting, __ATOMIC_RELAXED) > 0 ||
           __atomic_load_n(&uct_ha_stats_total.accepting, __ATOMIC_RELAXED) > 0;
}

void uct_ha_setup_begin(struct uct_ha_setup *setup, int accepted, uint64_t now)
{
    setup->since    = now != 0 ? now : 1;
    setup->accepted = (uint8_t)accepted;
    count_under_way(setup, 1);
}

void uct_ha_setup_follow(struct uct_ha_setup *setup, int works, int failed, uint64_t now)
{
    if (setup->since == 0 || (!works && !failed)) {
        return;
    }
    if (works) {
        count_success(setup, now - setup->since);
        __atomic_store_n(&last_ns, now, __ATOMIC_RELAXED);
    } else {
        count_failure(setup);
    }
    uct_ha_setup_end(setup);
}

void uct_ha_setup_end(struct uct_ha_setup *setup)
{
    if (setup->since != 0) {
        setup->since = 0;
        count_under_way(setup, -1);
    }
}

unsigned uct_ha_setup_bin(uint64_t ns)
{
    unsigned bin = 0;

    for (uint64_t ms = ns / 1000000; ms > 0 && bin < UCT_HA_STATS_SETUP_BINS - 1; ms /= 2) {
        bin++;
    }
    return bin;
}
