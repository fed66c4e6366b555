/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ha_sim: many seeded schedules of the failover core under bad luck.
 *
 * Processes take chunks of seeds off a counter that they share, in order, and
 * finish what they took: after an interrupt it is known where to go on.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

#define COVER_FROM   2000 /* schedules from which on everything must have happened */
#define CHUNK        100
#define JOBS_MAX     64
#define FAILURES_MAX 3 /* enough to look at */

struct options {
    uint64_t seed, schedules;
    uint32_t ops, jobs;
    int      verbose;
};

/* Shared by the processes. */
struct progress {
    atomic_uint_fast64_t next; /* first schedule that nobody has taken */
    atomic_uint_fast64_t passed;
    atomic_uint          failures;
    uint64_t             failed_seed[FAILURES_MAX];
    uint64_t             cover[JOBS_MAX][SIM_COVER_LAST];
    atomic_int           stop;
};

static struct progress *progress;

/* ---- running --------------------------------------------------------------------- */

static void run_one(struct sim_world *w, const struct options *options, uint64_t seed, uint64_t *cover)
{
    unsigned n;

    if (sim_run(w, seed, options->ops, options->verbose ? 2 : 0, cover) == 0) {
        atomic_fetch_add(&progress->passed, 1);
        return;
    }
    n = atomic_fetch_add(&progress->failures, 1);
    if (n < FAILURES_MAX) {
        progress->failed_seed[n] = seed;
    }
    if (n + 1 >= FAILURES_MAX) {
        atomic_store(&progress->stop, 1);
    }
}

static void run_chunks(const struct options *options, unsigned job)
{
    static struct sim_world world;

    while (!atomic_load(&progress->stop)) {
        uint64_t from = atomic_fetch_add(&progress->next, CHUNK), to = from + CHUNK;

        if (from >= options->schedules) {
            return;
        }
        to = to < options->schedules ? to : options->schedules;
        for (uint64_t i = from; i < to; i++) {
            run_one(&world, options, options->seed + i, progress->cover[job]);
        }
    }
}

static void on_interrupt(int number)
{
    (void)number;
    atomic_store(&progress->stop, 1);
}

static uint64_t taken(const struct options *options)
{
    uint64_t next = atomic_load(&progress->next);

    return next < options->schedules ? next : options->schedules;
}

/* A sign of life now and then; returns when all children have ended. 0 = well. */
static int wait_for_jobs(const struct options *options)
{
    struct timespec pause = {.tv_nsec = 100000000};
    unsigned        left = options->jobs, ticks = 0;
    int             status, crashed             = 0;
    pid_t           pid;

    while (left > 0) {
        pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            left--;
            crashed |= status;
        } else {
            nanosleep(&pause, NULL);
            if (++ticks % 300 == 0) {
                printf("... %" PRIu64 " of %" PRIu64 " schedules\n", taken(options), options->schedules);
                fflush(stdout);
            }
        }
    }
    if (crashed) {
        printf("FAILED: a process of the simulator crashed\n");
    }
    return crashed;
}

static int run_jobs(const struct options *options)
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    fflush(stdout);
    for (unsigned job = 0; job < options->jobs; job++) {
        pid_t pid = fork();

        if (pid == 0) {
            run_chunks(options, job);
            exit(0);
        }
        if (pid < 0) {
            fprintf(stderr, "ha_sim: cannot start process %u: %s\n", job, strerror(errno));
            exit(2);
        }
    }
    return wait_for_jobs(options);
}

/* ---- the result -------------------------------------------------------------------- */

static int check_cover(const uint64_t *cover, uint64_t schedules, int verbose)
{
    int missing = 0;

    for (int i = 0; i < SIM_COVER_LAST; i++) {
        if (verbose || schedules >= COVER_FROM) {
            printf("%12" PRIu64 "  %s\n", cover[i], sim_cover_name[i]);
        }
        if (cover[i] == 0 && schedules >= COVER_FROM) {
            printf("FAILED: no schedule had '%s': this run proves nothing about it\n", sim_cover_name[i]);
            missing++;
        }
    }
    return missing;
}

static void report_failures(const struct options *options)
{
    static struct sim_world world;
    unsigned                n = atomic_load(&progress->failures);

    for (unsigned i = 0; i < n && i < FAILURES_MAX; i++) {
        sim_report(&world, progress->failed_seed[i], options->ops);
    }
}

static int print_result(const struct options *options, int crashed, double seconds)
{
    uint64_t cover[SIM_COVER_LAST] = {0}, passed = atomic_load(&progress->passed);
    uint64_t failures = atomic_load(&progress->failures), done = taken(options);
    int      missing = 0;

    for (unsigned job = 0; job < options->jobs; job++) {
        for (int i = 0; i < SIM_COVER_LAST; i++) {
            cover[i] += progress->cover[job][i];
        }
    }
    report_failures(options);
    if (failures == 0 && !crashed) {
        missing = check_cover(cover, passed, options->verbose);
    }
    if (done < options->schedules && failures == 0) {
        printf("stopped: go on with --seed %" PRIu64 " --schedules %" PRIu64 "\n", options->seed + done,
               options->schedules - done);
    }
    failures += missing > 0 || crashed;
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failures);
    printf("{\"seed\":%" PRIu64 ",\"schedules\":%" PRIu64 ",\"pairs\":%" PRIu64 ",\"operations\":%" PRIu64
           ",\"failovers\":%" PRIu64 ",\"steps\":%" PRIu64 ",\"violations\":%" PRIu64 ",\"seconds\":%.1f}\n",
           options->seed, passed, cover[SIM_COVER_PAIRS], cover[SIM_COVER_OPERATIONS], cover[SIM_COVER_FAILOVER],
           cover[SIM_COVER_STEPS], failures, seconds);
    return failures != 0 || done < options->schedules;
}

/* ---- command line -------------------------------------------------------------------- */

static void usage(FILE *to)
{
    fprintf(to,
            "usage: ha_sim [--seed S] [--schedules N] [--jobs J] [--ops N] [--verbose]\n\n"
            "Runs N schedules (default 6000) with the seeds S, S+1, ... (default 1) in J\n"
            "processes (default 1). Each has 1 to 16 endpoint pairs between up to 6 hosts on 2 to\n"
            "4 rails and up to --ops operations per side (default 24, at most %d); the invariants\n"
            "of docs/failover.md are checked after every step. A million schedules:\n\n"
            "    ha_sim --schedules 1000000 --jobs $(nproc)\n\n"
            "Interrupted, it says with which seed to go on. --verbose tells the whole story.\n"
            "The last line is JSON. Exit status 0 when every schedule was run and passed.\n",
            SIM_OPS_MAX);
}

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char              *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text != NULL ? text : "", &end, 0);
    if (text == NULL || *text == '\0' || *text == '-' || *end != '\0' || errno != 0 || value < min || value > max) {
        fprintf(stderr, "ha_sim: %s '%s' is not a number from %" PRIu64 " to %" PRIu64 ". Try --help.\n", name,
                text != NULL ? text : "", min, max);
        exit(2);
    }
    return value;
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.seed = 1, .schedules = 6000, .ops = 24, .jobs = 1};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (strcmp(argv[i], "--verbose") == 0) {
            options.verbose = 1;
        } else if (strcmp(argv[i], "--seed") == 0) {
            options.seed = number("--seed", argv[++i], 0, UINT64_MAX);
        } else if (strcmp(argv[i], "--schedules") == 0) {
            options.schedules = number("--schedules", argv[++i], 1, 1000000000);
        } else if (strcmp(argv[i], "--jobs") == 0) {
            options.jobs = (uint32_t)number("--jobs", argv[++i], 1, JOBS_MAX);
        } else if (strcmp(argv[i], "--ops") == 0) {
            options.ops = (uint32_t)number("--ops", argv[++i], 1, SIM_OPS_MAX);
        } else {
            fprintf(stderr, "ha_sim: unknown option '%s'. Try --help.\n", argv[i]);
            exit(2);
        }
    }
    return options;
}

int main(int argc, char **argv)
{
    struct options  options = parse(argc, argv);
    struct timespec begin, end;
    int             crashed = 0;

    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        fprintf(stderr, "ha_sim: no memory: %s\n", strerror(errno));
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (options.jobs > 1) {
        crashed = run_jobs(&options);
    } else {
        run_chunks(&options, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return print_result(&options, crashed,
                        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
}
