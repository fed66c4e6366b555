/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FAILOVER_H_
#define UCT_HA_FAILOVER_H_

/*
 * Carries out what the failover core decides: its actions become queue pair
 * commands, log operations and packets, their results become events again.
 */

#include "uct/iface.h"

/* Ask the core again which lanes send and deliver; progress, locked. */
void uct_ha_failover_refresh_locked(struct uct_ha_conn *conn);

/* Work goes on after an outage: count it and write the one log line. */
void uct_ha_failover_finish(struct uct_ha_conn *conn);

/* The connection ends: it is no longer counted in the statistics. */
void uct_ha_failover_forget_locked(struct uct_ha_conn *conn);

/* No job of this interface runs or waits any more. The lock is not held. */
void uct_ha_failover_cancel_jobs(struct uct_ha_iface *iface);

#endif
