/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PROGRESS_H_
#define BENCH_PROGRESS_H_

#include "bench_types.h"

/* What a point is doing, for who looks at a terminal. */
struct progress {
    const struct options   *options;
    struct hte_engine      *engine;
    hte_segment_t           segment;
    const _Atomic uint64_t *bytes; /* moved since begin */
    double                  begin, end;
};

/* One line, again and again until the end; none with --quiet, or where standard error is no terminal. */
void show_progress(const struct progress *progress);

#endif
