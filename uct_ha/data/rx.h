/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RX_H_
#define UCT_HA_RX_H_

/*
 * Receiving. A message is delivered only from the lane whose turn it is
 * (flow->rx_slot); what arrives on a younger lane before the older one is
 * closed is held in order. Data part only: progress, no lock.
 */

#include "data/flow.h"

/* Receive completion of a lane, good or bad. */
void uct_ha_rx_completion(struct uct_ha_lane *lane, const struct ha_wc *wc);

/* The lane that may deliver has changed: deliver what was held on it. */
void uct_ha_rx_resume(struct uct_ha_flow *flow);

#endif
