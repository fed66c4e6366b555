/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "uct_ha/uct_ha.h"

/*
 * MPI: every rank sends to every other one, round after round, and checks each byte
 * that it gets: contents are a function of (sender, receiver, round). For many
 * connections that lose their rail at once.
 *
 *   ha_alltoall [SECONDS [BYTES]]      default 10 s, 4096 bytes
 *
 * SIGUSR1 to rank 0 ends it early. Rank 0 prints a line per second, and one JSON line at the end. Exit status 1 when
 * anything was wrong.
 */

#define MAX_BYTES (1 << 20)

static int      rank, ranks;
static size_t   bytes = 4096;
static uint64_t wrong;

static volatile sig_atomic_t asked_to_stop;

static void on_stop(int signal)
{
    (void)signal;
    asked_to_stop = 1;
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void fill(uint64_t *data, int from, int to, uint64_t round)
{
    uint64_t base = mix(((uint64_t)from << 48) ^ ((uint64_t)to << 32) ^ round);

    for (size_t i = 0; i < bytes / sizeof(*data); i++) {
        data[i] = base + i;
    }
}

static void check(const uint64_t *data, int from, uint64_t round)
{
    uint64_t base = mix(((uint64_t)from << 48) ^ ((uint64_t)rank << 32) ^ round);

    for (size_t i = 0; i < bytes / sizeof(*data); i++) {
        if (data[i] != base + i) {
            if (wrong++ < 5) {
                printf("WRONG: rank %d, round %" PRIu64 ", from %d: word %zu is %" PRIx64 " instead of %" PRIx64 "\n",
                       rank, round, from, i, data[i], base + i);
            }
            return;
        }
    }
}

/* One message to and from everybody but ourselves. */
static void round_run(char *out, char *in, MPI_Request *requests, uint64_t round)
{
    int count = 0;

    for (int peer = 0; peer < ranks; peer++) {
        if (peer != rank) {
            memset(in + (size_t)peer * bytes, 0xd7, bytes);
            MPI_Irecv(in + (size_t)peer * bytes, (int)bytes, MPI_BYTE, peer, (int)(round & 0x3fff), MPI_COMM_WORLD,
                      &requests[count++]);
        }
    }
    for (int step = 1; step < ranks; step++) {
        int peer = (rank + step) % ranks;

        fill((uint64_t *)(out + (size_t)peer * bytes), rank, peer, round);
        MPI_Isend(out + (size_t)peer * bytes, (int)bytes, MPI_BYTE, peer, (int)(round & 0x3fff), MPI_COMM_WORLD,
                  &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; peer < ranks; peer++) {
        if (peer != rank) {
            check((const uint64_t *)(in + (size_t)peer * bytes), peer, round);
        }
    }
}

static void own_stats(uint64_t *failovers, uint64_t *pairs, uint64_t *standbys)
{
    typedef int (*get_t)(struct uct_ha_stats * stats, size_t size);
    struct uct_ha_stats stats   = {0};
    void               *library = dlopen("libuct_ha.so.0", RTLD_LAZY | RTLD_NOLOAD);
    get_t               get     = (get_t)dlsym(library ? library : RTLD_DEFAULT, "uct_ha_stats_get");

    if (get != NULL) {
        get(&stats, sizeof(stats));
    }
    *failovers = stats.failovers;
    *pairs     = stats.pairs;
    *standbys  = stats.standbys;
}

/* Everybody's totals: wrong messages, failovers, endpoint pairs, those with a standby (each has two ends). */
static void totals(uint64_t *sum)
{
    uint64_t own[4] = {wrong, 0, 0, 0};

    own_stats(&own[1], &own[2], &own[3]);
    MPI_Allreduce(own, sum, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

/* Rank 0's watch decides for all how long it goes on. */
static uint64_t run(double seconds, double *longest)
{
    char        *out = malloc(bytes * (size_t)ranks), *in = malloc(bytes * (size_t)ranks);
    MPI_Request *requests = malloc(2 * (size_t)ranks * sizeof(*requests));
    double       start = MPI_Wtime(), before = start, shown = start, now;
    uint64_t     round = 0, sum[4];
    int          go    = 1;

    if (out == NULL || in == NULL || requests == NULL) {
        fprintf(stderr, "ha_alltoall: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    while (go) {
        round_run(out, in, requests, round++);
        now = MPI_Wtime();
        if (now - before > *longest && round > 1) { /* the first one connects */
            *longest = now - before;
        }
        before = now;
        go     = (now - start < seconds && !asked_to_stop) | ((now - shown > 1) << 1);
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (go & 2) {
            totals(sum);
            if (rank == 0) {
                printf("%.1f s: %" PRIu64 " rounds, %" PRIu64 " pairs, %" PRIu64 " failovers, %" PRIu64
                       " standbys, %d ranks\n",
                       now - start, round, sum[2] / 2, sum[1], sum[3], ranks);
                fflush(stdout);
            }
            shown = now;
        }
        go &= 1;
    }
    free(out);
    free(in);
    free(requests);
    return round;
}

int main(int argc, char **argv)
{
    double   seconds = argc > 1 ? atof(argv[1]) : 10, longest = 0, start;
    uint64_t rounds, sum[4];

    if (argc > 2) {
        bytes = (size_t)strtoul(argv[2], NULL, 0) / 8 * 8;
    }
    if (seconds <= 0 || bytes == 0 || bytes > MAX_BYTES) {
        fprintf(stderr, "usage: ha_alltoall [SECONDS [BYTES, 8 to %d]]\n", MAX_BYTES);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    signal(SIGUSR1, on_stop);
    start  = MPI_Wtime();
    rounds = run(seconds, &longest);
    totals(sum);
    if (rank == 0) {
        printf("{\"ok\":%s,\"ranks\":%d,\"bytes\":%zu,\"rounds\":%" PRIu64 ",\"messages\":%" PRIu64
               ",\"wrong\":%" PRIu64 ",\"pairs\":%" PRIu64 ",\"failovers\":%" PRIu64
               ",\"longest_round_ms\":%.0f,\"seconds\":%.1f}\n",
               sum[0] == 0 ? "true" : "false", ranks, bytes, rounds, rounds * (uint64_t)ranks * (uint64_t)(ranks - 1),
               sum[0], sum[2] / 2, sum[1], longest * 1000, MPI_Wtime() - start);
        fflush(stdout);
    }
    MPI_Finalize();
    return sum[0] != 0;
}
