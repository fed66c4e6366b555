/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair/cold.h"

#include "pair/peer.h"

#define FOREVER_NS (1000ull * 86400 * 1000000000) /* the core adds it to the time, and takes it tenfold */

/* Work that shall go back to the preferred rail needs a lane there. */
uint64_t uct_ha_cold_hold(const struct uct_ha_conn *conn, int slot, uint64_t hold)
{
    return conn->cold && (slot != HA_PREFERRED_SLOT || conn->pair.cfg.failback == 0) ? FOREVER_NS : hold;
}

int uct_ha_cold_is_well(const struct uct_ha_conn *conn)
{
    int slot = ha_pair_tx_slot(&conn->pair);

    return conn->cold && slot != HA_NO_SLOT && uct_ha_peer_rail_usable(conn->peer, !slot);
}
