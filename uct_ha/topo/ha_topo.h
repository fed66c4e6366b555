/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TOPO_H_
#define HA_TOPO_H_

/*
 * Where the rails of a host are: a small description, and how near two of them
 * are to each other. Pure: no device, file, clock, allocation or log; hwloc and
 * sysfs are read elsewhere (ha_discover.h). Functions here may be called from
 * any thread and never fail unless they say so.
 */

#include "verbs/ha_rail.h"

#include <stddef.h>
#include <stdint.h>

#define HA_TOPO_BRIDGES_MAX 16
#define HA_TOPO_PCI_NONE    UINT64_MAX

/* A PCI function: domain << 16 | bus << 8 | device << 3 | function. The bridges
 * above it are written the same way, from the host bridge downwards. */
struct ha_topo_pci {
    uint64_t address;     /* HA_TOPO_PCI_NONE = not known */
    uint64_t host_bridge; /* domain << 8 | its first bus */
    unsigned num_bridges;
    uint64_t bridge[HA_TOPO_BRIDGES_MAX];
};

struct ha_topo_rail {
    char               name[HA_RAIL_NAME_MAX]; /* "device:port" */
    enum ha_link_layer link_layer;             /* HA_LINK_NONE: cannot be used, nor be a standby */
    int                active;                 /* the port was ACTIVE when looked at */
    int                was_active;             /* it is known to have had a link since the host booted */
    uint64_t           node_guid;              /* of the device, 0 = unknown */
    uint64_t           image_guid;             /* of the card (system image), 0 = unknown */
    int                numa_node;              /* -1 = unknown */
    int                package;                /* processor socket, -1 = unknown */
    struct ha_topo_pci pci;
};

/* How near two rails are; a lower value is nearer. */
enum ha_topo_near {
    HA_TOPO_SAME_CARD,
    HA_TOPO_SAME_SWITCH, /* a PCI bridge above both */
    HA_TOPO_SAME_HOST_BRIDGE,
    HA_TOPO_SAME_NODE,    /* NUMA; an unknown node counts as the same */
    HA_TOPO_SAME_PACKAGE, /* other NUMA node of one socket */
    HA_TOPO_FAR,
};

/* A description of which nothing but the name is known. A name that is too long
 * is cut. */
void ha_topo_rail_init(struct ha_topo_rail *rail, const char *name);

/* Read a PCI function and the bridges above it out of a resolved sysfs path,
 * /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/...: what follows the last
 * PCI component is ignored. Returns 0, or -ENOENT when the path has none (then
 * *pci says "not known"). Of more than HA_TOPO_BRIDGES_MAX bridges the lowest
 * are left out. */
int ha_topo_pci_parse(const char *path, struct ha_topo_pci *pci);

/* One card: one device, one system image, one PCI device. Loss of the card is
 * loss of both. */
int ha_topo_same_card(const struct ha_topo_rail *a, const struct ha_topo_rail *b);

/* PCI bridges above both: the more, the nearer. 0 when nothing is known. */
unsigned ha_topo_common_bridges(const struct ha_topo_rail *a, const struct ha_topo_rail *b);

enum ha_topo_near ha_topo_near(const struct ha_topo_rail *a, const struct ha_topo_rail *b);

/* "same NUMA node 0"; what is not known is said so. Writes at most size bytes,
 * the end of a string included, and returns buf. */
const char *ha_topo_near_text(const struct ha_topo_rail *a, const struct ha_topo_rail *b, char *buf, size_t size);

#endif
