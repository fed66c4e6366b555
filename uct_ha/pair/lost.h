/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LOST_H_
#define UCT_HA_LOST_H_

/*
 * A fenced lane of which the card says nothing any more: it refuses to stop, or to say how far
 * it came; it hangs; it is gone; its completions are lost. What the card does not say software
 * declares, see "Without a proof" in docs/failover.md: how many receives were taken from it (and no more
 * will be), and that no send completion is waited for.
 *
 * The timer looks when something is due, and only progress declares: behind a look into the
 * completion queue that found it empty.
 */

#include "pair/conn.h"

/* When the lane has to be looked at, UINT64_MAX: not at all. The control lock is held. */
uint64_t uct_ha_lost_due(const struct uct_ha_lane *lane);

/* By the timer, with the lock: should progress come. */
void uct_ha_lost_check(struct uct_ha_lane *lane, uint64_t now);

/* May something be declared now? The lock is held. */
int uct_ha_lost_is_over(const struct uct_ha_conn *conn, uint64_t now);

/* Progress, without the lock: declares what is still to be declared. `empty`: the completion queues
 * of which rails were just found so. */
void uct_ha_lost_declare(struct uct_ha_conn *conn, const int *empty);

#endif
