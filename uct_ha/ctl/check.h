/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CHECK_H_
#define UCT_HA_CHECK_H_

/* What time alone tells of a connection: a stopped lane whose packet number stands still, and
 * work that does not move. The control lock is held. */

#include "pair/conn.h"

/* When a fenced lane is to be looked at, UINT64_MAX: not at all. `lane` may be NULL. */
uint64_t uct_ha_check_settle_due(const struct uct_ha_lane *lane);
void     uct_ha_check_settle_locked(struct uct_ha_lane *lane, uint64_t now);

/* The progress check. */
void uct_ha_check_rto_locked(struct uct_ha_conn *conn, uint64_t now);

#endif
