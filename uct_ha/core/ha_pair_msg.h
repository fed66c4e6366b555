/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PAIR_MSG_H_
#define HA_PAIR_MSG_H_

#include "ha_state.h"

/* The own snapshot. */
void ha_pair_snapshot(const struct ha_pair *pair, struct ha_record *record);

#endif
