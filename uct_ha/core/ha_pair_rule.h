/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PAIR_RULE_H_
#define HA_PAIR_RULE_H_

/* What follows from the state of a pair, and when. */

#include "ha_state.h"

/* Perform at most ONE enabled transition of `ctx` (PROGRESS may also do what
 * ASYNC may). Returns -1 when none is enabled, else the number of actions.
 * The caller repeats until -1; the explorer interleaves instead. */
int ha_pair_run(struct ha_pair *pair, enum ha_context ctx, uint64_t now, struct ha_action *out);

/* 1 if ha_pair_run(PROGRESS) has something to do that ASYNC may not. */
int ha_pair_wants_progress(const struct ha_pair *pair, uint64_t now);

/* When to call with HA_EV_TIMER next; UINT64_MAX = never. */
uint64_t ha_pair_next_timer(const struct ha_pair *pair);

#endif
