/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A million small requests in batches of 128, several threads, READs and WRITEs: each completes exactly once, no byte
 * is wrong, nothing leaks. Usage: million [REQUESTS [THREADS [HOW]]]; last line JSON. HOW: "joined", they continue each
 * other; "apart", they do not; "list", apart and as prepared lists.
 *
 * With --enable-sanitizers=thread: UCX's hooks for memory run where ThreadSanitizer cannot bear it, and UCX's own spin
 * locks, which it does not see unlocked, would be reported:
 *
 *     UCX_MEM_MMAP_HOOK_MODE=none TSAN_OPTIONS="report_mutex_bugs=0 ignore_noninstrumented_modules=1" million 1000000 4
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

enum { BATCH = 128, LENGTH = 256, THREADS_MAX = 16 };

static struct fixture   f;
static uint64_t         batches_per_thread;
static size_t           step    = LENGTH; /* from one request to the next */
static int              is_list = 0;
static _Atomic uint64_t callbacks, wrong, failed;

static void count(struct hte_engine *engine, hte_batch_t batch, void *arg)
{
    (void)engine;
    (void)batch;
    (void)arg;
    atomic_fetch_add(&callbacks, 1);
}

static int submit_list(hte_batch_t batch, const struct hte_request *requests)
{
    hte_list_t list;
    int        error = hte_list_prepare(f.engine, requests, BATCH, &list);

    if (error == HTE_OK) {
        error = hte_list_submit(f.engine, batch, list);
        hte_list_release(f.engine, list); /* what was made of it goes on */
    }
    return error;
}

static void submit(struct hte_request *requests)
{
    struct hte_batch_status status;
    hte_batch_t             batch;

    if (check_(hte_batch_alloc(f.engine, BATCH, &batch), "alloc", __LINE__) != HTE_OK ||
        check_(hte_batch_set_callback(f.engine, batch, count, NULL), "callback", __LINE__) != HTE_OK ||
        check_(is_list ? submit_list(batch, requests) : hte_batch_submit(f.engine, batch, requests, BATCH), "submit",
               __LINE__) != HTE_OK ||
        check_(hte_batch_wait(f.engine, batch, 120000, &status), "wait", __LINE__) != HTE_OK) {
        abort();
    }
    if (status.code != HTE_COMPLETED || status.finished != BATCH || status.transferred != BATCH * LENGTH) {
        atomic_fetch_add(&failed, 1);
    }
    if (check_(hte_batch_free(f.engine, batch), "free", __LINE__) != HTE_OK) {
        abort();
    }
}

/* Each thread has a part of its own: first half is written from, second half read into. */
static void *run(void *arg)
{
    size_t             base = (size_t)(intptr_t)arg * 2 * BATCH * step, back = base + BATCH * step;
    struct hte_request requests[BATCH];
    uint64_t           round;
    unsigned           i;

    for (round = 0; round < batches_per_thread; round += 2) {
        pattern_fill(f.memory + base, base, BATCH * step, (uint32_t)round);
        for (i = 0; i < BATCH; ++i) {
            requests[i] = request(&f, HTE_WRITE, base + i * step, base + i * step, LENGTH);
        }
        submit(requests);
        for (i = 0; i < BATCH; ++i) {
            requests[i] = request(&f, HTE_READ, back + i * step, base + i * step, LENGTH);
        }
        submit(requests);
        for (i = 0; i < BATCH; ++i) {
            if (!pattern_verify(f.memory + back + i * step, base + i * step, LENGTH, (uint32_t)round)) {
                atomic_fetch_add(&wrong, 1);
            }
        }
    }
    return NULL;
}

/* There in a sanitized program, which keeps freed memory or shadows of it: growth says nothing, ASan's leak checker
 * does. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static long resident_kib(void)
{
    long  total, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        abort();
    }
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run_threads(unsigned n_threads, uint64_t batches)
{
    pthread_t threads[THREADS_MAX];
    unsigned  i;

    batches_per_thread = batches;
    for (i = 0; i < n_threads; ++i) {
        pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
    }
    for (i = 0; i < n_threads; ++i) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    uint64_t            requests = 1000000, batches, warm_up = 20;
    unsigned            n_threads = 2;
    const char         *how       = "joined";
    struct hte_counters totals    = {.size = sizeof(totals)};
    struct timespec     begin, end;
    long                before, after;
    int                 ok;

    target_main(argc, argv);
    requests  = argc > 1 ? strtoull(argv[1], NULL, 10) : requests;
    n_threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : n_threads;
    how       = argc > 3 ? argv[3] : how;
    is_list   = strcmp(how, "list") == 0;
    step      = strcmp(how, "joined") == 0 ? LENGTH : 2 * LENGTH;
    if (n_threads < 1 || n_threads > THREADS_MAX || requests < 1 ||
        (step != LENGTH && !is_list && strcmp(how, "apart") != 0)) {
        fprintf(stderr, "usage: million [REQUESTS [THREADS of 1 to %d [joined|apart|list]]]\n", THREADS_MAX);
        return 2;
    }
    batches = (requests / BATCH / n_threads + 2) / 2 * 2;
    open_fixture(&f);
    memset(f.memory, 0, SIZE);
    run_threads(n_threads, warm_up);
    before = resident_kib();
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run_threads(n_threads, batches);
    clock_gettime(CLOCK_MONOTONIC, &end);
    after = resident_kib();
    hte_counters(f.engine, &totals);
    target_stop(&f.target);
    close_fixture(&f);
    ok = wrong == 0 && failed == 0 && callbacks == n_threads * (batches + warm_up) &&
         totals.requests == n_threads * (batches + warm_up) * BATCH && totals.requests_ended == totals.requests &&
         totals.batches_open == 0 && (after - before < 4096 || __asan_init != NULL || __tsan_init != NULL);
    printf("{\"requests\":%llu,\"ended\":%llu,\"batches\":%llu,\"callbacks\":%llu,\"wrong\":%llu,\"failed\":%llu,"
           "\"seconds\":%.1f,\"growth_kib\":%ld,\"ok\":%s}\n",
           (unsigned long long)totals.requests, (unsigned long long)totals.requests_ended,
           (unsigned long long)(n_threads * (batches + warm_up)), (unsigned long long)callbacks,
           (unsigned long long)wrong, (unsigned long long)failed,
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9, after - before,
           ok ? "true" : "false");
    return !ok;
}
