/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SETTLE_H_
#define UCT_HA_SETTLE_H_

/*
 * What this side can prove about a lane that was stopped, see core/ha_proof.h and
 * docs/failover.md: when that may be read, and reading it. A packet number is asked of the
 * device by a job, and the answer is read later: the card may hang.
 */

#include "core/ha_pair.h"
#include "lane/fence.h"

#define UCT_HA_PROOF_TRIES 3 /* reads that may fail before a device is said not to answer */

/* May the proof of a fenced lane be read? Not while the device may still run it, or a job
 * connect it; nor of a device that is gone, or has not answered: pair/lost.h. A count is complete
 * only when its last receive has been polled, and that is progress's business. */
static inline int uct_ha_settle_is_ready(const struct uct_ha_lane *lane)
{
    return !lane->fencing && !lane->asking &&
           (!lane->connected || (!lane->lanes->gone[lane->slot] && lane->read_fails < UCT_HA_PROOF_TRIES &&
                                 ((lane->proof == HA_PROOF_PSN && lane->fence_fails == 0) ||
                                  __atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE))));
}

/* Does the proof need an answer of the device? */
static inline int uct_ha_settle_wants_answer(const struct uct_ha_lane *lane)
{
    return lane->connected && lane->proof == HA_PROOF_PSN && !lane->final && !lane->lanes->gone[lane->slot];
}

/* Ask it, unless a job does already; for lanes->answered. `final`: nothing executes any more, this answer
 * is the proof. The control lock is held. */
void uct_ha_settle_ask_locked(struct uct_ha_lane *lane, int final);

/* Fills kind, word and count of a fact about a fenced lane: NONE when the
 * device did not answer, or nothing was proved. The control lock is held. */
void uct_ha_settle_read(struct uct_ha_lane *lane, struct ha_event *event);

/* Counts the proof that is given, and traces it. */
void uct_ha_settle_tell(const struct uct_ha_lane *lane, const struct ha_event *event);

#endif
