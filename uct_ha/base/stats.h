/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_STATS_H_
#define UCT_HA_STATS_H_

/* The process-wide counters behind uct_ha_stats_get(). Rare events only: the
 * fast path counts nothing here. Any thread. */

#include "uct_ha.h"

extern struct uct_ha_stats uct_ha_stats_total;

#define UCT_HA_STATS_ADD(_field, _n) \
    ((void)__atomic_fetch_add(&uct_ha_stats_total._field, (uint64_t)(_n), __ATOMIC_RELAXED))

#define UCT_HA_STATS_SET(_field, _v) __atomic_store_n(&uct_ha_stats_total._field, (uint64_t)(_v), __ATOMIC_RELAXED)

#endif
