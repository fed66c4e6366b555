/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_STATS_H_
#define HTE_STATS_H_

/* What hte_counters() and hte_nic_load() tell, for those who are inside already. */

#include "hte_engine.h"

/* All but the size. */
void hte_stats_count(struct hte_engine *engine, struct hte_counters *counters);
void hte_stats_load(struct hte_engine *engine, unsigned rail, struct hte_nic_load *load);

#endif
