/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "torture.h"

/*
 * What arrives over time, at the receiver: a row per interval (the columns of
 * ha_bw's CSV, so that the same program draws it), and a line of output for each
 * silence that is longer than asked.
 */

#define INTERVAL 0.02

static struct {
    FILE    *file;
    double   started, row_at, heard_at;
    uint64_t bytes, messages; /* of this row */
    int      heard;           /* since the last poll */
} series;

static double boottime(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void series_create(const struct torture *t)
{
    series.started = series.row_at = now_seconds();
    if (t->opt.series_file == NULL) {
        return;
    }
    series.file = fopen(t->opt.series_file, "w");
    if (series.file == NULL) {
        perror(t->opt.series_file);
        exit(EXIT_USAGE);
    }
    fprintf(series.file, "time_s,boottime_s,realtime_s,mb_s,messages\n");
}

void series_add(uint64_t bytes)
{
    series.bytes += bytes;
    series.messages++;
    series.heard = 1;
}

/* All rows that are over: several when this process stood still. */
static void rows(double now)
{
    double realtime = wall_seconds() - now, boot = boottime() - now;

    while (series.row_at + INTERVAL <= now) {
        fprintf(series.file, "%.3f,%.6f,%.6f,%.3f,%" PRIu64 "\n", series.row_at - series.started, series.row_at + boot,
                series.row_at + realtime, (double)series.bytes * 1e-6 / INTERVAL, series.messages);
        series.row_at += INTERVAL;
        series.bytes    = 0;
        series.messages = 0;
    }
}

void series_poll(const struct torture *t, double now)
{
    double gap;

    if (series.file != NULL) {
        rows(now);
    }
    if (series.heard) {
        gap = (now - series.heard_at) * 1000;
        if (t->opt.gap_ms > 0 && series.heard_at > 0 && gap > t->opt.gap_ms) {
            printf("%.6f gap %.3f\n", wall_seconds(), gap);
            fflush(stdout);
        }
        series.heard    = 0;
        series.heard_at = now;
    }
}

void series_destroy(void)
{
    if (series.file != NULL) {
        fclose(series.file);
    }
}
