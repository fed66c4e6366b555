/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_METRICS_H_
#define HTE_METRICS_H_

struct hte_engine;

/* Option metrics_file; the engine has its name by then. */
int hte_metrics_start(struct hte_engine *engine);

#endif
