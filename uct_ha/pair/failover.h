/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_FAILOVER_H_
#define UCT_HA_FAILOVER_H_

/*
 * The one driver of the failover core: takes facts to it and carries out what it decides. Its
 * actions become queue pair commands, log operations and packets, their results become events
 * again.
 */

#include "core/ha_pair.h"

struct uct_ha_conn;
struct uct_ha_pairs;

/* Feed a fact to the core of a connection and carry out what follows. */
void uct_ha_failover_event_locked(struct uct_ha_conn *conn, const struct ha_event *event, enum ha_context ctx);

/* Only look whether something became possible. */
void uct_ha_failover_run_locked(struct uct_ha_conn *conn, enum ha_context ctx);

/* No job of this interface's connections runs or waits any more. The lock is not held. */
void uct_ha_failover_cancel_jobs(struct uct_ha_pairs *pairs);

#endif
