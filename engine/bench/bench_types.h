/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TYPES_H_
#define BENCH_TYPES_H_

/* What is asked for, and what comes out. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/include/hte.h"

#define SWEEP_MAX          32
#define OPTIONS_MAX        32
#define ROUNDS_MAX         99
#define ENGINE_THREADS_MAX 64 /* of the engine's option */

/* Beside the baseline each side goes over its buffers once, in large pieces, before its time begins: else it would find
 * its own bytes in the processor's caches, and they would have driven out the other's. For at most so long, as a slow
 * network takes minutes for large buffers. */
#define GO_OVER_BYTES   (1ull << 20)
#define GO_OVER_SECONDS 2.0

enum operation { OPERATION_READ, OPERATION_WRITE, OPERATION_MIX };
enum mode { MODE_SELF, MODE_INITIATOR, MODE_TARGET, MODE_METRICS };

struct sweep {
    uint64_t values[SWEEP_MAX];
    unsigned count;
};

struct options {
    enum mode         mode;
    enum operation    operation;
    const char       *metadata, *name, *bind_host, *segment;
    uint64_t          buffer_size; /* per side; 0 while it is not given */
    struct sweep      block, batch, threads;
    uint64_t          depth;          /* batches under way per thread */
    double            duration;       /* seconds per point */
    uint64_t          engine_threads; /* 0: as threads, as far as the engine has so many */
    uint64_t          rounds;         /* with the baseline */
    const char       *unit;
    uint64_t          precision;
    bool              check, baseline, json, csv, quiet;
    struct hte_option engine[OPTIONS_MAX]; /* --set KEY=VALUE and what follows from others */
    unsigned          n_engine;
};

/* One point of the sweep. */
struct point {
    uint64_t block, batch, threads;
};

struct result {
    double   seconds;                                 /* timed; with `check` without what prepares and compares */
    uint64_t bytes, blocks, batches, slices, failed;  /* failed: requests */
    double   cpu_seconds;                             /* of the initiator's process */
    double   ratio, ratio_min, ratio_max;             /* to plain UCX; of the median, worst and best round */
    double   avg_us, p50_us, p99_us, p999_us, max_us; /* of batches, submit to complete */
    bool     is_verified;
};

#endif
