/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_ROUTE_H_
#define HTE_ROUTE_H_

/* From which device a slice goes, and to which of the peer's: core/hte_pick.h with what a thread knows at the moment.
 * */

#include <stdint.h>

#include "core/hte_pick.h"
#include "hte_target.h"
#include "wire/hte_lane.h"

struct hte_router {
    enum hte_policy policy;
    uint32_t        turn, random;
};

void hte_router_init(struct hte_router *router, enum hte_policy policy, unsigned index);
/* Of several. */
unsigned hte_route_pick(struct hte_router *router, struct hte_lane *lane, const struct hte_slice *slice);
/* The same rail of the peer; another one when all of ours failed with it. */
unsigned hte_route_remote(const struct hte_lane *lane, const struct hte_slice *slice, unsigned rail);

static inline unsigned hte_route_rail(struct hte_router *router, struct hte_lane *lane, const struct hte_slice *slice)
{
    return lane->n_rails == 1 ? 0 : hte_route_pick(router, lane, slice);
}

#endif
