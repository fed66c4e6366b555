/* SPDX-License-Identifier: BSD-3-Clause */

/* topology_table FILE.xml...: the standbys of machines described by hwloc, as the
 * tables of docs/topology.md. Status 77 = hwloc is not built in. */

#include "topo/ha_discover_hwloc.h"
#include "topo/ha_topo_pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(const struct ha_topo_rail *rails, int i)
{
    return i < 0 ? "none" : rails[i].name;
}

static int print_machine(const char *path)
{
    struct ha_topo_rail   rails[HA_RAILS_MAX];
    struct ha_topo_choice choices[HA_RAILS_MAX];
    char                  reason[256];
    int                   num = ha_discover_xml(path, rails, HA_RAILS_MAX);

    if (num < 0) {
        fprintf(stderr, "topology_table: %s: %s\n", path, strerror(-num));
        return num == -ENOSYS ? 77 : 2;
    }
    ha_topo_pair(rails, num, choices);
    printf("| rail | standby | because |\n|---|---|---|\n");
    for (int i = 0; i < num; i++) {
        printf("| `%s` | `%s` | %s |\n", rails[i].name, name_of(rails, choices[i].standby),
               ha_topo_reason(rails, choices, i, reason, sizeof(reason)));
    }
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;

    for (int i = 1; i < argc && status == 0; i++) {
        status = print_machine(argv[i]);
    }
    return status;
}
