/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_BENCH_H_
#define HTE_BENCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/include/hte.h"

#define SWEEP_MAX   32
#define OPTIONS_MAX 32
#define ROUNDS_MAX  99
#define ENGINE_THREADS_MAX 64 /* of the engine's option */

enum operation { OPERATION_READ, OPERATION_WRITE, OPERATION_MIX };
enum mode { MODE_SELF, MODE_INITIATOR, MODE_TARGET };

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
    uint64_t          depth;       /* batches under way per thread */
    double            duration;    /* seconds per point */
    uint64_t          engine_threads; /* 0: as threads, as far as the engine has so many */
    uint64_t          rounds;      /* with the baseline */
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
    double   seconds; /* timed; with `check` without what prepares and compares */
    uint64_t bytes, blocks, batches, slices, failed; /* failed: requests */
    double   cpu_seconds; /* of the initiator's process */
    double   ratio, ratio_min, ratio_max; /* to plain UCX; of the median, worst and best round */
    double   avg_us, p50_us, p99_us, p999_us, max_us; /* of batches, submit to complete */
    bool     is_verified;
};

void options_parse(struct options *options, int argc, char **argv);
uint64_t parse_number(const char *name, const char *text, uint64_t min, uint64_t max);
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);
void must(int error, const char *what);

double now_seconds(void);
double cpu_seconds(void);

/* Initiator and target of the engine. */
void run_target(const struct options *options, int ready_fd, int stop_fd); /* -1: prints its name, until SIGINT */
struct hte_engine *initiator_open(const struct options *options, uint64_t threads, char **buffer);
/* `remote`: base of the target's buffer. Without `check` it also moves a sample there and back, and compares. */
void run_point(const struct options *options, struct hte_engine *engine, char *buffer, hte_segment_t segment,
               uint64_t remote, const struct point *point, struct result *result);

/* Bytes that follow from the seed; all of them different; whether all are there. Any length and alignment. */
void pattern_fill(char *bytes, uint64_t length, uint64_t seed);
void pattern_spoil(char *bytes, uint64_t length, uint64_t seed);
bool pattern_is(const char *bytes, uint64_t length, uint64_t seed);

/* Plain ucp_put_nbx() / ucp_get_nbx() of blocks of the same size, as many bytes under way as the engine's window allows. */
void run_plain_target(const struct options *options, uint64_t threads, int out_fd, int in_fd);
void run_plain(const struct options *options, const struct point *point, int in_fd, int out_fd,
               struct result *result);

/* The value of an option of the engine, as it will be: --set, environment, default. */
const char *engine_text(const struct options *options, const char *key);
uint64_t engine_number(const struct options *options, const char *key);

/* Percentiles of n samples, in place. */
void result_set_latency(struct result *result, float *samples_us, size_t count);
void flush_output(void);
void report_header(const struct options *options);
void report_point(const struct options *options, const struct point *point, const struct result *result,
                  const struct result *plain);
void report_json(const struct options *options, const struct point *point, const struct result *result,
                 const struct result *plain, bool is_verified);

#endif
