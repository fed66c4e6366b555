/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PAIR_H_
#define HA_PAIR_H_

/*
 * The control state of one endpoint pair: which lanes exist, how far each has
 * come on both sides, and which one carries new work. A lane is (slot,
 * generation): slot = rail 0/1 of the endpoint, generation = number of the
 * queue pair built there. A queue pair is never used again. Status only moves
 * forward within a generation; fencing cannot be undone.
 *
 *        QP created      both know the other's QP   detected dead · failback · peer FENCED ·
 *        parameters out  RTR, RTS                   QP error · port down · suspicion with a standby
 *  gen+1 ───▶ CONN ─────────────▶ READY ─────────────┐
 *    ▲          │                   │ act = epoch     │ modify(ERR), irrevocable
 *    │          └── fenced as well ─┼────────────────▶▼
 *    │                              │              [q = ERRING] ── barrier passed ──▶ FENCED (rxpsn = proof)
 *    │                         post here only                                           │ own sends drained,
 *    │                         while READY and                                          │ peer FENCED: its proof known
 *    │                         peer >= READY                                            ▼
 *    │                                                                               RESOLVED (k; rest back to WAIT)
 *    │  peer CLOSED same gen,                                                           │ peer RESOLVED: its k known,
 *    └─ or peer already at gen+1 ◀──────────────── CLOSED ◀─────────────────────────────┘ k messages delivered here
 *
 * Before the first generation a slot is (gen 0, CLOSED) on both sides, so that
 * building the first lane and rebuilding one are the same transition.
 *
 *  endpoint: OPENING ─ first lane ready ─▶ RUN ─ active lane lost ─▶ MOVING ─ epoch+1, old RESOLVED ─▶ RUN
 *                                           │  (or left: preferred lane calm for long enough)
 *                                           └─ deadline · bad proof · peer failed/dead ─▶ FAILED (absorbing)
 *
 * The two sides tell each other a snapshot of all this (struct ha_record)
 * until it is echoed; receiving takes the maximum of (generation, status) per
 * slot, so loss, repeats, delay and reordering do no harm. Both may fence;
 * only one fixed side, the decider, numbers epochs.
 *
 * Pure: no clock, random, allocation, logging, callback. The struct is flat
 * (no pointers) so that the explorer can copy, compare and hash it. The glue
 * serialises calls for one pair with its control lock.
 *
 * Contexts: transitions marked P touch the operation log or build queue pairs
 * and run in progress only; the others (A) may run in the asynchronous handler too.
 */

#include "ha_name.h"
#include "ha_pair_msg.h"
#include "ha_pair_rule.h"
#include "ha_state.h"

/* Take a fact in; returns the number of actions written to `out` (which has
 * room for HA_ACTIONS_MAX). Facts about an old generation are ignored. */
int ha_pair_step(struct ha_pair *pair, const struct ha_event *event, uint64_t now, struct ha_action *out);

#endif
