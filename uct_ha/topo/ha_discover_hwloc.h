/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_DISCOVER_HWLOC_H_
#define HA_DISCOVER_HWLOC_H_

/* What hwloc knows of where rails are. Defined with hwloc, and without it (ha_discover_nohwloc.c). */

#include "ha_topo.h"

/* The hwloc part alone. Returns 0, or a negative errno value when hwloc is not
 * built in (-ENOSYS) or cannot look at this machine; the rails are untouched then.
 * Rails that hwloc does not know are left as they are. */
int ha_discover_hwloc(struct ha_topo_rail *rails, int num);

/* Rails of another machine, from what `lstopo --of xml` wrote there, in the order
 * of their names: every InfiniBand or RoCE port. Returns how many (at most max), or
 * -ENOSYS without hwloc, -ENOENT when the file is not there, -EINVAL when it is no
 * hwloc topology. */
int ha_discover_xml(const char *path, struct ha_topo_rail *rails, int max);

#endif
