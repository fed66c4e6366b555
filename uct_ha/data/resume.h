/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RESUME_H_
#define UCT_HA_RESUME_H_

/* Flows that have something to send and could not. Progress, no lock. */

#include "data/flow.h"

/* As far as it goes: the credits and answers that are owed, then the operations that wait. */
void uct_ha_resume(struct uct_ha_flow *flow);

/* ... of all that wait. */
void uct_ha_resume_backlog(struct uct_ha_flows *flows);

#endif
