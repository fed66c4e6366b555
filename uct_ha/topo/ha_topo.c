/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_topo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void ha_topo_rail_init(struct ha_topo_rail *rail, const char *name)
{
    memset(rail, 0, sizeof(*rail));
    snprintf(rail->name, sizeof(rail->name), "%s", name);
    rail->numa_node   = -1;
    rail->package     = -1;
    rail->pci.address = HA_TOPO_PCI_NONE;
}

/* ---- PCI paths -------------------------------------------------------------------- */

/* One component of a path that is a PCI function, "0000:3b:00.1". */
static int parse_function(const char *text, size_t length, uint64_t *address)
{
    unsigned domain, bus, device, function;
    char     copy[24];
    int      used = 0;

    if (length >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (sscanf(copy, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 || (size_t)used != length ||
        device > 31 || function > 7) {
        return 0;
    }
    *address = (uint64_t)domain << 16 | bus << 8 | device << 3 | function;
    return 1;
}

/* What came before was a bridge above the one found now. */
static void descend(struct ha_topo_pci *pci, uint64_t address)
{
    if (pci->address != HA_TOPO_PCI_NONE && pci->num_bridges < HA_TOPO_BRIDGES_MAX) {
        pci->bridge[pci->num_bridges++] = pci->address;
    }
    pci->address = address;
}

int ha_topo_pci_parse(const char *path, struct ha_topo_pci *pci)
{
    unsigned domain, bus;
    uint64_t address;
    size_t   length;

    memset(pci, 0, sizeof(*pci));
    pci->address = HA_TOPO_PCI_NONE;
    for (; *path != '\0'; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        if (parse_function(path, length, &address)) {
            descend(pci, address);
        } else if (pci->address == HA_TOPO_PCI_NONE && sscanf(path, "pci%8x:%2x", &domain, &bus) == 2) {
            pci->host_bridge = (uint64_t)domain << 8 | bus;
        }
    }
    return pci->address == HA_TOPO_PCI_NONE ? -ENOENT : 0;
}

/* ---- near and far ----------------------------------------------------------------- */

static int pci_known(const struct ha_topo_rail *a, const struct ha_topo_rail *b)
{
    return a->pci.address != HA_TOPO_PCI_NONE && b->pci.address != HA_TOPO_PCI_NONE;
}

static int same_device_name(const struct ha_topo_rail *a, const struct ha_topo_rail *b)
{
    size_t length = strcspn(a->name, ":");

    return length == strcspn(b->name, ":") && memcmp(a->name, b->name, length) == 0;
}

int ha_topo_same_card(const struct ha_topo_rail *a, const struct ha_topo_rail *b)
{
    if (same_device_name(a, b) || (a->node_guid != 0 && a->node_guid == b->node_guid)) {
        return 1;
    }
    if (a->image_guid != 0 && b->image_guid != 0) {
        return a->image_guid == b->image_guid;
    }
    return pci_known(a, b) && a->pci.address >> 3 == b->pci.address >> 3;
}

unsigned ha_topo_common_bridges(const struct ha_topo_rail *a, const struct ha_topo_rail *b)
{
    unsigned count = 0;

    while (pci_known(a, b) && count < a->pci.num_bridges && count < b->pci.num_bridges &&
           a->pci.bridge[count] == b->pci.bridge[count]) {
        count++;
    }
    return count;
}

enum ha_topo_near ha_topo_near(const struct ha_topo_rail *a, const struct ha_topo_rail *b)
{
    if (ha_topo_same_card(a, b)) {
        return HA_TOPO_SAME_CARD;
    }
    if (ha_topo_common_bridges(a, b) > 0) {
        return HA_TOPO_SAME_SWITCH;
    }
    if (pci_known(a, b) && a->pci.host_bridge == b->pci.host_bridge) {
        return HA_TOPO_SAME_HOST_BRIDGE;
    }
    if (a->numa_node < 0 || b->numa_node < 0 || a->numa_node == b->numa_node) {
        return HA_TOPO_SAME_NODE;
    }
    return a->package >= 0 && a->package == b->package ? HA_TOPO_SAME_PACKAGE : HA_TOPO_FAR;
}

const char *ha_topo_near_text(const struct ha_topo_rail *a, const struct ha_topo_rail *b, char *buf, size_t size)
{
    switch (ha_topo_near(a, b)) {
    case HA_TOPO_SAME_CARD:
        snprintf(buf, size, "same card");
        break;
    case HA_TOPO_SAME_SWITCH:
        snprintf(buf, size, "same PCI switch");
        break;
    case HA_TOPO_SAME_HOST_BRIDGE:
        snprintf(buf, size, "same PCI host bridge");
        break;
    case HA_TOPO_SAME_NODE:
        if (a->numa_node < 0 || b->numa_node < 0) {
            snprintf(buf, size, "NUMA node unknown, taken as the same");
        } else {
            snprintf(buf, size, "same NUMA node %d", a->numa_node);
        }
        break;
    case HA_TOPO_SAME_PACKAGE:
        snprintf(buf, size, "same socket %d, NUMA nodes %d and %d", a->package, a->numa_node, b->numa_node);
        break;
    case HA_TOPO_FAR:
        snprintf(buf, size, "NUMA nodes %d and %d", a->numa_node, b->numa_node);
        break;
    }
    return buf;
}
