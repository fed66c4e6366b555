/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_REPORT_H_
#define BENCH_REPORT_H_

#include "bench_types.h"

/* Percentiles of n samples, in place. */
void result_set_latency(struct result *result, float *samples_us, size_t count);
void report_header(const struct options *options);
void report_point(const struct options *options, const struct point *point, const struct result *result,
                  const struct result *plain);
void report_json(const struct options *options, const struct point *point, const struct result *result,
                 const struct result *plain, bool is_verified);

#endif
