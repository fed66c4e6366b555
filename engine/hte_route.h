/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ROUTE_H_
#define HTE_ROUTE_H_

/* From which device a slice goes, and to which of the peer's: core/hte_pick.h with what a thread knows at the moment. */

#include "hte_worker.h"

unsigned hte_route_rail(struct hte_worker *worker, const struct hte_slice *slice);
/* The same rail of the peer; another one when all of ours failed with it. */
unsigned hte_route_remote(const struct hte_worker *worker, const struct hte_slice *slice, unsigned rail);

#endif
