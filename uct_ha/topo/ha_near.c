/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "ha_near.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_line(const char *sysfs, int node, const char *name, char *line, size_t size)
{
    char  path[PATH_MAX];
    FILE *file;
    int   got;

    snprintf(path, sizeof(path), "%s/devices/system/node/node%d/%s", sysfs, node, name);
    file = node < 0 ? NULL : fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return got;
}

/* "0-7,16-23" */
int ha_near_of_node(const char *sysfs, int node, struct ha_near_cpus *cpus)
{
    char  line[1024];
    char *list = line;
    int   first, last, used, count = 0;

    memset(cpus, 0, sizeof(*cpus));
    if (!read_line(sysfs, node, "cpulist", line, sizeof(line))) {
        return 0;
    }
    while (sscanf(list, "%d%n", &first, &used) == 1) {
        list += used;
        last = first;
        if (sscanf(list, "-%d%n", &last, &used) == 1) {
            list += used;
        }
        for (int cpu = first; cpu >= 0 && cpu <= last && cpu < HA_NEAR_CPUS; cpu++) {
            cpus->word[cpu / 64] |= UINT64_C(1) << cpu % 64;
            count++;
        }
        if (*list++ != ',') {
            break;
        }
    }
    return count;
}

int ha_near_of_thread(struct ha_near_cpus *cpus)
{
    cpu_set_t set;

    memset(cpus, 0, sizeof(*cpus));
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return -errno;
    }
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && cpu < HA_NEAR_CPUS; cpu++) {
        cpus->word[cpu / 64] |= (uint64_t)(CPU_ISSET(cpu, &set) != 0) << cpu % 64;
    }
    return 0;
}

static int meet(const struct ha_near_cpus *a, const struct ha_near_cpus *b)
{
    for (unsigned i = 0; i < HA_NEAR_CPUS / 64; i++) {
        if (a->word[i] & b->word[i]) {
            return 1;
        }
    }
    return 0;
}

int ha_near_distance(const char *sysfs, int node, const struct ha_near_cpus *from)
{
    char                line[1024];
    char               *next = line, *end;
    int                 best = INT_MAX;
    struct ha_near_cpus cpus;

    if (!read_line(sysfs, node, "distance", line, sizeof(line))) {
        return HA_NEAR_LOCAL;
    }
    for (int other = 0;; other++, next = end) { /* "10 21": to node 0, 1, ... */
        int distance = (int)strtol(next, &end, 10);

        if (end == next) {
            break;
        }
        if (distance < best && distance >= HA_NEAR_LOCAL && ha_near_of_node(sysfs, other, &cpus) > 0 &&
            meet(&cpus, from)) {
            best = distance;
        }
    }
    return best == INT_MAX ? HA_NEAR_LOCAL : best;
}
