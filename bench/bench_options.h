/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OPTIONS_H_
#define BENCH_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum bench_program { BENCH_BW, BENCH_LAT };

struct bench_options {
    size_t      size_min; /* bytes; sizes double from min to max */
    size_t      size_max;
    int         window;      /* messages in flight; 1 for latency */
    int64_t     iters;       /* windows (or round trips) per size; 0: by size, as osu_bw does */
    double      seconds;     /* measured time per size; 0: count iterations instead */
    double      stall;       /* give up after so long without a message, s; 0: never */
    int         interval_ms; /* of the time series */
    const char *csv;         /* time series file, or NULL */
    const char *json;        /* result file, or NULL; the last line of stdout has it anyway */
    uint64_t    seed;
    bool        verify;
    bool        bidir;
    bool        help;
};

/* Fill *options from the command line. False: `message` says what is wrong with
 * which value and how to write it. */
bool bench_options_parse(enum bench_program program, int argc, char **argv, struct bench_options *options,
                         char *message, size_t message_size);

void bench_options_usage(enum bench_program program, FILE *out);

#endif
