/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SERIES_H_
#define BENCH_SERIES_H_

/*
 * Throughput over time as a CSV file: one row per interval, also for those in
 * which nothing arrived, written as soon as the interval is over. Also keeps
 * the longest time without a message, which an interval would hide.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bench_series {
    FILE    *file; /* NULL: only the gap is kept */
    int64_t  interval_ns;
    int64_t  start_ns;           /* CLOCK_BOOTTIME, as all times here */
    int64_t  realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_BOOTTIME at the start */
    int64_t  row_ns;             /* start of the interval being filled */
    uint64_t row_bytes;
    uint64_t row_messages;
    int64_t  last_ns;    /* latest message */
    int64_t  gap_ns;     /* longest time between two messages */
    int64_t  gap_end_ns; /* and when it ended, since start_ns */
};

/* CLOCK_BOOTTIME in ns: never set back, runs on through suspend. */
int64_t bench_clock_ns(void);

/* Open `path` (NULL: none) and start the clock. False: errno is set. */
bool bench_series_open(struct bench_series *series, const char *path, int interval_ms);

/* A message of so many bytes is complete. / Time passes. */
void bench_series_add(struct bench_series *series, int64_t now_ns, size_t bytes);
void bench_series_tick(struct bench_series *series, int64_t now_ns);

/* Write the last, shorter interval, which ends with the latest message, and close:
 * what comes after the traffic is not an outage. False: a write failed. */
bool bench_series_close(struct bench_series *series);

#endif
