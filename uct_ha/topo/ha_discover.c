/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_discover.h"
#include "ha_discover_hwloc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First word of a file, or 0. */
static int read_word(const char *path, char *word, size_t size)
{
    FILE *file = fopen(path, "re");
    int   got;

    if (file == NULL) {
        return 0;
    }
    got = fgets(word, (int)size, file) != NULL;
    fclose(file);
    if (got) {
        word[strcspn(word, " \t\n")] = '\0';
    }
    return got && word[0] != '\0';
}

/* First word of a file of the rail's port, or 0. */
static int read_port(const char *sysfs, const struct ha_topo_rail *rail, const char *file, char *word, size_t size)
{
    char path[PATH_MAX];
    int  device = (int)strcspn(rail->name, ":");

    snprintf(path, sizeof(path), "%s/class/infiniband/%.*s/ports/%s/%s", sysfs, device, rail->name,
             rail->name[device] == ':' ? rail->name + device + 1 : "1", file);
    return read_word(path, word, size);
}

static int netdev_of(const char *sysfs, const struct ha_topo_rail *rail, char *netdev, size_t size)
{
    return read_port(sysfs, rail, "gid_attrs/ndevs/0", netdev, size) && strchr(netdev, '/') == NULL;
}

/* The kernel counts since it started: net devices how often they got a carrier,
 * InfiniBand ports how often they lost their link. A port that never had a cable has
 * neither. */
static int had_link(const char *sysfs, const struct ha_topo_rail *rail)
{
    char path[PATH_MAX], netdev[64], word[24];

    if (read_port(sysfs, rail, "counters/link_downed", word, sizeof(word)) && atoi(word) > 0) {
        return 1;
    }
    if (!netdev_of(sysfs, rail, netdev, sizeof(netdev))) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/class/net/%s/carrier_up_count", sysfs, netdev);
    return read_word(path, word, sizeof(word)) && atoi(word) > 0;
}

/* Only hardware has `device`; a software rail (Soft-RoCE) is where its net device is. */
static int device_path(const char *sysfs, const struct ha_topo_rail *rail, char *path)
{
    char link[PATH_MAX], netdev[64];
    int  device = (int)strcspn(rail->name, ":");

    snprintf(link, sizeof(link), "%s/class/infiniband/%.*s/device", sysfs, device, rail->name);
    if (realpath(link, path) != NULL) {
        return 1;
    }
    if (!netdev_of(sysfs, rail, netdev, sizeof(netdev))) {
        return 0;
    }
    snprintf(link, sizeof(link), "%s/class/net/%s/device", sysfs, netdev);
    return realpath(link, path) != NULL;
}

/* Of the device or what it hangs on: a virtio device has none, its PCI function does. */
static int numa_node_above(char *path, size_t stop)
{
    char  file[PATH_MAX + 16], word[16];
    char *slash;

    while (strlen(path) > stop) {
        snprintf(file, sizeof(file), "%s/numa_node", path);
        if (read_word(file, word, sizeof(word))) {
            return atoi(word);
        }
        slash = strrchr(path, '/');
        if (slash == NULL) {
            break;
        }
        *slash = '\0';
    }
    return -1;
}

void ha_discover_sysfs(const char *sysfs, struct ha_topo_rail *rail)
{
    char               path[PATH_MAX];
    struct ha_topo_pci pci;
    int                node;

    rail->was_active = had_link(sysfs, rail);
    if (!device_path(sysfs, rail, path)) {
        return;
    }
    if (ha_topo_pci_parse(path, &pci) == 0) {
        rail->pci = pci;
    }
    node = numa_node_above(path, strlen(sysfs));
    if (node >= 0) {
        rail->numa_node = node;
    }
}

void ha_discover(struct ha_topo_rail *rails, int num)
{
    for (int i = 0; i < num; i++) {
        ha_discover_sysfs("/sys", &rails[i]);
    }
    if (num >= HA_DISCOVER_HWLOC_MIN) {
        (void)ha_discover_hwloc(rails, num); /* without it: what sysfs said */
    }
}
