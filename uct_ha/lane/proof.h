/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PROOF_H_
#define UCT_HA_PROOF_H_

/*
 * What this side can prove about a lane, see core/ha_proof.h and
 * docs/failover.md: which kind is chosen for a rail, and reading it.
 */

#include "uct/iface.h"

#define UCT_HA_PROOF_TRIES 3 /* reads that may fail before a device is said not to answer */
#define UCT_HA_FENCE_TRIES 5 /* ... and refusals to stop a queue pair before that is given up */

/* Choose the kind for each rail of the interface (PROOF); UCS_OK, or an error
 * that has been told. May test a device, see lane/selftest.h. */
ucs_status_t uct_ha_proof_choose(struct uct_ha_iface *iface);

/* The device has not stopped the queue pair yet, or has refused to, and did not stop it by
 * itself: it may still execute what the peer sends, and send what is posted. */
static inline int uct_ha_lane_may_run(const struct uct_ha_lane *lane)
{
    return (lane->fencing || lane->fence_fails > 0) && lane->connected &&
           !__atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE);
}

/* May the proof of a fenced lane be read? Not while the device may still run it, or a job
 * connect it; nor of a device that is gone, or has not answered: lane/lost.h. A count is complete
 * only when its last receive has been polled, and that is progress's business. */
static inline int uct_ha_proof_is_ready(const struct uct_ha_lane *lane)
{
    return !lane->fencing &&
           (!lane->connected ||
            (!lane->iface->ctl.gone[lane->slot] && lane->read_fails < UCT_HA_PROOF_TRIES &&
             ((lane->proof == HA_PROOF_PSN && lane->fence_fails == 0) ||
              __atomic_load_n(&lane->flushed, __ATOMIC_ACQUIRE))));
}

/* Fills kind, word and count of a fact about a fenced lane: NONE when the
 * device does not answer, or nothing was proved. The control lock is held. */
void uct_ha_proof_read(struct uct_ha_lane *lane, struct ha_event *event);

/* Counts the proof that is given, and traces it. */
void uct_ha_proof_tell(const struct uct_ha_lane *lane, const struct ha_event *event);

#endif
