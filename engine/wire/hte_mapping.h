/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_MAPPING_H_
#define HTE_MAPPING_H_

/* Makes UCX know a region: on every rail, or on none. */

#include "hte_rail.h"
#include "local/hte_region.h"

int  hte_region_map(struct hte_rails *rails, struct hte_region *region);
void hte_region_unmap(struct hte_rails *rails, struct hte_region *region);

#endif
