/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PATTERN_H_
#define BENCH_PATTERN_H_

#include <stdbool.h>
#include <stdint.h>

/* Bytes that follow from the seed; all of them different; whether all are there. Any length and alignment. */
void pattern_fill(char *bytes, uint64_t length, uint64_t seed);
void pattern_spoil(char *bytes, uint64_t length, uint64_t seed);
bool pattern_is(const char *bytes, uint64_t length, uint64_t seed);

#endif
