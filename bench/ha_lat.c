/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half round trip time between two MPI processes with the meaning of
 * osu_latency, with percentiles: a mean hides what an outage or a busy
 * machine does. --verify judges every message in both directions.
 */
#include "bench_mpi.h"
#include "bench_pattern.h"
#include "bench_series.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TAG_PING    100
#define TAG_STOP    101
#define SAMPLES_MAX ((size_t)1 << 20) /* later ones replace earlier ones at random places */

struct run {
    struct bench_mpi            bench;
    int                         peer;
    size_t                      size;
    unsigned char              *send_buffer, *receive_buffer;
    uint64_t                    send_next, send_seed;
    struct bench_pattern_stream stream;
    double                     *samples; /* half round trips in us */
    uint64_t                    random;
};

struct result {
    size_t   size;
    uint64_t trips;
    double   mean, min, p50, p99, max; /* us */
};

static int64_t trips_default(size_t size)
{
    return size > 8192 ? 1000 : 10000;
}
static int64_t trips_warmup(size_t size)
{
    return size > 8192 ? 10 : 200;
}

static void send_one(struct run *run, int tag)
{
    if (run->bench.options.verify) {
        bench_pattern_fill(run->send_buffer, run->size, run->send_seed, run->send_next++);
    }
    bench_check(&run->bench, MPI_Send(run->send_buffer, (int)run->size, MPI_BYTE, run->peer, tag, MPI_COMM_WORLD),
                "MPI_Send");
}

/* The tag of a ping says whether it is the last one. */
static int receive_one(struct run *run)
{
    MPI_Request request;
    MPI_Status  status = {.MPI_TAG = TAG_PING};

    bench_check(
        &run->bench,
        MPI_Irecv(run->receive_buffer, (int)run->size, MPI_BYTE, run->peer, MPI_ANY_TAG, MPI_COMM_WORLD, &request),
        "MPI_Irecv");
    bench_wait(&run->bench, &request, &status, NULL, NULL);
    if (run->bench.options.verify) {
        (void)bench_pattern_receive(&run->stream, run->receive_buffer, run->size);
        bench_pattern_poison(run->receive_buffer, run->size);
    }
    return status.MPI_TAG;
}

static void sample_keep(struct run *run, uint64_t index, double us)
{
    if (index >= SAMPLES_MAX) {
        run->random = run->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        index       = (run->random >> 33) % (index + 1);
    }
    if (index < SAMPLES_MAX) {
        run->samples[index] = us;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void percentiles(struct run *run, struct result *r)
{
    size_t count = r->trips < SAMPLES_MAX ? (size_t)r->trips : SAMPLES_MAX;

    qsort(run->samples, count, sizeof(*run->samples), compare);
    r->p50 = run->samples[count / 2];
    r->p99 = run->samples[count * 99 / 100];
}

static void ping(struct run *run, struct result *r)
{
    const struct bench_options *o        = &run->bench.options;
    int64_t                     wanted   = o->iters ? o->iters : trips_default(run->size);
    int64_t                     begin_ns = bench_clock_ns(), now_ns = begin_ns, last_ns;
    double                      total = 0;
    bool                        last  = false;

    r->min = 1e12;
    while (!last) {
        last    = o->seconds > 0 ? now_ns - begin_ns >= (int64_t)(o->seconds * 1e9) : (int64_t)r->trips + 1 >= wanted;
        last_ns = now_ns;
        send_one(run, last ? TAG_STOP : TAG_PING);
        (void)receive_one(run);
        now_ns = bench_clock_ns();

        double us = (double)(now_ns - last_ns) / 2e3;

        sample_keep(run, r->trips++, us);
        total += us;
        r->min = us < r->min ? us : r->min;
        r->max = us > r->max ? us : r->max;
    }
    r->mean = total / (double)r->trips;
    percentiles(run, r);
}

static void pong(struct run *run)
{
    int tag;

    do {
        tag = receive_one(run);
        send_one(run, TAG_PING);
    } while (tag != TAG_STOP);
}

static struct result size_run(struct run *run)
{
    struct result result = {.size = run->size};
    int64_t       i;

    bench_check(&run->bench, MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    for (i = 0; i < trips_warmup(run->size); i++) {
        if (run->bench.rank == 0) {
            send_one(run, TAG_PING);
            (void)receive_one(run);
        } else {
            (void)receive_one(run);
            send_one(run, TAG_PING);
        }
    }
    if (run->bench.rank == 0) {
        ping(run, &result);
    } else {
        pong(run);
    }
    return result;
}

static uint64_t errors_gather(struct run *run)
{
    uint64_t mine = bench_pattern_errors(&run->stream.counts), sum = 0;

    bench_check(&run->bench, MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD), "MPI_Reduce");
    return sum;
}

static void result_json(FILE *out, const struct result *r)
{
    (void)fprintf(out,
                  "\"size\":%zu,\"trips\":%" PRIu64 ",\"lat_us\":%.3f,\"min_us\":%.3f,"
                  "\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f",
                  r->size, r->trips, r->mean, r->min, r->p50, r->p99, r->max);
}

static int summary_print(struct run *run, const struct result *results, int count)
{
    uint64_t totals[2 * BENCH_HA_TOTALS] = {0}, errors = errors_gather(run);
    bool     present[2] = {false, false};
    char    *line       = NULL;
    size_t   length     = 0;
    FILE    *out;
    int      i;

    bench_ha_gather(&run->bench, totals, present);
    if (run->bench.rank != 0) {
        return 0;
    }
    out = open_memstream(&line, &length);
    if (!out) {
        bench_fail(&run->bench, "out of memory for the result");
    }
    (void)fprintf(out, "{\"program\":\"ha_lat\",\"verified\":%s,\"errors\":%" PRIu64 ",",
                  run->bench.options.verify && !errors ? "true" : "false", errors);
    result_json(out, &results[count - 1]);
    (void)fprintf(out, ",");
    bench_ha_json(out, totals, present);
    (void)fprintf(out, ",\"results\":[");
    for (i = 0; i < count; i++) {
        (void)fprintf(out, "%s{", i ? "," : "");
        result_json(out, &results[i]);
        (void)fprintf(out, "}");
    }
    (void)fprintf(out, "]}");
    (void)fclose(out);
    bench_json_emit(&run->bench, line);
    free(line);
    return errors ? 1 : 0;
}

static void run_open(struct run *run)
{
    const struct bench_options *o = &run->bench.options;

    run->peer           = 1 - run->bench.rank;
    run->send_seed      = o->seed * 2 + (uint64_t)run->bench.rank;
    run->stream.seed    = o->seed * 2 + (uint64_t)run->peer;
    run->send_buffer    = bench_alloc(&run->bench, o->size_max);
    run->receive_buffer = bench_alloc(&run->bench, o->size_max);
    run->samples        = bench_alloc(&run->bench, SAMPLES_MAX * sizeof(*run->samples));
}

int main(int argc, char **argv)
{
    struct run    run = {.random = 1};
    struct result results[8 * sizeof(size_t)];
    int           count = 0, status;

    bench_start(&run.bench, BENCH_LAT, argc, argv);
    run_open(&run);
    if (run.bench.rank == 0) {
        (void)printf("# ha_lat, half round trip in us%s\n# %10s %10s %10s %10s %10s %10s\n",
                     run.bench.options.verify ? ", verified" : "", "size", "mean", "min", "p50", "p99", "max");
    }
    for (run.size = run.bench.options.size_min; run.size <= run.bench.options.size_max; run.size *= 2) {
        struct result *r = &results[count++];

        *r = size_run(&run);
        if (run.bench.rank == 0) {
            (void)printf("  %10zu %10.2f %10.2f %10.2f %10.2f %10.2f\n", r->size, r->mean, r->min, r->p50, r->p99,
                         r->max);
            (void)fflush(stdout);
        }
    }
    status = summary_print(&run, results, count);
    free(run.send_buffer);
    free(run.receive_buffer);
    free(run.samples);
    (void)MPI_Finalize();
    return status;
}
