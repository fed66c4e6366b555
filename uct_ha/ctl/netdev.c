/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/netdev.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int has(const char *sysfs, const char *name, const char *what)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s/%s", sysfs, name, what);
    return access(path, F_OK) == 0;
}

/* A port that is a card, or a bond or VLAN, which stand on cards. */
static int leads_out(const char *sysfs, const char *port)
{
    return has(sysfs, port, "device") || has(sysfs, port, "bonding") || strchr(port, '.') != NULL;
}

static int bridge_leads_out(const char *sysfs, const char *name)
{
    struct dirent *entry;
    char           path[512];
    int            out = 0;
    DIR           *ports;

    (void)snprintf(path, sizeof(path), "%s/%s/brif", sysfs, name);
    ports = opendir(path);
    while (ports != NULL && !out && (entry = readdir(ports)) != NULL) {
        out = entry->d_name[0] != '.' && leads_out(sysfs, entry->d_name);
    }
    if (ports != NULL) {
        (void)closedir(ports);
    }
    return out;
}

int uct_ha_netdev_is_internal(const char *sysfs, const char *name)
{
    if (has(sysfs, name, "bridge")) {
        return !bridge_leads_out(sysfs, name);
    }
    return has(sysfs, name, "tun_flags") || strncmp(name, "veth", 4) == 0;
}
