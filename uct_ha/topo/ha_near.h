/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_NEAR_H_
#define HA_NEAR_H_

/* How far a process is from a device: NUMA nodes as sysfs describes them (`sysfs`: "/sys"). */

#include <stdint.h>

#define HA_NEAR_LOCAL 10 /* the distance of a node from itself */
#define HA_NEAR_CPUS  1024

struct ha_near_cpus {
    uint64_t word[HA_NEAR_CPUS / 64];
};

static inline int ha_near_has(const struct ha_near_cpus *cpus, unsigned cpu)
{
    return cpus->word[cpu / 64] >> cpu % 64 & 1;
}

/* CPUs of a node. Returns how many; 0: there is no such node, or sysfs does not say. */
int ha_near_of_node(const char *sysfs, int node, struct ha_near_cpus *cpus);

/* CPUs that the calling thread may use. 0, or a negative errno value. */
int ha_near_of_thread(struct ha_near_cpus *cpus);

/* Distance from `node` to the nearest of these CPUs; HA_NEAR_LOCAL when nobody knows. */
int ha_near_distance(const char *sysfs, int node, const struct ha_near_cpus *from);

#endif
