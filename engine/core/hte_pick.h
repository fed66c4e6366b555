/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PICK_H_
#define HTE_PICK_H_

/*
 * Which rail carries the next slice. Pure. Rails are bits of a mask, at most 16.
 *
 * First tier that has a rail which is neither paused nor the one that just failed: preferred, available. When there
 * is none, pauses are ignored; the rail that just failed comes last of all: only when there is no other.
 */

#include <stdint.h>

#define HTE_RAILS_MAX 16

enum hte_policy {
    HTE_POLICY_RANDOM,
    HTE_POLICY_ROUND_ROBIN,
    HTE_POLICY_LOAD /* least predicted time, times 1 for preferred, 5 for available rails; 1 % at random */
};

struct hte_pick {
    uint32_t        preferred, available; /* available: without the preferred ones */
    uint32_t        paused;
    int             bad_rail;  /* -1: none */
    uint32_t        turn;      /* counter of the caller, for round robin */
    uint32_t        random;    /* fresh, uniform */
    const uint64_t *predicted; /* ns per rail, for HTE_POLICY_LOAD */
};

/* The rail, or -1 when both masks are empty. */
int hte_pick_rail(enum hte_policy policy, const struct hte_pick *pick);

#endif
