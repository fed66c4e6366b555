/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_series.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t bench_clock_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

bool bench_series_open(struct bench_series *series, const char *path, int interval_ms)
{
    memset(series, 0, sizeof(*series));
    if (path) {
        series->file = fopen(path, "w");
        if (!series->file) {
            return false;
        }
    }
    series->interval_ns        = interval_ms * NS_PER_MS;
    series->start_ns           = bench_clock_ns();
    series->realtime_offset_ns = clock_ns(CLOCK_REALTIME) - series->start_ns;
    series->row_ns             = series->start_ns;
    series->last_ns            = series->start_ns;
    if (series->file) {
        (void)fprintf(series->file, "time_s,boottime_s,realtime_s,mb_s,messages\n");
        (void)fflush(series->file);
    }
    return true;
}

static void row_write(struct bench_series *series, int64_t end_ns)
{
    double seconds = (double)(end_ns - series->row_ns) / NS_PER_S;
    double rate    = seconds > 0 ? (double)series->row_bytes / 1e6 / seconds : 0;

    if (series->file) {
        (void)fprintf(series->file, "%.3f,%.3f,%.3f,%.3f,%" PRIu64 "\n",
                      (double)(series->row_ns - series->start_ns) / NS_PER_S, (double)series->row_ns / NS_PER_S,
                      (double)(series->row_ns + series->realtime_offset_ns) / NS_PER_S, rate, series->row_messages);
        (void)fflush(series->file);
    }
    series->row_ns       = end_ns;
    series->row_bytes    = 0;
    series->row_messages = 0;
}

void bench_series_tick(struct bench_series *series, int64_t now_ns)
{
    while (now_ns - series->row_ns >= series->interval_ns) {
        row_write(series, series->row_ns + series->interval_ns);
    }
}

void bench_series_add(struct bench_series *series, int64_t now_ns, size_t bytes)
{
    if (now_ns - series->last_ns > series->gap_ns) {
        series->gap_ns     = now_ns - series->last_ns;
        series->gap_end_ns = now_ns - series->start_ns;
    }
    series->last_ns = now_ns;
    bench_series_tick(series, now_ns);
    series->row_bytes += bytes;
    series->row_messages++;
}

bool bench_series_close(struct bench_series *series)
{
    bool written = true;

    if (series->file) {
        if (series->last_ns > series->row_ns) {
            row_write(series, series->last_ns);
        }
        written      = !ferror(series->file);
        written      = fclose(series->file) == 0 && written;
        series->file = NULL;
    }
    return written;
}
