/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_TOPOLOGY_H_
#define HTE_TOPOLOGY_H_

/* Which rails are near which memory: a list of locations, each with masks of preferred and of other usable rails. */

#include <stddef.h>
#include <stdint.h>

#include "hte_device.h"
#include "hte_settings.h"

#define HTE_LOCATIONS_MAX 256

struct hte_location {
    char     name[64]; /* "cpu:0", "cuda:1" */
    uint32_t preferred, available;
};

struct hte_topology {
    struct hte_location location[HTE_LOCATIONS_MAX];
    unsigned            count;
    uint32_t            all; /* every rail: for memory of no location */
};

/* From the file that the settings name, or sysfs. */
int hte_topology_init(struct hte_topology *topology, const struct hte_devices *devices,
                      const struct hte_settings *settings);
/* Rails for memory of this location; "*" or one that is not listed: no preference. */
void hte_topology_masks(const struct hte_topology *topology, const char *location, uint32_t *preferred,
                        uint32_t *available);
/* "cpu:N" of the page at addr into location (room for `size`); "*" when the system does not tell. */
void hte_location_find(const void *addr, char *location, size_t size);
/* Checks a location that a user wrote: syntax, and that its NUMA node exists. */
int hte_location_check(const char *location);
/* As option topology_file takes it; the caller's, free(3); NULL: no memory. */
char *hte_topology_text(const struct hte_topology *topology, const struct hte_devices *devices);

#endif
