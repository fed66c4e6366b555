/* SPDX-License-Identifier: BSD-3-Clause */
/* The timed part: threads that keep `depth` batches each under way, and the comparison of bytes. */
#include "hte_bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES_MAX  (1u << 20)
#define VERIFY_BYTES (16ull << 20)

struct flight {
    hte_batch_t batch;
    double      begin;
    size_t      offset; /* of its first block in the thread's share */
    bool        is_out;
};

struct thread {
    pthread_t              id;
    const struct options  *options;
    const struct point    *point;
    struct hte_engine     *engine;
    hte_segment_t          segment;
    unsigned               index;
    char                  *local;
    uint64_t               remote, share; /* this thread's part of the buffers */
    struct hte_request    *requests;
    struct flight         *flights;
    float                 *samples;
    size_t                 n_samples, next;
    uint64_t               bytes, batches, failed;
    bool                   is_verified;
    double                 end, finished;
    _Atomic uint64_t      *progress;
};

static int opcode_of(const struct thread *t, uint64_t batch)
{
    if (t->options->operation == OPERATION_MIX) {
        return batch % 2 == 0 ? HTE_WRITE : HTE_READ;
    }
    return t->options->operation == OPERATION_READ ? HTE_READ : HTE_WRITE;
}

static void make_requests(struct thread *t, size_t offset, int opcode)
{
    uint64_t i, block = t->point->block;

    for (i = 0; i < t->point->batch; ++i) {
        t->requests[i] = (struct hte_request){
            .opcode = opcode, .target = t->segment, .local = t->local + offset + i * block,
            .target_offset = t->remote + offset + i * block, .length = block};
    }
}

static void launch(struct thread *t, struct flight *flight, uint64_t number)
{
    uint64_t length = t->point->batch * t->point->block;

    if (t->next + length > t->share) {
        t->next = 0;
    }
    flight->offset = t->next;
    t->next += length;
    make_requests(t, flight->offset, opcode_of(t, number));
    flight->begin = now_seconds();
    must(hte_batch_alloc(t->engine, t->point->batch, &flight->batch), "allocate a batch");
    must(hte_batch_submit(t->engine, flight->batch, t->requests, t->point->batch), "submit");
    flight->is_out = true;
}

static void count_failures(struct thread *t, const struct flight *flight)
{
    struct hte_status status;
    uint64_t i;

    for (i = 0; i < t->point->batch; ++i) {
        must(hte_request_status(t->engine, flight->batch, i, &status), "status");
        t->failed += status.code != HTE_COMPLETED;
    }
}

static void land(struct thread *t, struct flight *flight)
{
    struct hte_batch_status status;

    must(hte_batch_wait(t->engine, flight->batch, -1, &status), "wait");
    if (t->n_samples < SAMPLES_MAX) {
        t->samples[t->n_samples++] = (float)((now_seconds() - flight->begin) * 1e6);
    }
    if (status.code != HTE_COMPLETED) {
        count_failures(t, flight);
    }
    must(hte_batch_free(t->engine, flight->batch), "free a batch");
    t->bytes += status.transferred;
    ++t->batches;
    flight->is_out = false;
    atomic_fetch_add_explicit(t->progress, status.transferred, memory_order_relaxed);
}

static void fill(struct thread *t, size_t offset, size_t length, uint64_t seed)
{
    uint64_t *words = (uint64_t *)(t->local + offset), i;

    for (i = 0; i < length / 8; ++i) {
        words[i] = (seed + i) * 0x9e3779b97f4a7c15ull;
    }
}

static bool compare(struct thread *t, size_t offset, size_t length, uint64_t seed)
{
    uint64_t *words = (uint64_t *)(t->local + offset), i;

    for (i = 0; i < length / 8; ++i) {
        if (words[i] != (seed + i) * 0x9e3779b97f4a7c15ull) {
            return false;
        }
    }
    return true;
}

/* One batch there and back. */
static bool round_trip(struct thread *t, size_t offset, uint64_t seed)
{
    uint64_t length       = t->point->batch * t->point->block;
    struct flight flight  = {.offset = offset};
    static const int codes[] = {HTE_WRITE, HTE_READ};
    unsigned i;

    fill(t, offset, length, seed);
    for (i = 0; i < 2; ++i) {
        make_requests(t, offset, codes[i]);
        flight.begin = now_seconds();
        must(hte_batch_alloc(t->engine, t->point->batch, &flight.batch), "allocate a batch");
        must(hte_batch_submit(t->engine, flight.batch, t->requests, t->point->batch), "submit");
        land(t, &flight);
        if (i == 0) {
            memset(t->local + offset, 0, length);
        }
    }
    return compare(t, offset, length, seed);
}

static void verify(struct thread *t)
{
    uint64_t length = t->point->batch * t->point->block, offset, bytes = t->bytes, batches = t->batches;
    size_t n_samples = t->n_samples;

    for (offset = 0; offset + length <= t->share && (offset == 0 || offset < VERIFY_BYTES); offset += length) {
        t->is_verified &= round_trip(t, offset, offset + t->index);
    }
    t->bytes     = bytes; /* not timed */
    t->batches   = batches;
    t->n_samples = n_samples;
}

static void *run(void *arg)
{
    struct thread *t = arg;
    uint64_t i, number = 0, length = t->point->batch * t->point->block;

    t->is_verified = true;
    for (i = 0; t->options->check && now_seconds() < t->end; ++i) {
        t->is_verified &= round_trip(t, (i * length) % (t->share / length * length), i);
    }
    while (!t->options->check && now_seconds() < t->end) {
        for (i = 0; i < t->options->depth; ++i) {
            if (t->flights[i].is_out) {
                land(t, &t->flights[i]);
            }
            launch(t, &t->flights[i], number++);
        }
    }
    for (i = 0; i < t->options->depth; ++i) {
        if (t->flights[i].is_out) {
            land(t, &t->flights[i]);
        }
    }
    t->finished = now_seconds();
    return NULL;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        die("no memory for %zu * %zu bytes", count, size);
    }
    return memory;
}

static void show_progress(const struct options *o, const _Atomic uint64_t *bytes, double begin, double end)
{
    double now;

    while (!o->quiet && isatty(STDERR_FILENO) && (now = now_seconds()) < end - 0.2) {
        usleep(200000);
        fprintf(stderr, "\r%5.1f s  %8.3f GB/s ", now - begin, (double)atomic_load(bytes) * 1e-9 / (now - begin));
    }
    if (!o->quiet && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%40s\r", "");
    }
}

static void set_up(struct thread *t, unsigned index, const struct options *o, const struct point *point)
{
    t->index    = index;
    t->options  = o;
    t->point    = point;
    t->share    = o->buffer_size / point->threads & ~63ull;
    t->requests = allocate(point->batch, sizeof(*t->requests));
    t->flights  = allocate(o->depth, sizeof(*t->flights));
    t->samples  = allocate(SAMPLES_MAX, sizeof(*t->samples));
}

static void add_up(struct thread *threads, const struct point *point, struct result *result)
{
    float *samples = allocate(point->threads * (size_t)SAMPLES_MAX, sizeof(*samples));
    size_t count   = 0;
    uint64_t i;

    result->is_verified = true;
    for (i = 0; i < point->threads; ++i) {
        result->bytes += threads[i].bytes;
        result->batches += threads[i].batches;
        result->failed += threads[i].failed;
        result->is_verified &= threads[i].is_verified;
        memcpy(&samples[count], threads[i].samples, threads[i].n_samples * sizeof(*samples));
        count += threads[i].n_samples;
    }
    result->blocks = result->batches * point->batch;
    result_set_latency(result, samples, count);
    free(samples);
}

void run_point(const struct options *o, struct hte_engine *engine, char *buffer, hte_segment_t segment,
               uint64_t remote, const struct point *point, struct result *result)
{
    struct thread *threads       = allocate(point->threads, sizeof(*threads));
    struct hte_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    _Atomic uint64_t progress    = 0;
    double begin, cpu;
    uint64_t i;

    *result = (struct result){.seconds = 0};
    for (i = 0; i < point->threads; ++i) {
        set_up(&threads[i], (unsigned)i, o, point);
        threads[i].engine   = engine;
        threads[i].segment  = segment;
        threads[i].local    = buffer + i * threads[i].share;
        threads[i].remote   = remote + i * threads[i].share;
        threads[i].progress = &progress;
    }
    must(hte_counters(engine, &before), "counters");
    cpu   = cpu_seconds();
    begin = now_seconds();
    for (i = 0; i < point->threads; ++i) {
        threads[i].end = begin + o->duration;
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0) {
            die("cannot create a thread");
        }
    }
    show_progress(o, &progress, begin, begin + o->duration);
    for (i = 0; i < point->threads; ++i) {
        pthread_join(threads[i].id, NULL);
        result->seconds = threads[i].finished - begin > result->seconds ? threads[i].finished - begin : result->seconds;
    }
    result->cpu_seconds = cpu_seconds() - cpu;
    must(hte_counters(engine, &after), "counters");
    result->slices = after.slices_posted - before.slices_posted;
    for (i = 0; i < point->threads; ++i) {
        verify(&threads[i]);
    }
    add_up(threads, point, result);
    for (i = 0; i < point->threads; ++i) {
        free(threads[i].requests);
        free(threads[i].flights);
        free(threads[i].samples);
    }
    free(threads);
}
