/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/totals.h"

#include "base/stats.h"
#include "ctl/watch.h"

#include <errno.h>
#include <string.h>
#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

__attribute__((visibility("default"))) int uct_ha_stats_get(struct uct_ha_stats *stats, size_t size)
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

/* ---- for ucx_vfs ----------------------------------------------------------------- */

#define COUNTER(_name)                               \
    {                                                \
#_name, offsetof(struct uct_ha_stats, _name) \
    }

static const struct {
    const char *name;
    size_t      offset;
} counters[] = {
    COUNTER(failovers),        COUNTER(failbacks),       COUNTER(replayed),          COUNTER(retired),
    COUNTER(in_doubt),         COUNTER(false_alarms),    COUNTER(ep_errors),         COUNTER(outage_ns_total),
    COUNTER(outage_ns_last),   COUNTER(rails_up),        COUNTER(rails_down),        COUNTER(pairs),
    COUNTER(standbys),         COUNTER(paced),           COUNTER(heartbeats_missed), COUNTER(ctl_tx),
    COUNTER(ctl_rx),           COUNTER(ctl_dropped),     COUNTER(ctl_malformed),     COUNTER(ctl_stray),
    COUNTER(ctl_unfit),        COUNTER(ctl_stale),       COUNTER(connects),          COUNTER(accepts),
    COUNTER(connect_failures), COUNTER(accept_failures),
};

static void show(void *obj, ucs_string_buffer_t *text, void *arg, uint64_t offset)
{
    struct uct_ha_stats stats;

    (void)obj;
    (void)arg;
    (void)uct_ha_stats_get(&stats, sizeof(stats));
    ucs_string_buffer_appendf(text, "%lu\n", *(const unsigned long *)(const void *)((const char *)&stats + offset));
}

void uct_ha_totals_vfs(void *obj)
{
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        (void)ucs_vfs_obj_add_ro_file(obj, show, NULL, counters[i].offset, "ha_process/%s", counters[i].name);
    }
}
