/* SPDX-License-Identifier: BSD-3-Clause */
/* The timed part: threads that keep `depth` batches each under way, and the comparison of bytes. With --check, all
 * threads prepare a round of batches, are timed together as they move it, and compare it; so only the batches that were
 * asked for are timed, and each is compared. */
#include "bench_run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_base.h"
#include "bench_pattern.h"
#include "bench_progress.h"
#include "bench_report.h"

#define SAMPLES_MAX    (1u << 20)
#define SAMPLE_BYTES   (16ull << 20) /* compared afterwards, per thread, ... */
#define SAMPLE_SECONDS 1.0           /* ... for at most so long in all */
#define ROUND_BYTES    (32ull << 20)
#define ROUND_REQUESTS 4096u

struct flight {
    hte_batch_t batch;
    double      begin;
    bool        is_out;
};

/* What the threads of a point have in common. */
struct team {
    pthread_barrier_t  barrier;
    struct hte_engine *engine;
    struct result     *result;
    double             duration, end;
    bool               is_over;    /* no further round */
    double             begin, cpu; /* of what is being timed */
    uint64_t           slices;
    _Atomic uint64_t   progress;
};

struct thread {
    pthread_t             id;
    const struct options *options;
    const struct point   *point;
    struct team          *team;
    struct hte_engine    *engine;
    hte_segment_t         segment;
    unsigned              index;
    char                 *local;
    uint64_t              remote, share; /* this thread's part of the buffers */
    uint64_t              length;        /* of a batch */
    struct hte_request   *requests;
    struct flight        *flights;
    float                *samples;
    size_t                n_samples, next;
    uint64_t              bytes, batches, failed;
    bool                  is_verified;
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
        t->requests[i] = (struct hte_request){.opcode        = opcode,
                                              .target        = t->segment,
                                              .local         = t->local + offset + i * block,
                                              .target_offset = t->remote + offset + i * block,
                                              .length        = block};
    }
}

static hte_batch_t submit(struct thread *t, size_t offset, int opcode)
{
    hte_batch_t batch;

    make_requests(t, offset, opcode);
    must_do(hte_batch_alloc(t->engine, t->point->batch, &batch), "allocate a batch");
    must_do(hte_batch_submit(t->engine, batch, t->requests, t->point->batch), "submit");
    return batch;
}

static void count_failures(struct thread *t, hte_batch_t batch)
{
    struct hte_status status;
    uint64_t          i;

    for (i = 0; i < t->point->batch; ++i) {
        must_do(hte_request_status(t->engine, batch, i, &status), "status");
        t->failed += status.code != HTE_COMPLETED;
    }
}

/* Bytes that were moved. */
static uint64_t await(struct thread *t, hte_batch_t batch)
{
    struct hte_batch_status status;

    must_do(hte_batch_wait(t->engine, batch, -1, &status), "wait");
    if (status.code != HTE_COMPLETED) {
        count_failures(t, batch);
    }
    must_do(hte_batch_free(t->engine, batch), "free a batch");
    return status.transferred;
}

static void launch(struct thread *t, struct flight *flight, uint64_t number)
{
    if (t->next + t->length > t->share) {
        t->next = 0;
    }
    flight->begin  = now_seconds();
    flight->batch  = submit(t, t->next, opcode_of(t, number));
    flight->is_out = true;
    t->next += t->length;
}

static void land(struct thread *t, struct flight *flight)
{
    uint64_t bytes;

    if (!flight->is_out) {
        return;
    }
    bytes = await(t, flight->batch);
    if (t->n_samples < SAMPLES_MAX) {
        t->samples[t->n_samples++] = (float)((now_seconds() - flight->begin) * 1e6);
    }
    t->bytes += bytes;
    ++t->batches;
    flight->is_out = false;
    atomic_fetch_add_explicit(&t->team->progress, bytes, memory_order_relaxed);
}

static void land_all(struct thread *t)
{
    uint64_t i;

    for (i = 0; i < t->options->depth; ++i) {
        land(t, &t->flights[i]);
    }
}

/* ---- timing ---- */

static uint64_t slices_posted(struct hte_engine *engine)
{
    struct hte_counters counters = {.size = sizeof(counters)};

    must_do(hte_counters(engine, &counters), "counters");
    return counters.slices_posted;
}

static void start_clock(struct team *team)
{
    team->slices = slices_posted(team->engine);
    team->cpu    = cpu_seconds();
    team->begin  = now_seconds();
}

static void stop_clock(struct team *team)
{
    team->result->seconds += now_seconds() - team->begin;
    team->result->cpu_seconds += cpu_seconds() - team->cpu;
    team->result->slices += slices_posted(team->engine) - team->slices;
}

/* All threads meet; the first one does it while the others wait. */
static void together(struct thread *t, void (*action)(struct team *team))
{
    pthread_barrier_wait(&t->team->barrier);
    if (t->index == 0) {
        action(t->team);
    }
    pthread_barrier_wait(&t->team->barrier);
}

/* ---- comparison ---- */

static void move(struct thread *t, size_t offset, int opcode)
{
    await(t, submit(t, offset, opcode));
}

static uint64_t seed_of(const struct thread *t, uint64_t number)
{
    return (uint64_t)t->index << 48 ^ number;
}

/* After the timed part: a sample there and back. */
static void compare_sample(struct thread *t)
{
    double   end = now_seconds() + SAMPLE_SECONDS / (double)t->point->threads;
    uint64_t offset, seed;

    for (offset = 0; offset + t->length <= t->share && offset < SAMPLE_BYTES; offset += t->length) {
        seed = seed_of(t, offset);
        pattern_fill(t->local + offset, t->length, seed);
        move(t, offset, HTE_WRITE);
        pattern_spoil(t->local + offset, t->length, seed);
        move(t, offset, HTE_READ);
        t->is_verified &= pattern_is(t->local + offset, t->length, seed);
        if (now_seconds() > end) {
            return;
        }
    }
}

/* Batches of a round lie side by side: at least as many as are under way, if there is room, and not more than take a
 * moment. */
static uint64_t round_size(const struct thread *t)
{
    uint64_t count = ROUND_BYTES / t->length, room = t->share / t->length;

    count = count < ROUND_REQUESTS / t->point->batch ? count : ROUND_REQUESTS / t->point->batch;
    count = count > t->options->depth ? count : t->options->depth;
    return count < room ? count : room;
}

/* What WRITEs will take lies here, what READs will bring lies at the target and not here. */
static void prepare_round(struct thread *t, size_t offset, uint64_t number, uint64_t count)
{
    uint64_t i;

    for (i = number; i < number + count; ++i, offset += t->length) {
        pattern_fill(t->local + offset, t->length, seed_of(t, i));
        if (opcode_of(t, i) == HTE_READ) {
            move(t, offset, HTE_WRITE);
            pattern_spoil(t->local + offset, t->length, seed_of(t, i));
        }
    }
}

static void compare_round(struct thread *t, size_t offset, uint64_t number, uint64_t count)
{
    uint64_t i;

    for (i = number; i < number + count; ++i, offset += t->length) {
        if (opcode_of(t, i) == HTE_WRITE) {
            pattern_spoil(t->local + offset, t->length, seed_of(t, i));
            move(t, offset, HTE_READ);
        }
        t->is_verified &= pattern_is(t->local + offset, t->length, seed_of(t, i));
    }
}

static void decide(struct team *team)
{
    team->is_over = now_seconds() >= team->end;
}

static void run_rounds(struct thread *t)
{
    uint64_t i, number, count = round_size(t);
    size_t   offset;

    for (number = 0; !t->team->is_over; number += count) {
        offset  = t->next + count * t->length > t->share ? 0 : t->next;
        t->next = offset;
        prepare_round(t, offset, number, count);
        together(t, start_clock);
        for (i = 0; i < count; ++i) {
            land(t, &t->flights[i % t->options->depth]);
            launch(t, &t->flights[i % t->options->depth], number + i);
        }
        land_all(t);
        together(t, stop_clock);
        compare_round(t, offset, number, count);
        together(t, decide);
    }
}

/* ---- threads ---- */

static void start_freely(struct team *team)
{
    start_clock(team);
    team->end = team->begin + team->duration;
}

/* As the baseline does. */
static void go_over(struct thread *t)
{
    struct hte_request      r   = {.opcode = opcode_of(t, 0), .target = t->segment};
    double                  end = now_seconds() + GO_OVER_SECONDS;
    struct hte_batch_status status;
    hte_batch_t             batch;
    size_t                  offset;

    for (offset = 0; offset < t->share && now_seconds() < end; offset += r.length) {
        r.local         = t->local + offset;
        r.target_offset = t->remote + offset;
        r.length        = t->share - offset < GO_OVER_BYTES ? t->share - offset : GO_OVER_BYTES;
        must_do(hte_batch_alloc(t->engine, 1, &batch), "allocate a batch");
        must_do(hte_batch_submit(t->engine, batch, &r, 1), "submit");
        must_do(hte_batch_wait(t->engine, batch, -1, &status), "wait");
        must_do(hte_batch_free(t->engine, batch), "free a batch");
        t->failed += status.code != HTE_COMPLETED;
    }
}

static void run_freely(struct thread *t)
{
    uint64_t i, number = 0;

    if (t->options->baseline) {
        go_over(t);
    }
    together(t, start_freely);
    while (now_seconds() < t->team->end) {
        for (i = 0; i < t->options->depth; ++i) {
            land(t, &t->flights[i]);
            launch(t, &t->flights[i], number++);
        }
    }
    land_all(t);
    together(t, stop_clock);
}

static void *run(void *arg)
{
    struct thread *t = arg;

    if (t->options->check) {
        run_rounds(t);
    } else {
        run_freely(t);
    }
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

static void set_up(struct thread *t, unsigned index, const struct options *o, const struct point *point)
{
    t->index       = index;
    t->options     = o;
    t->point       = point;
    t->share       = o->buffer_size / point->threads & ~63ull;
    t->length      = point->batch * point->block;
    t->is_verified = true;
    t->requests    = allocate(point->batch, sizeof(*t->requests));
    t->flights     = allocate(o->depth, sizeof(*t->flights));
    t->samples     = allocate(SAMPLES_MAX, sizeof(*t->samples));
}

static void add_up(struct thread *threads, const struct point *point, struct result *result)
{
    float   *samples = allocate(point->threads * (size_t)SAMPLES_MAX, sizeof(*samples));
    size_t   count   = 0;
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

static void run_team(struct team *team, struct thread *threads, const struct options *o, const struct point *point)
{
    double   begin = now_seconds();
    uint64_t i;

    team->duration = o->duration;
    team->end      = begin + o->duration;
    if (pthread_barrier_init(&team->barrier, NULL, (unsigned)point->threads) != 0) {
        die("cannot create a barrier");
    }
    for (i = 0; i < point->threads; ++i) {
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0) {
            die("cannot create a thread");
        }
    }
    show_progress(&(const struct progress){.options = o,
                                           .engine  = team->engine,
                                           .segment = threads[0].segment,
                                           .bytes   = &team->progress,
                                           .begin   = begin,
                                           .end     = begin + o->duration});
    for (i = 0; i < point->threads; ++i) {
        pthread_join(threads[i].id, NULL);
    }
    pthread_barrier_destroy(&team->barrier);
}

void run_point(const struct options *o, struct hte_engine *engine, char *buffer, hte_segment_t segment, uint64_t remote,
               const struct point *point, struct result *result)
{
    struct thread *threads = allocate(point->threads, sizeof(*threads));
    struct team    team    = {.engine = engine, .result = result};
    uint64_t       i;

    *result = (struct result){.seconds = 0};
    for (i = 0; i < point->threads; ++i) {
        set_up(&threads[i], (unsigned)i, o, point);
        threads[i].team    = &team;
        threads[i].engine  = engine;
        threads[i].segment = segment;
        threads[i].local   = buffer + i * threads[i].share;
        threads[i].remote  = remote + i * threads[i].share;
    }
    run_team(&team, threads, o, point);
    for (i = 0; i < point->threads && !o->check; ++i) {
        compare_sample(&threads[i]);
    }
    add_up(threads, point, result);
    for (i = 0; i < point->threads; ++i) {
        free(threads[i].requests);
        free(threads[i].flights);
        free(threads[i].samples);
    }
    free(threads);
}
