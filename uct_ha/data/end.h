/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_END_H_
#define UCT_HA_END_H_

/* How a connection ends for its user. Progress, without the lock: it calls him. */

#include "data/flow.h"

/* End everything with `status` and tell the user once when it matters to him. */
void uct_ha_end_fail(struct uct_ha_flow *flow, ucs_status_t status);
void uct_ha_end_report(struct uct_ha_flow *flow);

/* The endpoint is being destroyed: callbacks of what is still under way would call into a user
 * who has let go. */
void uct_ha_end_forget(struct uct_ha_flow *flow);

#endif
