/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strverscmp */
#endif

#include "ha_discover_hwloc.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This machine, looked at once; failure is remembered too. */
static pthread_once_t   here_once = PTHREAD_ONCE_INIT;
static hwloc_topology_t here;

/* Only what is between the root and the I/O devices is of interest, and of the I/O
 * devices only those that sysfs knows: the blacklisted plugins would initialise a
 * GPU runtime or connect to an X server inside the user's program. */
static int configure(hwloc_topology_t topology)
{
    static const char *const plugins[] = {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl"};

    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++) {
        (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugins[i]);
    }
    if (hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) != 0 ||
        hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
        hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) != 0 ||
        hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0) {
        return -1;
    }
    return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
}

static void load_here(void)
{
    if (hwloc_topology_init(&here) != 0) {
        here = NULL;
        return;
    }
    if (configure(here) != 0 || hwloc_topology_load(here) != 0) {
        hwloc_topology_destroy(here);
        here = NULL;
    }
}

/* ---- one device ------------------------------------------------------------------- */

static uint64_t pci_address(const struct hwloc_pcidev_attr_s *pci)
{
    return (uint64_t)pci->domain << 16 | (uint64_t)pci->bus << 8 | (uint64_t)pci->dev << 3 | pci->func;
}

/* hwloc goes upwards, the description downwards. */
static void reverse(struct ha_topo_pci *pci)
{
    for (unsigned i = 0; i < pci->num_bridges / 2; i++) {
        uint64_t swap = pci->bridge[i];

        pci->bridge[i]                        = pci->bridge[pci->num_bridges - 1 - i];
        pci->bridge[pci->num_bridges - 1 - i] = swap;
    }
}

static void take_pci(hwloc_obj_t device, struct ha_topo_pci *pci)
{
    memset(pci, 0, sizeof(*pci));
    pci->address = HA_TOPO_PCI_NONE;
    for (hwloc_obj_t up = device->parent; up != NULL; up = up->parent) {
        if (up->type == HWLOC_OBJ_PCI_DEVICE && pci->address == HA_TOPO_PCI_NONE) {
            pci->address = pci_address(&up->attr->pcidev);
        } else if (up->type == HWLOC_OBJ_BRIDGE) {
            if (up->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
                pci->host_bridge = (uint64_t)up->attr->bridge.downstream.pci.domain << 8 |
                                   up->attr->bridge.downstream.pci.secondary_bus;
            } else if (pci->num_bridges < HA_TOPO_BRIDGES_MAX) {
                pci->bridge[pci->num_bridges++] = pci_address(&up->attr->bridge.upstream.pci);
            }
        }
    }
    reverse(pci);
}

/* The node is certain only when the device is near exactly one. */
static void take_place(hwloc_topology_t topology, hwloc_obj_t device, struct ha_topo_rail *rail)
{
    hwloc_obj_t up = hwloc_get_non_io_ancestor_obj(topology, device);

    if (up != NULL && up->nodeset != NULL && hwloc_bitmap_weight(up->nodeset) == 1) {
        rail->numa_node = hwloc_bitmap_first(up->nodeset);
    }
    for (; up != NULL; up = up->parent) {
        if (up->type == HWLOC_OBJ_PACKAGE) {
            rail->package = (int)up->os_index;
        }
    }
}

static void take(hwloc_topology_t topology, hwloc_obj_t device, struct ha_topo_rail *rail)
{
    struct ha_topo_pci pci;

    take_pci(device, &pci);
    if (pci.address == HA_TOPO_PCI_NONE) {
        return; /* not on PCI: hwloc hangs it under the root, which says nothing */
    }
    rail->pci = pci;
    take_place(topology, device, rail);
}

static int is_rdma(hwloc_obj_t device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS && device->name != NULL;
}

int ha_discover_hwloc(struct ha_topo_rail *rails, int num)
{
    hwloc_obj_t device = NULL;
    size_t      length;

    pthread_once(&here_once, load_here);
    if (here == NULL) {
        return -EIO;
    }
    while ((device = hwloc_get_next_osdev(here, device)) != NULL) {
        for (int i = 0; is_rdma(device) && i < num; i++) {
            length = strcspn(rails[i].name, ":");
            if (strlen(device->name) == length && memcmp(device->name, rails[i].name, length) == 0) {
                take(here, device, &rails[i]);
            }
        }
    }
    return 0;
}

/* ---- another machine -------------------------------------------------------------- */

/* "248a:0703:00b3:71c2" */
static uint64_t guid_info(hwloc_obj_t device, const char *name)
{
    const char *text = hwloc_obj_get_info_by_name(device, name);
    unsigned    part[4];

    if (text == NULL || sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4) {
        return 0;
    }
    return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 | part[3];
}

static long port_info(hwloc_obj_t device, int port, const char *what)
{
    char        name[32];
    const char *text;

    snprintf(name, sizeof(name), "Port%d%s", port, what);
    text = hwloc_obj_get_info_by_name(device, name);
    return text == NULL ? -1 : strtol(text, NULL, 0);
}

/* hwloc tells state and LID of each port; only InfiniBand has LIDs. A port that was down
 * has none either: then it is taken for Ethernet, as RoCE is by far the more frequent. */
static int take_ports(hwloc_topology_t topology, hwloc_obj_t device, struct ha_topo_rail *rails, int max)
{
    char name[HA_RAIL_NAME_MAX];
    int  count = 0;
    long state;

    for (int port = 1; (state = port_info(device, port, "State")) >= 0 && count < max; port++) {
        if (snprintf(name, sizeof(name), "%s:%d", device->name, port) >= (int)sizeof(name)) {
            continue;
        }
        ha_topo_rail_init(&rails[count], name);
        rails[count].active     = state == 4;
        rails[count].link_layer = port_info(device, port, "LID") > 0 ? HA_LINK_IB : HA_LINK_ETHERNET;
        rails[count].node_guid  = guid_info(device, "NodeGUID");
        rails[count].image_guid = guid_info(device, "SysImageGUID");
        take(topology, device, &rails[count]);
        count++;
    }
    return count;
}

/* The device list of verbs is in this order too: mlx5_2 before mlx5_10. */
static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct ha_topo_rail *)a)->name, ((const struct ha_topo_rail *)b)->name);
}

int ha_discover_xml(const char *path, struct ha_topo_rail *rails, int max)
{
    hwloc_topology_t topology;
    hwloc_obj_t      device = NULL;
    int              count  = 0;

    if (access(path, R_OK) != 0) {
        return -ENOENT;
    }
    if (hwloc_topology_init(&topology) != 0) {
        return -ENOMEM;
    }
    if (configure(topology) != 0 || hwloc_topology_set_xml(topology, path) != 0 || hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return -EINVAL;
    }
    while ((device = hwloc_get_next_osdev(topology, device)) != NULL) {
        count += is_rdma(device) ? take_ports(topology, device, rails + count, max - count) : 0;
    }
    hwloc_topology_destroy(topology);
    qsort(rails, (size_t)count, sizeof(*rails), by_name);
    return count;
}
