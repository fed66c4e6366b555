/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PLAIN_H_
#define BENCH_PLAIN_H_

#include "bench_types.h"

/* Plain ucp_put_nbx() / ucp_get_nbx() of blocks of the same size, as many under way as the engine is given, and
 * its window allows. */
void run_plain_target(const struct options *options, uint64_t threads, int out_fd, int in_fd);
void run_plain(const struct options *options, const struct point *point, int in_fd, int out_fd, struct result *result);

#endif
