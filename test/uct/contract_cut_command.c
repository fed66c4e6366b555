/* SPDX-License-Identifier: BSD-3-Clause */

/* Whatever hardware there is. With --cut and --repair commands cut a rail of it; the library counts. */

#include "contract_cut.h"

#include "contract.h"
#include "uct_ha.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    int (*get)(struct uct_ha_stats *stats, size_t size);
    struct uct_ha_stats before;
    int                 rail;
} cut;

void hardware_begin(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "uct_ha_stats_get");

    *(void **)&cut.get = symbol;
    if (settings.cut != NULL && (cut.get == NULL || settings.repair == NULL)) {
        fprintf(stderr, "--cut needs --repair, and libuct_ha.so.0 in LD_PRELOAD\n");
        exit(2);
    }
}

int hardware_end(void)
{
    return 0;
}

int cut_available(void)
{
    return settings.cut != NULL && !settings.calm;
}

static struct uct_ha_stats stats(void)
{
    struct uct_ha_stats now;

    (void)cut.get(&now, sizeof(now));
    return now;
}

static void run(const char *format)
{
    const char *hole = NULL;
    char        command[512];

    for (const char *c = format; *c != '\0' && hole == NULL; c++) {
        hole = c[0] == '%' && c[1] == 'd' ? c : NULL;
    }
    if (hole == NULL) {
        snprintf(command, sizeof(command), "%s", format);
    } else {
        snprintf(command, sizeof(command), "%.*s%d%s", (int)(hole - format), format, cut.rail, hole + 2);
    }
    (void)expect(system(command) == 0, "'%s' failed", command);
}

static void wait_standby(void)
{
    struct patience wait = patience("a standby");

    while (stats().standbys < stats().pairs || stats().pairs == 0) {
        progress_wait(&wait);
    }
}

void cut_arm(void)
{
    wait_standby();
    cut.before = stats();
}

void cut_strike(void)
{
    run(settings.cut);
}

void cut_moved(void)
{
    struct patience wait = patience("the endpoints to move");

    while (stats().failovers < cut.before.failovers + 2) { /* both sides are in this process */
        progress_wait(&wait);
    }
}

void cut_over(void)
{
    cut_moved();
    (void)expect(stats().replayed + stats().retired > cut.before.replayed + cut.before.retired,
                 "the cut met no work under way");
}

void cut_repair(void)
{
    run(settings.repair);
    cut.rail = !cut.rail;
    wait_standby();
}
