/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bandwidth between two MPI processes with the meaning of osu_bw: the sender
 * starts a window of non-blocking sends, the receiver acknowledges the window,
 * and so on; bandwidth is payload over the sender's time. On top of that:
 *
 *   - it may run for a time instead of a count: the receiver says in its
 *     acknowledgement whether another window follows, so no message is added;
 *   - --verify judges every byte, the order, losses, duplicates, and whether a
 *     buffer changes after its message has been consumed;
 *   - --csv keeps the throughput over time, as the receiver sees it.
 *
 * With --bidir both ranks send and receive; rank 1 still decides when it ends.
 */
#include "bench_mpi.h"
#include "bench_pattern.h"
#include "bench_series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TAG_DATA   100
#define TAG_ACK    101
#define TAG_REPORT 102
#define RANK_LAST  1 /* the rank whose acknowledgement carries the decision */

enum { CONTINUE = 1, STOP = 2 };

/* One rank's end of the run. The streams live across sizes. */
struct run {
    struct bench_mpi            bench;
    int                         peer;
    bool                        sends, receives;
    size_t                      size;
    unsigned char              *send_memory, *receive_memory;
    MPI_Request                *send_requests, *receive_requests;
    uint64_t                    send_seed, send_next;
    struct bench_pattern_stream stream;
    struct bench_series         series;
};

/* What rank 1 tells rank 0 about its receiving end. Plain 64-bit, both hosts
 * run the same program. */
struct report {
    uint64_t                    received; /* all messages, warm-up included */
    int64_t                     gap_ns, gap_end_ns;
    struct bench_pattern_counts counts;
};

struct result {
    size_t   size;
    uint64_t messages;
    double   seconds;
};

static int64_t windows_default(size_t size)
{
    return size > 8192 ? 20 : 100;
}
static int64_t windows_warmup(size_t size)
{
    return size > 8192 ? 2 : 10;
}

/* Without --verify all messages of a window share one buffer, as in osu_bw. */
static size_t slot_count(const struct run *run)
{
    return run->bench.options.verify ? (size_t)run->bench.options.window : 1;
}

static unsigned char *slot(const struct run *run, unsigned char *memory, int i)
{
    return memory + (run->bench.options.verify ? (size_t)i * run->size : 0);
}

static void tick(void *context, int64_t now_ns)
{
    bench_series_tick(context, now_ns);
}

static void wait_one(struct run *run, MPI_Request *request)
{
    bool live = run->receives && run->series.file;

    bench_wait(&run->bench, request, NULL, live ? tick : NULL, &run->series);
}

static void receives_post(struct run *run)
{
    const struct bench_options *o = &run->bench.options;
    int                         i;

    for (i = 0; i < o->window; i++) {
        unsigned char *buffer = slot(run, run->receive_memory, i);

        if (o->verify && !bench_pattern_is_poison(buffer, run->size)) {
            run->stream.counts.late_writes++;
            bench_pattern_poison(buffer, run->size);
        }
        bench_check(
            &run->bench,
            MPI_Irecv(buffer, (int)run->size, MPI_BYTE, run->peer, TAG_DATA, MPI_COMM_WORLD, &run->receive_requests[i]),
            "MPI_Irecv");
    }
}

static void sends_post(struct run *run)
{
    const struct bench_options *o = &run->bench.options;
    int                         i;

    for (i = 0; i < o->window; i++) {
        unsigned char *buffer = slot(run, run->send_memory, i);

        if (o->verify) {
            bench_pattern_fill(buffer, run->size, run->send_seed, run->send_next++);
        }
        bench_check(
            &run->bench,
            MPI_Isend(buffer, (int)run->size, MPI_BYTE, run->peer, TAG_DATA, MPI_COMM_WORLD, &run->send_requests[i]),
            "MPI_Isend");
    }
}

/* Messages of one stream match in order, so they are awaited and judged in
 * order, while later ones still arrive. */
static void receives_wait(struct run *run)
{
    const struct bench_options *o = &run->bench.options;
    int                         i;

    for (i = 0; i < o->window; i++) {
        wait_one(run, &run->receive_requests[i]);
        bench_series_add(&run->series, bench_clock_ns(), run->size);
        if (o->verify) {
            unsigned char *buffer = slot(run, run->receive_memory, i);

            (void)bench_pattern_receive(&run->stream, buffer, run->size);
            bench_pattern_poison(buffer, run->size);
        }
    }
}

static void sends_wait(struct run *run)
{
    int i;

    for (i = 0; i < run->bench.options.window; i++) {
        wait_one(run, &run->send_requests[i]);
    }
}

/* Rank 1 tells rank 0 what comes next; with --bidir rank 0 answers, so that each
 * side's window has been acknowledged. */
static int ack_exchange(struct run *run, int decision)
{
    MPI_Request request;
    int         turn, got = decision;

    for (turn = 0; turn < (run->bench.options.bidir ? 2 : 1); turn++) {
        bool sends = (run->bench.rank == RANK_LAST) == (turn == 0);

        bench_check(&run->bench,
                    sends ? MPI_Isend(&decision, 1, MPI_INT, run->peer, TAG_ACK, MPI_COMM_WORLD, &request)
                          : MPI_Irecv(&got, 1, MPI_INT, run->peer, TAG_ACK, MPI_COMM_WORLD, &request),
                    sends ? "MPI_Isend" : "MPI_Irecv");
        wait_one(run, &request);
        if (!sends && turn == 0) {
            decision = got;
        }
    }
    return decision;
}

static int decide(const struct run *run, int64_t windows, int64_t start_ns)
{
    const struct bench_options *o      = &run->bench.options;
    int64_t                     wanted = o->iters ? o->iters : windows_default(run->size);
    bool done = o->seconds > 0 ? bench_clock_ns() - start_ns >= (int64_t)(o->seconds * 1e9) : windows >= wanted;

    return done ? STOP : CONTINUE;
}

static int window_run(struct run *run, int64_t windows, int64_t start_ns)
{
    if (run->receives) {
        receives_post(run);
    }
    if (run->sends) {
        sends_post(run);
    }
    if (run->receives) {
        receives_wait(run);
    }
    if (run->sends) {
        sends_wait(run);
    }
    return ack_exchange(run, decide(run, windows, start_ns));
}

static struct result size_run(struct run *run)
{
    const struct bench_options *o      = &run->bench.options;
    struct result               result = {.size = run->size};
    int64_t                     windows, start_ns = 0;
    int                         next = CONTINUE;

    if (o->verify && run->receives) {
        bench_pattern_poison(run->receive_memory, slot_count(run) * run->size);
    }
    bench_check(&run->bench, MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    for (windows = 0; windows < windows_warmup(run->size); windows++) {
        (void)window_run(run, 0, 0);
    }
    start_ns = bench_clock_ns();
    for (windows = 0; next == CONTINUE; windows++) {
        next = window_run(run, windows + 1, start_ns);
    }
    result.seconds  = (double)(bench_clock_ns() - start_ns) / 1e9;
    result.messages = (uint64_t)windows * (uint64_t)o->window * (o->bidir ? 2 : 1);
    return result;
}

static double mb_per_s(const struct result *r)
{
    return (double)r->messages * (double)r->size / 1e6 / r->seconds;
}

static void run_open(struct run *run)
{
    const struct bench_options *o      = &run->bench.options;
    size_t                      window = (size_t)o->window;
    char                        path[4096];

    run->peer             = 1 - run->bench.rank;
    run->sends            = o->bidir || run->bench.rank == 0;
    run->receives         = o->bidir || run->bench.rank == 1;
    run->send_seed        = o->seed * 2 + (uint64_t)run->bench.rank;
    run->stream.seed      = o->seed * 2 + (uint64_t)run->peer;
    run->size             = o->size_max;
    run->send_memory      = bench_alloc(&run->bench, slot_count(run) * o->size_max);
    run->receive_memory   = bench_alloc(&run->bench, slot_count(run) * o->size_max);
    run->send_requests    = bench_alloc(&run->bench, window * sizeof(MPI_Request));
    run->receive_requests = bench_alloc(&run->bench, window * sizeof(MPI_Request));

    /* Two receivers cannot share one file: rank 0's gets its own name. */
    (void)snprintf(path, sizeof(path), "%s%s", o->csv ? o->csv : "", run->bench.rank == 0 ? ".rank0" : "");
    if (!bench_series_open(&run->series, o->csv && run->receives ? path : NULL, o->interval_ms)) {
        bench_fail(&run->bench, "--csv %s: %s", path, strerror(errno));
    }
}

static void run_close(struct run *run)
{
    if (!bench_series_close(&run->series)) {
        bench_fail(&run->bench, "--csv %s: %s", run->bench.options.csv, strerror(errno));
    }
    free(run->send_memory);
    free(run->receive_memory);
    free(run->send_requests);
    free(run->receive_requests);
}

/* Rank 0 collects both receiving ends into one: sums, and the longer gap. */
static struct report report_gather(struct run *run)
{
    struct report mine = {run->stream.next, run->series.gap_ns, run->series.gap_end_ns, run->stream.counts};
    struct report theirs;
    int           bytes = (int)sizeof(mine);

    if (run->bench.rank == 1) {
        bench_check(&run->bench, MPI_Send(&mine, bytes, MPI_BYTE, 0, TAG_REPORT, MPI_COMM_WORLD), "MPI_Send");
        return mine;
    }
    bench_check(&run->bench, MPI_Recv(&theirs, bytes, MPI_BYTE, 1, TAG_REPORT, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                "MPI_Recv");
    theirs.received += mine.received;
    if (mine.gap_ns > theirs.gap_ns) {
        theirs.gap_ns     = mine.gap_ns;
        theirs.gap_end_ns = mine.gap_end_ns;
    }
    theirs.counts.corrupt += mine.counts.corrupt;
    theirs.counts.duplicated += mine.counts.duplicated;
    theirs.counts.lost += mine.counts.lost;
    theirs.counts.reordered += mine.counts.reordered;
    theirs.counts.late_writes += mine.counts.late_writes;
    return theirs;
}

static void result_json(FILE *out, const struct result *r)
{
    (void)fprintf(out, "\"size\":%zu,\"messages\":%" PRIu64 ",\"seconds\":%.6f,\"bw_mbs\":%.3f", r->size, r->messages,
                  r->seconds, mb_per_s(r));
}

static void summary_json(FILE *out, const struct run *run, const struct result *results, int count,
                         const struct report *report, const uint64_t *totals, const bool *present)
{
    const struct bench_options *o      = &run->bench.options;
    uint64_t                    errors = bench_pattern_errors(&report->counts);
    int                         i;

    (void)fprintf(out, "{\"program\":\"ha_bw\",\"verified\":%s,", o->verify && errors == 0 ? "true" : "false");
    result_json(out, &results[count - 1]);
    (void)fprintf(out,
                  ",\"window\":%d,\"bidir\":%s,\"errors\":%" PRIu64 ",\"corrupt\":%" PRIu64 ",\"lost\":%" PRIu64
                  ",\"duplicated\":%" PRIu64 ",\"reordered\":%" PRIu64 ",\"late_writes\":%" PRIu64
                  ",\"checked\":%" PRIu64 ",\"longest_gap_ms\":%.3f,\"longest_gap_end_s\":%.3f,",
                  o->window, o->bidir ? "true" : "false", errors, report->counts.corrupt, report->counts.lost,
                  report->counts.duplicated, report->counts.reordered, report->counts.late_writes,
                  o->verify ? report->received : 0, (double)report->gap_ns / 1e6, (double)report->gap_end_ns / 1e9);
    bench_ha_json(out, totals, present);
    (void)fprintf(out, ",\"results\":[");
    for (i = 0; i < count; i++) {
        (void)fprintf(out, "%s{", i ? "," : "");
        result_json(out, &results[i]);
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "]}");
}

static int summary_print(struct run *run, const struct result *results, int count)
{
    uint64_t      totals[2 * BENCH_HA_TOTALS] = {0};
    bool          present[2]                  = {false, false};
    struct report report                      = report_gather(run);
    uint64_t      errors                      = bench_pattern_errors(&report.counts);
    char         *line                        = NULL;
    size_t        length                      = 0;
    FILE         *out;

    bench_ha_gather(&run->bench, totals, present);
    if (run->bench.rank != 0) {
        return 0;
    }
    if (errors) {
        (void)fprintf(stderr,
                      "ha_bw: data is wrong: %" PRIu64 " corrupt, %" PRIu64 " lost, %" PRIu64 " duplicated, %" PRIu64
                      " reordered, %" PRIu64 " late writes\n",
                      report.counts.corrupt, report.counts.lost, report.counts.duplicated, report.counts.reordered,
                      report.counts.late_writes);
    }
    out = open_memstream(&line, &length);
    if (!out) {
        bench_fail(&run->bench, "out of memory for the result");
    }
    summary_json(out, run, results, count, &report, totals, present);
    (void)fclose(out);
    bench_json_emit(&run->bench, line);
    free(line);
    return errors ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct run                  run = {.send_next = 0};
    struct result               results[8 * sizeof(size_t)];
    const struct bench_options *o     = &run.bench.options;
    int                         count = 0, status;

    bench_start(&run.bench, BENCH_BW, argc, argv);
    run_open(&run);
    if (run.bench.rank == 0) {
        (void)printf("# ha_bw%s, window %d%s\n# %10s %12s %12s %12s\n", o->bidir ? " --bidir" : "", o->window,
                     o->verify ? ", verified" : "", "size", "MB/s", "messages/s", "messages");
    }
    for (run.size = o->size_min; run.size <= o->size_max; run.size *= 2) {
        struct result *r = &results[count++];

        *r = size_run(&run);
        if (run.bench.rank == 0) {
            (void)printf("  %10zu %12.2f %12.0f %12" PRIu64 "\n", r->size, mb_per_s(r),
                         (double)r->messages / r->seconds, r->messages);
            (void)fflush(stdout);
        }
    }
    status = summary_print(&run, results, count);
    run_close(&run);
    (void)MPI_Finalize();
    return status;
}
