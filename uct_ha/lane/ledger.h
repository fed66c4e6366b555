/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_LEDGER_H_
#define UCT_HA_LEDGER_H_

/*
 * Proof by ledger. Behind each operation that changes our memory without a
 * receive the peer writes a mark, its number, into a word of ours: a lane
 * executes in order, so the last mark found stands for all before it. The word
 * of a slot is kept over generations and begins each with the number that the
 * peer begins with; the generation is part of it.
 */

#include "lane/road.h"

#define UCT_HA_LEDGER_MARK 8u /* bytes, sent inline */

/* A word of ours on a rail: registers memory, on a job thread. 0 or a negative errno value. */
int uct_ha_ledger_init(struct uct_ha_ledger *ledger, struct ha_rail *rail);

/* ... and its end, on a job thread. */
void uct_ha_ledger_end(struct uct_ha_ledger *ledger);

/* Nobody needs it any more: the rail's job thread takes the registration back. */
void uct_ha_ledger_leave(struct uct_ha_ledger *ledger, struct uct_ha_lanes *lanes, int slot);

/* Before the lane can receive: the peer's first number is known now. */
void uct_ha_ledger_begin(struct uct_ha_lane *lane, uint32_t number);

/* The lane is fenced: the number behind the last mark. 0, or -EPROTO when the
 * word is not one of this lane. */
int uct_ha_ledger_read(const struct uct_ha_lane *lane, uint32_t *number);

/* Post the mark of the operation just posted; its completion stands for both.
 * `number`: the one behind the operation. 0 or a negative errno value. */
int uct_ha_ledger_mark(struct uct_ha_lane *lane, uint64_t wr_id, uint32_t number);

#endif
