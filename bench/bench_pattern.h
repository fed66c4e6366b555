/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PATTERN_H_
#define BENCH_PATTERN_H_

/*
 * What a message holds and what is made of what arrives. No MPI in here.
 *
 * Every 8-byte word of message number n of a stream is mix(seed, n) + k * ODD,
 * k its place. So each byte depends on the message and on its place, and the
 * first word tells which message a foreign one is. Messages below 8 bytes
 * hold the start of that word: their content is checked, but one that is wrong
 * can only be called corrupt.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_PATTERN_MISSING_MAX 1024

struct bench_pattern_counts {
    uint64_t corrupt;     /* bytes that belong to no message near the expected one */
    uint64_t duplicated;  /* delivered a second time */
    uint64_t lost;        /* skipped and not seen since */
    uint64_t reordered;   /* skipped, then delivered late */
    uint64_t late_writes; /* buffer changed after its message had been consumed */
};

/* Receiving end of one stream of messages. */
struct bench_pattern_stream {
    uint64_t                    seed;
    uint64_t                    next; /* message expected next */
    uint64_t                    missing[BENCH_PATTERN_MISSING_MAX];
    unsigned                    missing_count;
    struct bench_pattern_counts counts;
};

void bench_pattern_fill(void *buffer, size_t size, uint64_t seed, uint64_t message);

/* Judge one arrived message and count it; true when it is the expected one. */
bool bench_pattern_receive(struct bench_pattern_stream *stream, const void *buffer, size_t size);

/* Mark a buffer as consumed, and later: is it still as it was marked? */
void bench_pattern_poison(void *buffer, size_t size);
bool bench_pattern_is_poison(const void *buffer, size_t size);

uint64_t bench_pattern_errors(const struct bench_pattern_counts *counts);

#endif
