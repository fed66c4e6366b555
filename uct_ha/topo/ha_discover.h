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

#endif
