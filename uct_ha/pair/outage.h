/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_OUTAGE_H_
#define UCT_HA_OUTAGE_H_

/* How long a connection could not send: from the fence of its active lane to the work that
 * goes on. Counted, said in one log line, and judged: was there anything to flee from? */

#include <stdint.h>

struct uct_ha_conn;

/* The lane of this slot is fenced: if it was the active one, an outage begins. */
void uct_ha_outage_begin_locked(struct uct_ha_conn *conn, int slot, uint64_t now);

/* Progress sends on `tx_slot`, or nowhere. Without the lock. */
void uct_ha_outage_end(struct uct_ha_conn *conn, int tx_slot);

#endif
