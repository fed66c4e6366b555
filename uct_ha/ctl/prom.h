/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PROM_H_
#define UCT_HA_PROM_H_

/*
 * The statistics file of the process (UCX_HA_RC_STATS_FILE): every counter, its rails and the paths to its peers,
 * in Prometheus' text format, for node_exporter and for ha_stat. Written anew by the asynchronous thread every
 * few seconds, under another name and then renamed, so that a reader sees a whole one; removed with the last
 * interface. The fast path knows nothing of it.
 */

#include "ctl/ctl.h"

/* From now on this interface is in the file. Neither is called under a lock. */
void uct_ha_prom_open(struct uct_ha_ctl *ctl);
void uct_ha_prom_close(struct uct_ha_ctl *ctl);

/* When it is to be written next, UINT64_MAX = never. Any thread. */
uint64_t uct_ha_prom_due(void);

/* Write it if it is due; under no lock. */
void uct_ha_prom_run(uint64_t now);

#endif
