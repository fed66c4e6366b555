/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_COLD_H_
#define UCT_HA_COLD_H_

/*
 * Cold connections. With a standby for each of two connections to a peer (pair/twins.h) there are four queue pairs, on
 * each side. Beyond UCX_HA_RC_STANDBYS connections such ones are cold: of the two lanes only the active one exists,
 * the other is built when it is needed.
 *
 *   cold ──┬─ the active lane is lost ──────────▶ a lane on the other rail is built, work goes on there; cold again
 *          ├─ the active lane is suspected ─────▶ the same; it is left once the other one works
 *          └─ the peer builds (it is not cold) ─▶ a standby as usual
 *
 * The core knows it as a hold that does not end (docs/failover.md, "hold"). Under the control lock.
 */

#include "pair/conn.h"

/* How long no lane is built in `slot` while the other one works, if its rail asks for `hold` ns; 0 = none. */
uint64_t uct_ha_cold_hold(const struct uct_ha_conn *conn, int slot, uint64_t hold);

/* Is all as it should be although it has no standby? */
int uct_ha_cold_is_well(const struct uct_ha_conn *conn);

#endif
