/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_REPOST_H_
#define UCT_HA_REPOST_H_

/*
 * Shared receives (lane/shared.h) that have been consumed: they wait in a chain, which is posted with one doorbell. And
 * those that do not come back:
 *
 * A queue pair that is stopped in the middle of a message may take its receive along. Receives are used in the order
 * in which they were posted. So once as many have been used as there are, all that were out before have been taken, and
 * once twice as many, those that have not come back are lost; unless a lane has received nothing since: it may be in
 * the middle of a message with one of them. As long as a lane that is gone has not been destroyed nothing is concluded.
 *
 *   QUIET ── a queue pair was destroyed ──▶ MARKED ── all used once ──▶ PAGED ── ... twice ──▶ QUIET, replaced
 *
 * Progress.
 */

#include "lane/shared.h"

/* Post again what has been consumed. */
void uct_ha_shared_repost(struct uct_ha_shared *shared);

/* One more has been consumed, and is in the chain, or will be: is it time? */
static inline void uct_ha_shared_consumed(struct uct_ha_shared *shared)
{
    if (ucs_unlikely(--shared->chain_left == 0)) {
        uct_ha_shared_repost(shared);
    }
}

/* A receive of a lane that is gone. */
void uct_ha_shared_drop(struct uct_ha_place *place);

/* Queue pairs have been destroyed: one of them may have taken a receive along. */
void uct_ha_shared_mark(struct uct_ha_shared *shared);

#endif
