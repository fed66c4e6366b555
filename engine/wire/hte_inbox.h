/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_INBOX_H_
#define HTE_INBOX_H_

/* Letters that come in: to the side that they are for. */

#include "hte_lane.h"

/* From now on the lane's UCP workers take them. */
int hte_inbox_open(struct hte_lane *lane);

#endif
