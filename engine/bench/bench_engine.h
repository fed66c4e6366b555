/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_ENGINE_H_
#define BENCH_ENGINE_H_

#include "bench_types.h"

/* Initiator and target of the engine. */
struct hte_engine *initiator_open(const struct options *options, uint64_t threads, char **buffer);
void run_target(const struct options *options, int ready_fd, int stop_fd); /* -1: prints its name, until SIGINT */
/* What the process of --segment_id counts. */
void print_metrics(const struct options *options);

#endif
