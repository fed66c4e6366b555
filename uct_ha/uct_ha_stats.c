/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_stats.h"

#include <errno.h>
#include <string.h>

#include "uct_ha_watch.h"

struct uct_ha_stats uct_ha_stats_total;

__attribute__((visibility("default")))
int uct_ha_stats_get(struct uct_ha_stats *stats, size_t size)
{
    struct uct_ha_stats now;
    const uint64_t     *from = (const uint64_t *)&uct_ha_stats_total;
    uint64_t           *to   = (uint64_t *)&now;
    unsigned            up, down;

    if (stats == NULL) {
        return -EINVAL;
    }
    for (size_t i = 0; i < sizeof(now) / sizeof(*to); i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
    uct_ha_watch_count(&up, &down);
    now.rails_up   = up;
    now.rails_down = down;
    memset(stats, 0, size);
    memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
    return 0;
}
