/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/totals.h"

#include "base/stats.h"
#include "ctl/watch.h"
#include "uct_ha_counters.h"

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

/* Histograms are many numbers and have no file. */
#define FILE_OF(_field)       {#_field, offsetof(struct uct_ha_stats, _field)},
#define FILE_TOTAL(_field)    FILE_OF(_field)
#define FILE_LEVEL(_field)    FILE_OF(_field)
#define FILE_TOTAL_NS(_field) FILE_OF(_field)
#define FILE_LEVEL_NS(_field) FILE_OF(_field)
#define FILE_HIST(_field)
#define COUNTER(_field, _kind, _len, _name, _help) FILE_##_kind(_field)

static const struct {
    const char *name;
    size_t      offset;
} counters[] = {UCT_HA_COUNTERS(COUNTER)};

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
