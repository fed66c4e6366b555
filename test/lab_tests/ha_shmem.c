/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#include "uct_ha/uct_ha.h"

/*
 * OpenSHMEM: in each round every PE writes a block to the next one, adds to a counter there, and
 * reads the block back. After a barrier the block that came is compared with what its writer must have written in this
 * round, and the counter with the number of rounds: a PUT that is lost or old, and an addition that is lost or done
 * twice, are seen.
 *
 *   ha_shmem [SECONDS]      default 10 s
 *
 * SIGUSR1 to PE 0 ends it early. PE 0 prints a line per second, and one JSON line at the end. Exit status 1 when
 * anything was wrong.
 */

#define WORDS 4096

static uint64_t      block[WORDS], back[WORDS]; /* symmetric, as all that follows */
static unsigned long counter;
static uint64_t      wrong, own[4], sum[4];
static int           go;
static long          sync_work[SHMEM_REDUCE_SYNC_SIZE], sync_told[SHMEM_BCAST_SYNC_SIZE];
static uint64_t      work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 4];

static volatile sig_atomic_t asked_to_stop;

static void on_stop(int signal)
{
    (void)signal;
    asked_to_stop = 1;
}

static uint64_t word_of(int writer, uint64_t round, size_t i)
{
    return ((uint64_t)writer << 56) ^ (round * 0x9e3779b97f4a7c15ull) ^ (i * 0xbf58476d1ce4e5b9ull);
}

static void round_run(int pe, int pes, uint64_t round, uint64_t *out)
{
    int    to = (pe + 1) % pes, from = (pe + pes - 1) % pes;
    size_t words = 1 + (round * 37) % WORDS, i;

    for (i = 0; i < words; i++) {
        out[i] = word_of(pe, round, i);
    }
    shmem_putmem(block, out, words * sizeof(*out), to);
    shmem_ulong_atomic_inc(&counter, to);
    shmem_quiet();
    shmem_getmem(back, block, words * sizeof(*out), to);
    wrong += memcmp(back, out, words * sizeof(*out)) != 0;
    shmem_barrier_all();
    for (i = 0; i < words && block[i] == word_of(from, round, i); i++) {
    }
    wrong += i < words;
    wrong += counter != round + 1;
    shmem_barrier_all();
}

/* Everybody's: wrong rounds, failovers, endpoint pairs, standbys. */
static void totals(int pes)
{
    typedef int (*get_t)(struct uct_ha_stats * stats, size_t size);
    struct uct_ha_stats stats   = {0};
    void               *library = dlopen("libuct_ha.so.0", RTLD_LAZY | RTLD_NOLOAD);
    get_t               get     = (get_t)dlsym(library ? library : RTLD_DEFAULT, "uct_ha_stats_get");

    if (get != NULL) {
        get(&stats, sizeof(stats));
    }
    own[0] = wrong;
    own[1] = stats.failovers;
    own[2] = stats.pairs;
    own[3] = stats.standbys;
    shmem_barrier_all();
    shmem_longlong_sum_to_all((long long *)sum, (long long *)own, 4, 0, 0, pes, (long long *)work, sync_work);
    shmem_barrier_all();
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    double   seconds = argc > 1 ? atof(argv[1]) : 10, start, shown;
    uint64_t round   = 0, out[WORDS];
    int      pe, pes, said;

    shmem_init();
    pe  = shmem_my_pe();
    pes = shmem_n_pes();
    for (said = 0; said < SHMEM_REDUCE_SYNC_SIZE; said++) {
        sync_work[said] = SHMEM_SYNC_VALUE;
    }
    for (said = 0; said < SHMEM_BCAST_SYNC_SIZE; said++) {
        sync_told[said] = SHMEM_SYNC_VALUE;
    }
    signal(SIGUSR1, on_stop);
    shmem_barrier_all();
    start = shown = now();
    for (go = 1; go & 1;) {
        round_run(pe, pes, round++, out);
        if (pe == 0) {
            go = (now() - start < seconds && !asked_to_stop) | ((now() - shown > 1) << 1);
        }
        shmem_broadcast32(&go, &go, 1, 0, 0, 0, pes, sync_told);
        shmem_barrier_all();
        if (go & 2) {
            totals(pes);
            shown = now();
            if (pe == 0) {
                printf("%.1f s: %" PRIu64 " rounds, %" PRIu64 " pairs, %" PRIu64 " failovers, %" PRIu64
                       " standbys, %d PEs\n",
                       shown - start, round, sum[2] / 2, sum[1], sum[3], pes);
                fflush(stdout);
            }
        }
    }
    totals(pes);
    if (pe == 0) {
        printf("{\"ok\":%s,\"pes\":%d,\"rounds\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"pairs\":%" PRIu64
               ",\"failovers\":%" PRIu64 ",\"seconds\":%.1f}\n",
               sum[0] == 0 ? "true" : "false", pes, round, sum[0], sum[2] / 2, sum[1], now() - start);
        fflush(stdout);
    }
    wrong = sum[0];
    shmem_finalize();
    return wrong != 0;
}
