/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * fabric_driver HOSTS PROCESSES RANKS SECONDS: so many made-up hosts with so many processes each, and so many ranks
 * (interfaces, each a peer of its own to all others) in each process, over the software card. Run by bench/many
 * --fabric.
 *
 * Every rank sends a message to every other one ten times a second. After so many calm seconds rail sc0 of the last two
 * hosts falls silent, and the same goes on for as long. What each got of each is in memory that all share; the last
 * line is a JSON object.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_end.h"

#define RANKS_MAX 64
#define PROCS_MAX 62
#define SHARED_FD 9
#define PERIOD    0.1
#define SILENT    2u /* hosts */
#define SETTLE    3.0

enum phase { CALM, STRUCK, OVER };

struct rank {
    struct many_words words;
    uint32_t          here, joined; /* its words are; it has heard all others */
    uint64_t          got[RANKS_MAX];
    double            at[RANKS_MAX];  /* the latest message */
    double            gap[RANKS_MAX]; /* the longest time without one since the rails were struck */
};

static struct shared {
    uint32_t    phase;
    double      struck_at;
    uint64_t    failovers[PROCS_MAX], silent_ns[PROCS_MAX], errors[PROCS_MAX];
    struct rank rank[RANKS_MAX];
} * shared;

static unsigned hosts, procs, ranks, all;

static unsigned host_of(unsigned rank)
{
    return rank / (procs * ranks);
}

static uint32_t phase(void)
{
    return __atomic_load_n(&shared->phase, __ATOMIC_ACQUIRE);
}

/* ---- a process -------------------------------------------------------------------------------------- */

struct member {
    struct many_end end;
    unsigned        number;
    double          due;
};

static void heard(void *arg, uint64_t from)
{
    struct member *me  = arg;
    struct rank   *own = &shared->rank[me->number];
    double         now = many_now();

    if (phase() == STRUCK && own->at[from] > 0) {
        double begin = own->at[from] > shared->struck_at ? own->at[from] : shared->struck_at;

        own->gap[from] = now - begin > own->gap[from] ? now - begin : own->gap[from];
    }
    own->at[from] = now;
    own->got[from]++;
}

/* Who has no room for one more is passed over this time: nobody waits for a peer that is silent. */
static void send_round(struct member *me)
{
    double now = many_now();

    if (now < me->due) {
        return;
    }
    me->due = me->due + PERIOD > now ? me->due + PERIOD : now + PERIOD;
    for (unsigned i = 0; i < all; i++) {
        if (i != me->number) {
            (void)many_send_as(&me->end, i, me->number);
        }
    }
}

static int has_joined(const struct rank *rank)
{
    unsigned heard_of = 0;

    for (unsigned i = 0; i < all; i++) {
        heard_of += rank->got[i] > 0;
    }
    return heard_of == all - 1;
}

static void join(struct member *me, unsigned number)
{
    me->number       = number;
    me->due          = many_now();
    me->end.hears    = heard;
    me->end.hears_as = me;
    many_open(&me->end, all);
    many_words(&me->end, &shared->rank[number].words);
    __atomic_store_n(&shared->rank[number].here, 1, __ATOMIC_RELEASE);
}

static void connect_all(struct member *me)
{
    for (unsigned i = 0; i < all; i++) {
        while (!__atomic_load_n(&shared->rank[i].here, __ATOMIC_ACQUIRE)) {
            usleep(1000);
        }
        if (i != me->number) {
            many_connect_to(&me->end, i, &shared->rank[i].words);
        }
    }
}

static void work(struct member *members, unsigned process)
{
    struct uct_ha_stats stats;

    while (phase() != OVER && getppid() != 1) {
        unsigned moved = 0;

        for (unsigned i = 0; i < ranks; i++) {
            moved += uct_worker_progress(members[i].end.worker);
            send_round(&members[i]);
            if (!shared->rank[members[i].number].joined) {
                shared->rank[members[i].number].joined = (uint32_t)has_joined(&shared->rank[members[i].number]);
            }
        }
        if (moved == 0) {
            usleep(500);
        }
    }
    many_stats(&stats);
    shared->failovers[process] = stats.failovers;
    shared->silent_ns[process] = stats.silent_ns_total;
    shared->errors[process]    = stats.ep_errors;
}

static int be_process(unsigned process)
{
    struct member *members = calloc(ranks, sizeof(*members));

    if (members == NULL) {
        many_die("members");
    }
    for (unsigned i = 0; i < ranks; i++) {
        join(&members[i], process * ranks + i);
    }
    for (unsigned i = 0; i < ranks; i++) {
        connect_all(&members[i]);
    }
    work(members, process);
    _exit(0); /* nobody says good-bye: that is not what is tried here */
}

/* ---- all of them -------------------------------------------------------------------------------------- */

static uint64_t survivors_got(void)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < all; r++) {
        for (unsigned s = 0; s < all; s++) {
            sum += host_of(r) < hosts - SILENT && host_of(s) < hosts - SILENT ? shared->rank[r].got[s] : 0;
        }
    }
    return sum;
}

/* Messages a second, of those whose hosts are well, for so long from now on. */
static double rate(double seconds)
{
    uint64_t before = survivors_got();
    double   since  = many_now();

    usleep((useconds_t)(seconds * 1e6));
    return (double)(survivors_got() - before) / (many_now() - since);
}

static void strike(void)
{
    char command[512];

    shared->struck_at = many_now();
    __atomic_store_n(&shared->phase, STRUCK, __ATOMIC_RELEASE);
    for (unsigned host = hosts - SILENT; host < hosts; host++) {
        snprintf(command, sizeof(command), "LD_PRELOAD= %s fault mute h%u/sc0", getenv("SOFTCARD_TOOL"), host);
        if (system(command) != 0) {
            many_die(command);
        }
    }
}

static void wait_joined(void)
{
    double since = many_now();

    for (unsigned i = 0; i < all; i++) {
        while (!__atomic_load_n(&shared->rank[i].joined, __ATOMIC_RELAXED)) {
            if (many_now() - since > 120) {
                fprintf(stderr, "fabric_driver: rank %u has not heard all others after 120 s\n", i);
                exit(1);
            }
            usleep(1000);
        }
    }
}

/* Between a host that is struck and any other one. */
static double longest_gap(void)
{
    double longest = 0;

    for (unsigned r = 0; r < all; r++) {
        for (unsigned s = 0; s < all; s++) {
            if (host_of(r) != host_of(s) && (host_of(r) >= hosts - SILENT || host_of(s) >= hosts - SILENT) &&
                shared->rank[r].gap[s] > longest) {
                longest = shared->rank[r].gap[s];
            }
        }
    }
    return longest;
}

static void sum_up(double calm, double after)
{
    uint64_t failovers = 0, errors = 0, silent = 0;

    for (unsigned p = 0; p < hosts * procs; p++) {
        failovers += shared->failovers[p];
        errors += shared->errors[p];
        silent += shared->silent_ns[p];
    }
    printf(
        "{\"ranks\":%u,\"processes\":%u,\"calm_rate\":%.0f,\"struck_rate\":%.0f,\"ratio\":%.3f,\"longest_gap_ms\":%.0f,"
        "\"failovers\":%" PRIu64 ",\"silence_mean_ms\":%.0f,\"errors\":%" PRIu64 "}\n",
        all, hosts * procs, calm, after, after / calm, 1000 * longest_gap(), failovers,
        failovers > 0 ? (double)silent / 1e6 / (double)failovers : 0, errors);
}

static void start_all(char **argv)
{
    char text[16];

    for (unsigned p = 0; p < hosts * procs; p++) {
        if (fork() == 0) {
            snprintf(text, sizeof(text), "%u", p / procs);
            setenv("SOFTCARD_HOST", text, 1);
            snprintf(text, sizeof(text), "%u", p);
            execl(argv[0], argv[0], argv[1], argv[2], argv[3], argv[4], text, NULL);
            _exit(127);
        }
    }
}

int main(int argc, char **argv)
{
    double calm, after, seconds;
    int    fd = SHARED_FD;

    hosts   = argc > 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    procs   = argc > 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    ranks   = argc > 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    seconds = argc > 4 ? strtod(argv[4], NULL) : 0;
    all     = hosts * procs * ranks;
    if (hosts <= SILENT || hosts > 8 || hosts * procs > PROCS_MAX || all < 1 || all > RANKS_MAX || seconds <= 0) {
        fprintf(stderr,
                "usage: fabric_driver HOSTS PROCESSES RANKS SECONDS: 3 to 8 hosts, %d processes and %d ranks in "
                "all at most; see bench/many --fabric\n",
                PROCS_MAX, RANKS_MAX);
        return 2;
    }
    if (argc == 5 && (dup2(memfd_create("fabric", 0), fd) != fd || ftruncate(fd, sizeof(*shared)) != 0)) {
        many_die("shared memory");
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        many_die("shared memory");
    }
    many_files();
    if (argc > 5) {
        return be_process((unsigned)strtoul(argv[5], NULL, 10));
    }
    start_all(argv);
    wait_joined();
    usleep((useconds_t)(SETTLE * 1e6));
    calm = rate(seconds);
    strike();
    after = rate(seconds);
    __atomic_store_n(&shared->phase, OVER, __ATOMIC_RELEASE);
    while (wait(NULL) > 0) {
    }
    sum_up(calm, after);
    return 0;
}
