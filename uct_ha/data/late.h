/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LATE_H_
#define UCT_HA_LATE_H_

/*
 * Local memory that the new rail does not know. After a failover it turns up
 * with the operations that use it, one by one: nothing was registered for it
 * before, and nothing is while the failover is decided and switched.
 *
 *   sent again, at most SEG_SIZE   goes from (a GET: into) a bounce buffer,
 *                                  which both rails know: no registration
 *   anything else                  the memory is registered here, once; all
 *                                  later operations find it
 *
 * Data part only: progress, no lock.
 */

#include "data/flow.h"

/* Make the operation at log.post fit for the rail of `slot`. 0: post it now;
 * else a negative errno value and it cannot go there. */
int uct_ha_late(struct uct_ha_flow *flow, int slot);

/* The endpoint is being destroyed: the user may take back memory that operations
 * under way would need if they had to be sent again. They get copies, or a
 * registration while there still can be one. */
void uct_ha_late_keep(struct uct_ha_flow *flow);

#endif
