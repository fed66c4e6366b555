/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OPTIONS_H_
#define BENCH_OPTIONS_H_

#include "bench_types.h"

void     options_parse(struct options *options, int argc, char **argv);
uint64_t option_number(const char *name, const char *text, uint64_t min, uint64_t max);

/* The value of an option of the engine, as it will be: --set, environment, default. */
const char *engine_text(const struct options *options, const char *key);
uint64_t    engine_number(const struct options *options, const char *key);

#endif
