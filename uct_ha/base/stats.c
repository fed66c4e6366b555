/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stats.h"

#include "uct_ha_counters.h"

#include <stddef.h>

struct uct_ha_stats uct_ha_stats_total;

/* The table of counters has every field, in its place. */
struct of_table {
#define FIELD(_field, _kind, _len, _name, _help) uint64_t _field[_len];
    UCT_HA_COUNTERS(FIELD)
#undef FIELD
};

#define FITS(_field, _kind, _len, _name, _help)                                                          \
    _Static_assert(offsetof(struct of_table, _field) == offsetof(struct uct_ha_stats, _field), #_field); \
    _Static_assert(sizeof(uct_ha_stats_total._field) == (_len) * sizeof(uint64_t), #_field);
UCT_HA_COUNTERS(FITS)
_Static_assert(sizeof(struct of_table) == sizeof(struct uct_ha_stats), "a counter is not in the table");
