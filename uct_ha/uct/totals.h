/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TOTALS_H_
#define UCT_HA_TOTALS_H_

/* The counters of the process (uct_ha.h) for whoever asks: uct_ha_stats_get(), and files of UCX's
 * virtual file system. */

/* Show them as files of this object of UCX's. */
void uct_ha_totals_vfs(void *obj);

#endif
