/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_END_H_
#define UCT_HA_END_H_

/* How a connection ends for its user. Progress, without the lock: it calls him. */

#include "data/flow.h"

/* End everything with `status` and tell the user once when it matters to him. */
void uct_ha_end_fail(struct uct_ha_flow *flow, ucs_status_t status);
void uct_ha_end_report(struct uct_ha_flow *flow);

/* The endpoint is being destroyed: who waits for something that is under way is told UCS_ERR_CANCELED, as UCX's own rc
 * does, and is not called later. UCP relies on it: it takes a discard back when its flush has ended so, and asserts
 * otherwise as it destroys the worker. What was under way goes on: a card may write the result of a READ until the
 * interface is closed, so who wants his memory back before that flushes first. */
void uct_ha_end_let_go(struct uct_ha_flow *flow);

#endif
