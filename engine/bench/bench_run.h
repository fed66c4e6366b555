/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RUN_H_
#define BENCH_RUN_H_

#include "bench_types.h"

/* `remote`: base of the target's buffer. Without `check` it also moves a sample there and back, and compares. */
void run_point(const struct options *options, struct hte_engine *engine, char *buffer, hte_segment_t segment,
               uint64_t remote, const struct point *point, struct result *result);

#endif
