/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PAIR_MSG_INTERNAL_H_
#define HA_PAIR_MSG_INTERNAL_H_

/* For ha_pair.c and ha_pair_rule.c alone. */

#include "ha_pair_msg.h"
#include "ha_state_internal.h"

/* What was visible before a call; compared with what is visible after it. */
struct ha_before {
    struct ha_record record;
    int              tx_slot, rx_slot;
};

/* Take the peer's snapshot in: maximum of everything. Returns 1 when the peer
 * is more than one generation ahead (nothing was merged then). */
int ha_pair_merge(struct ha_pair *pair, const struct ha_record *record);

/* 1 when the sender of `record` does not know our present state. */
int ha_pair_echo_behind(const struct ha_pair *pair, const struct ha_record *record);

void ha_pair_before(const struct ha_pair *pair, struct ha_before *before);

/* Compare with `before`: sends, tells about changed lanes, keeps `dirty`, the
 * deadline and the retransmission timer. `answer`: send even without a change. */
void ha_pair_after(struct ha_pair *pair, const struct ha_before *before, int answer, uint64_t now, struct ha_out *out);

/* HA_EV_HOLD. */
void ha_pair_hold(struct ha_pair *pair, int slot, uint64_t wait, uint64_t now);

/* HA_EV_TIMER: send again when it is time to. */
void ha_pair_retransmit(struct ha_pair *pair, uint64_t now, struct ha_out *out);

#endif
