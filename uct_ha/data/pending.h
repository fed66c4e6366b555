/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PENDING_H_
#define UCT_HA_PENDING_H_

/* Requests that UCP has queued until there is room. Progress, no lock. */

#include "data/flow.h"

/* The connection has requests queued: it takes its turn. */
void uct_ha_pending_queue(struct uct_ha_flow *flow);

/* Let queued requests of the users try again. Returns how many went. */
unsigned uct_ha_pending_dispatch(struct uct_ha_flows *flows);

/* The requests that wait leave: to `cb`, but atomics without result end here when their endpoint does.
 * cb NULL: they are forgotten. */
void uct_ha_pending_purge(struct uct_ha_flow *flow, uct_pending_purge_callback_t cb, void *arg);

#endif
