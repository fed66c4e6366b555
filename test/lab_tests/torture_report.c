/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"
#include "uct_ha/uct_ha.h"

/* What the transport did meanwhile, and what the caller is told about it. */

#define FILE_INTERVAL 0.05
#define LINE_SIZE     384

typedef int (*stats_get_t)(struct uct_ha_stats *stats, size_t size);

struct torture_report {
    stats_get_t         stats_get;
    struct uct_ha_stats stats;
    int                 file;
    int                 moved; /* since the last look */
    double              started, moved_at, filed_at, shown_at;
    uint64_t            outstanding; /* at the last look */
    uint64_t            shown_ops;
    double              max_stall_ms;
    struct cut          cuts[MAX_CUTS];
    unsigned            cut_count;
};

void report_create(struct torture *t)
{
    struct torture_report *report = calloc(1, sizeof(*report));
    void                  *library;

    if (report == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    report->stats_get = (stats_get_t)dlsym(RTLD_DEFAULT, "uct_ha_stats_get");
    if (report->stats_get == NULL) {
        library = dlopen("libuct_ha.so.0", RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) {
            report->stats_get = (stats_get_t)dlsym(library, "uct_ha_stats_get");
        }
    }
    report->file = -1;
    if (t->opt.progress_file != NULL) {
        report->file = open(t->opt.progress_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (report->file < 0) {
            perror(t->opt.progress_file);
            exit(EXIT_USAGE);
        }
    }
    report->started = report->moved_at = report->shown_at = now_seconds();
    t->report                                             = report;
}

void report_progress(struct torture *t)
{
    t->report->moved = 1;
}

double report_stalled(struct torture *t)
{
    return now_seconds() - t->report->moved_at;
}

uint64_t report_failovers(struct torture *t)
{
    return t->report == NULL ? 0 : t->report->stats.failovers;
}

void totals_add(const struct torture *first, struct totals *sum)
{
    *sum = (struct totals){0};
    for_each_ep(t, (struct torture *)first)
    {
        for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
            sum->sent[kind] += t->total.sent[kind];
            sum->done[kind] += t->total.done[kind];
            sum->acked[kind] += t->total.acked[kind];
            sum->received[kind] += t->total.received[kind];
        }
        sum->lost += t->total.lost;
        sum->duplicate += t->total.duplicate;
        sum->reordered += t->total.reordered;
        sum->corrupt += t->total.corrupt;
        sum->stale_write += t->total.stale_write;
        sum->errors += t->total.errors;
    }
}

/* Proven good, in either direction. */
static uint64_t operations(const struct torture *t)
{
    struct totals total;
    uint64_t      sum = 0;

    totals_add(t, &total);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        sum += total.received[kind] + total.acked[kind];
    }
    return sum + total.done[KIND_GET] + total.done[KIND_AMO];
}

static uint64_t outstanding_all(const struct torture *first)
{
    uint64_t sum = 0;

    for_each_ep(t, (struct torture *)first)
    {
        sum += outstanding(t);
    }
    return sum;
}

/* One line of fixed length, overwritten in place. */
static void write_file(struct torture *t)
{
    struct torture_report *report = t->report;
    struct held_counts     held;
    char                   line[LINE_SIZE + 1];
    int                    used;

    held_count(&held);
    used = snprintf(line, sizeof(line),
                    "time=%.3f running=%d outstanding=%" PRIu64 " operations=%" PRIu64 " failovers=%" PRIu64
                    " replayed=%" PRIu64 " retired=%" PRIu64 " rails_up=%" PRIu64 " pairs=%" PRIu64 " standbys=%" PRIu64
                    " cold=%" PRIu64 " stalled_ms=%.0f fds=%u connections=%u rss_kib=%u heap_kib=%u ahs=%d",
                    wall_seconds(), t->run->running, outstanding_all(t), operations(t), report->stats.failovers,
                    report->stats.replayed, report->stats.retired, report->stats.rails_up, report->stats.pairs,
                    report->stats.standbys, report->stats.cold, report_stalled(t) * 1000, held.fds, held.connections,
                    held.rss_kib, held.heap_kib, held.ahs);
    memset(line + used, ' ', LINE_SIZE - (size_t)used);
    line[LINE_SIZE - 1] = '\n';
    if (pwrite(report->file, line, LINE_SIZE, 0) != LINE_SIZE) {
        perror(t->opt.progress_file);
    }
}

static void show_line(struct torture *t, double now)
{
    struct torture_report *report = t->report;
    uint64_t               ops    = operations(t);
    struct totals          total;

    totals_add(t, &total);
    printf("%.3f %5.1f s: %6.0f operations/s, %" PRIu64 " outstanding, tag %" PRIu64 " am %" PRIu64 " put %" PRIu64
           " get %" PRIu64 " atomic %" PRIu64 ", failovers %" PRIu64 "\n",
           wall_seconds(), now - report->started, (double)(ops - report->shown_ops) / (now - report->shown_at),
           outstanding_all(t), total.received[KIND_TAG], total.received[KIND_AM], total.received[KIND_PUT],
           total.done[KIND_GET], total.done[KIND_AMO], report->stats.failovers);
    fflush(stdout);
    report->shown_ops = ops;
    report->shown_at  = now;
}

static void note_failover(struct torture *t, const struct uct_ha_stats *before)
{
    struct torture_report *report = t->report;
    struct cut            *cut    = &report->cuts[report->cut_count % MAX_CUTS];

    report->cut_count++;
    cut->when        = wall_seconds();
    cut->failovers   = report->stats.failovers;
    cut->outstanding = report->outstanding;
    cut->stall_ms    = report_stalled(t) * 1000;
    printf("%.3f failover %" PRIu64 ": %" PRIu64 " outstanding, %" PRIu64 " replayed, %" PRIu64
           " retired, outage %.1f ms, silent for %.1f ms\n",
           cut->when, cut->failovers, cut->outstanding, report->stats.replayed - before->replayed,
           report->stats.retired - before->retired, (double)report->stats.outage_ns_last * 1e-6, cut->stall_ms);
    fflush(stdout);
}

static void note_stall(struct torture_report *report, double stall_ms)
{
    struct cut *cut;

    if (stall_ms > report->max_stall_ms) {
        report->max_stall_ms = stall_ms;
    }
    if (report->cut_count > 0) {
        cut = &report->cuts[(report->cut_count - 1) % MAX_CUTS];
        if (stall_ms > cut->stall_ms) {
            cut->stall_ms = stall_ms;
        }
    }
}

void report_poll(struct torture *t)
{
    struct torture_report *report = t->report;
    struct uct_ha_stats    before = report->stats;
    double                 now    = now_seconds();

    if (report->stats_get != NULL) {
        report->stats_get(&report->stats, sizeof(report->stats));
    }
    if (report->stats.failovers != before.failovers) {
        note_failover(t, &before);
    }
    if (report->moved) {
        if (report->outstanding != 0) {
            note_stall(report, (now - report->moved_at) * 1000);
        }
        report->moved    = 0;
        report->moved_at = now;
    }
    report->outstanding = outstanding_all(t);
    series_poll(t, now);
    if (report->file >= 0 && now - report->filed_at > FILE_INTERVAL) {
        report->filed_at = now;
        write_file(t);
    }
    if (now - report->shown_at >= 1 && !t->opt.quiet) {
        show_line(t, now);
    }
}

static void print_cuts(const struct torture_report *report)
{
    unsigned count = report->cut_count < MAX_CUTS ? report->cut_count : MAX_CUTS;

    printf(",\"cuts\":[");
    for (unsigned i = 0; i < count; i++) {
        const struct cut *cut = &report->cuts[i];

        printf("%s{\"time\":%.3f,\"failovers\":%" PRIu64 ",\"outstanding\":%" PRIu64 ",\"stall_ms\":%.1f}",
               i ? "," : "", cut->when, cut->failovers, cut->outstanding, cut->stall_ms);
    }
    printf("]");
}

static uint64_t least_in_flight(const struct torture_report *report)
{
    unsigned count = report->cut_count < MAX_CUTS ? report->cut_count : MAX_CUTS;
    uint64_t least = count ? UINT64_MAX : 0;

    for (unsigned i = 0; i < count; i++) {
        if (report->cuts[i].outstanding < least) {
            least = report->cuts[i].outstanding;
        }
    }
    return least;
}

/* The last line of the output: everything, as one JSON object. */
void report_final(struct torture *t, int ok)
{
    struct torture_report *report = t->report;
    struct totals          sum, *total = &sum;

    totals_add(t, &sum);
    report_poll(t);
    if (report->file >= 0) {
        write_file(t);
    }
    printf("{\"ok\":%s,\"seed\":%" PRIu64 ",\"seconds\":%.1f,\"tag\":%" PRIu64 ",\"am\":%" PRIu64 ",\"put\":%" PRIu64
           ",\"get\":%" PRIu64 ",\"atomic\":%" PRIu64,
           ok ? "true" : "false", t->opt.plan.seed, now_seconds() - report->started, total->received[KIND_TAG],
           total->received[KIND_AM], total->received[KIND_PUT], total->done[KIND_GET], total->done[KIND_AMO]);
    printf(",\"lost\":%" PRIu64 ",\"duplicate\":%" PRIu64 ",\"reordered\":%" PRIu64 ",\"corrupt\":%" PRIu64
           ",\"stale_write\":%" PRIu64 ",\"errors\":%" PRIu64,
           total->lost, total->duplicate, total->reordered, total->corrupt, total->stale_write, total->errors);
    printf(",\"ep_error\":\"%s\",\"failovers\":%" PRIu64 ",\"replayed\":%" PRIu64 ",\"retired\":%" PRIu64
           ",\"false_alarms\":%" PRIu64,
           t->run->ep_status == UCS_OK ? "" : ucs_status_string(t->run->ep_status), report->stats.failovers,
           report->stats.replayed, report->stats.retired, report->stats.false_alarms);
    printf(",\"max_stall_ms\":%.1f,\"busy_ms\":%.0f,\"inflight_at_cut\":%" PRIu64 ",\"outstanding\":%" PRIu64,
           report->max_stall_ms, t->run->busy * 1000, least_in_flight(report), outstanding_all(t));
    print_cuts(report);
    printf("}\n");
    fflush(stdout);
}

void report_destroy(struct torture *t)
{
    if (t->report->file >= 0) {
        close(t->report->file);
    }
    free(t->report);
    t->report = NULL;
}
