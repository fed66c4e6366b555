/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_DISCOVER_H_
#define HA_DISCOVER_H_

/*
 * Finds out where rails are: PCI path, NUMA node, socket. sysfs first, hwloc
 * where it is built in and there is something to choose; what neither knows stays
 * unknown. Reads files and may take tens of milliseconds (hwloc): for set-up only.
 * Any thread; hwloc's view of this machine is read once per process and kept.
 */

#include "ha_topo.h"

/* Below this number of rails every standby is the only choice: hwloc is not asked. */
#define HA_DISCOVER_HWLOC_MIN 3

/* Fill pci, numa_node, package and was_active of rails[0..num-1] by their names. A NUMA node
 * that the caller knows already stays when nothing better is found. */
void ha_discover(struct ha_topo_rail *rails, int num);

/* The sysfs part alone, of a tree at `sysfs` ("/sys"). */
void ha_discover_sysfs(const char *sysfs, struct ha_topo_rail *rail);

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
