/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RETIRE_H_
#define UCT_HA_RETIRE_H_

/*
 * How operations end: from a completion of a lane, or a proof, to the user's callback. Progress, no lock.
 *
 *   uct_ha_tx_completion() a completion came
 *   uct_ha_tx_retire()     ends what is done, oldest first, and calls the user
 */

#include "data/flow.h"

void uct_ha_tx_retire(struct uct_ha_flow *flow);
void uct_ha_tx_complete_flushes(struct uct_ha_flow *flow);

/* Send completion of a lane, good or bad. `before`: so many good ones came just before it, and are told by it. */
void uct_ha_tx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc, unsigned before);

#endif
