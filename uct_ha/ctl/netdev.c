/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/netdev.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
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

/* ---- which address ---- */

static int is_rail_address(const struct in_addr *ip, const struct ha_rail_addr *rails, unsigned num)
{
    for (unsigned i = 0; i < num; i++) {
        if (rails[i].gid[10] == 0xff && rails[i].gid[11] == 0xff && memcmp(&rails[i].gid[12], ip, 4) == 0) {
            return 1;
        }
    }
    return 0;
}

/* 0 = cannot be used. A device of its own is better than a rail, and a rail better than
 * one that leads no further than this host, which serves tests, like loopback. */
static int rank(const struct ifaddrs *ifa, const char *wanted, const struct ha_rail_addr *rails, unsigned num)
{
    const struct sockaddr_in *sin = (const void *)ifa->ifa_addr;

    if (sin == NULL || sin->sin_family != AF_INET || !(ifa->ifa_flags & IFF_UP)) {
        return 0;
    }
    if (wanted[0] != '\0') {
        return strcmp(ifa->ifa_name, wanted) == 0;
    }
    if (ifa->ifa_flags & IFF_LOOPBACK) {
        return 1;
    }
    if (is_rail_address(&sin->sin_addr, rails, num)) {
        return 3;
    }
    return uct_ha_netdev_is_internal("/sys/class/net", ifa->ifa_name) ? 2 : 4;
}

int uct_ha_netdev_choose(const char *wanted, const struct ha_rail_addr *rails, unsigned num, struct sockaddr_in *best)
{
    struct ifaddrs *list, *ifa;
    int             best_rank = 0, r;

    if (getifaddrs(&list) != 0) {
        return -errno;
    }
    for (ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
        r = rank(ifa, wanted, rails, num);
        if (r > best_rank) {
            best_rank = r;
            memcpy(best, ifa->ifa_addr, sizeof(*best));
        }
    }
    freeifaddrs(list);
    return best_rank == 0 ? -ENODEV : 0;
}
