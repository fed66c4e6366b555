/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MPI_H_
#define BENCH_MPI_H_

/* What the MPI programs of bench/ share: one clear line per error, waiting with a
 * limit, the transport's totals, the result as JSON. */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "bench_options.h"

#define BENCH_HA_TOTALS 6 /* see bench_ha_names */

struct bench_mpi {
    const char          *program;
    struct bench_options options;
    int                  rank;
};

/* Called while waiting; `context` as given to bench_wait(). */
typedef void (*bench_tick_fn)(void *context, int64_t now_ns);

/* MPI_Init, command line, exactly two ranks. Ends the process with status 2 and
 * one line from rank 0 when the command line is wrong, 0 after --help. */
void bench_start(struct bench_mpi *bench, enum bench_program program, int argc, char **argv);

/* One line "program: rank N: ..." on stderr, then the job ends with status 1. */
_Noreturn void bench_fail(const struct bench_mpi *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fail with MPI's own text unless rc is MPI_SUCCESS. */
void bench_check(const struct bench_mpi *bench, int rc, const char *call);

/* Wait for one request. status may be NULL, tick may be NULL; with neither tick
 * nor --stall this is MPI_Wait. */
void bench_wait(const struct bench_mpi *bench, MPI_Request *request, MPI_Status *status, bench_tick_fn tick,
                void *context);

/* Memory aligned to a page, or fail. */
void *bench_alloc(const struct bench_mpi *bench, size_t size);

/* Totals of libuct_ha in this process, by the MPI_T variables hook_ha_*. False:
 * there are none. */
bool bench_ha_totals(uint64_t totals[BENCH_HA_TOTALS]);

/* JSON members `"ha":[{...},{...}]` or `"ha":null`, of both ranks. */
void bench_ha_json(FILE *out, const uint64_t *totals, const bool *present);

/* Collective: rank 0 receives both ranks' totals into totals[2][..], present[2]. */
void bench_ha_gather(const struct bench_mpi *bench, uint64_t *totals, bool *present);

/* Rank 0: print the line, and write it to --json FILE when there is one. */
void bench_json_emit(const struct bench_mpi *bench, const char *line);

#endif
