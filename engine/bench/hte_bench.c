/* SPDX-License-Identifier: BSD-3-Clause */
/* Throughput and latency of the batch engine: modes, sweep, and the processes of mode self. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_base.h"
#include "bench_engine.h"
#include "bench_options.h"
#include "bench_plain.h"
#include "bench_report.h"
#include "bench_run.h"

struct child {
    pid_t pid;
    int   to, from;
};

/* ---- child processes of mode self ---- */

static void child_start(struct child *child, char *program, char **argv, const char *role, const char *arguments)
{
    int  to[2], from[2];
    char ends[48], **args;
    int  i, n = 0;

    while (argv[n] != NULL) {
        ++n;
    }
    args = calloc((size_t)n + 5, sizeof(*args));
    if (args == NULL || pipe(to) != 0 || pipe(from) != 0) {
        die("cannot start the target");
    }
    fcntl(to[1], F_SETFD, FD_CLOEXEC);
    fcntl(from[0], F_SETFD, FD_CLOEXEC);
    snprintf(ends, sizeof(ends), "%d,%d", to[0], from[1]);
    args[0] = program;
    args[1] = (char *)role;
    args[2] = ends;
    args[3] = (char *)arguments;
    for (i = 1; i < n; ++i) {
        args[3 + i] = argv[i];
    }
    child->pid = fork();
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv("/proc/self/exe", args);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    free(args);
    child->to   = to[1];
    child->from = from[0];
}

static void child_end(struct child *child)
{
    int status;

    close(child->to);
    close(child->from);
    waitpid(child->pid, &status, 0);
    if (status != 0) {
        die("the target's process ended with status 0x%x", status);
    }
}

static bool is_p2p(const struct options *o)
{
    return o->metadata == NULL || strcmp(o->metadata, "P2PHANDSHAKE") == 0;
}

/* Modes self and metrics without a name: nothing that another user of the store has, too. */
static const char *default_name(const struct options *o)
{
    static char name[HTE_NAME_MAX + 1];
    char        host[128] = "";

    if (is_p2p(o)) {
        return "127.0.0.1";
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "hte_bench-%s-%d", host, (int)getpid());
    return name;
}

/* Both processes of mode self have the same options, but cannot have the same name. Peer to peer the initiator has the
 * port, if one was given; the target takes any. */
static const char *target_name(const char *name, bool is_p2p)
{
    const char *end = name[0] == '[' ? strchr(name, ']') : NULL, *colon = strchr(name, ':');
    size_t      length = strlen(name);
    char       *own    = malloc(length + sizeof("-target")); /* for as long as the program runs */

    if (is_p2p && end != NULL) {
        length = (size_t)(end + 1 - name);
    } else if (is_p2p && colon != NULL && strchr(colon + 1, ':') == NULL) { /* no bare IPv6 address */
        length = (size_t)(colon - name);
    }
    if (own == NULL) {
        die("no memory");
    }
    memcpy(own, name, length);
    strcpy(own + length, is_p2p ? "" : "-target");
    return own;
}

/* argv: program role ends arguments [options...] */
static void child_main(int argc, char **argv)
{
    struct options     options;
    unsigned long long threads;
    int                in, out;

    if (argc < 4 || sscanf(argv[2], "%d,%d", &in, &out) != 2) {
        return;
    }
    if (strcmp(argv[1], "plain-target") == 0 && sscanf(argv[3], "%llu", &threads) == 1) {
        options_parse(&options, argc - 3, argv + 3);
        run_plain_target(&options, threads, out, in);
        exit(0);
    }
    if (strcmp(argv[1], "engine-target") == 0) {
        options_parse(&options, argc - 3, argv + 3);
        options.name = target_name(options.name != NULL ? options.name : default_name(&options), is_p2p(&options));
        run_target(&options, out, in);
        exit(0);
    }
}

/* ---- the sweep ---- */

static uint64_t find_remote(struct hte_engine *engine, hte_segment_t segment, uint64_t size)
{
    struct hte_buffer buffer;
    size_t            count = 1;

    must_do(hte_segment_buffers(engine, segment, &buffer, &count), "look at the segment");
    if (count < 1 || buffer.length < size) {
        die("the target's buffer has %llu bytes, less than the %llu here: give both sides the same --buffer_size",
            (unsigned long long)(count < 1 ? 0 : buffer.length), (unsigned long long)size);
    }
    return buffer.addr;
}

static void measure_engine(const struct options *o, char **argv, const struct point *point, struct result *result)
{
    char               name[HTE_NAME_MAX + 1], *buffer;
    struct hte_engine *engine;
    struct child       target;
    hte_segment_t      segment;

    if (o->mode == MODE_SELF) {
        child_start(&target, argv[0], argv, "engine-target", "x");
        if (read(target.from, name, sizeof(name)) != sizeof(name)) {
            die("the target did not start");
        }
    } else {
        snprintf(name, sizeof(name), "%s", o->segment);
    }
    engine = initiator_open(o, point->threads, &buffer);
    must_do(hte_segment_open(engine, name, &segment), "open the segment");
    must_do(hte_segment_warm(engine, segment, 30000), "connect");
    run_point(o, engine, buffer, segment, find_remote(engine, segment, o->buffer_size), point, result);
    hte_destroy(engine);
    munmap(buffer, o->buffer_size);
    if (o->mode == MODE_SELF) {
        child_end(&target);
    }
}

static void measure_plain(const struct options *o, char **argv, const struct point *point, struct result *result)
{
    struct child target;
    char         threads[24];

    snprintf(threads, sizeof(threads), "%llu", (unsigned long long)point->threads);
    child_start(&target, argv[0], argv, "plain-target", threads);
    run_plain(o, point, target.from, target.to, result);
    child_end(&target);
}

static double rate(const struct result *result)
{
    return (double)result->bytes / result->seconds;
}

static int by_rate(const void *a, const void *b)
{
    double difference = rate(a) - rate(b);

    return (difference > 0) - (difference < 0);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Both in turn, now one first and now the other, so that what else the machine does strikes both; the round with the
 * median throughput stands for all. The ratio is taken in each round. */
static bool measure_in_turn(const struct options *o, char **argv, const struct point *point, struct result *engine,
                            struct result *plain)
{
    struct result engines[ROUNDS_MAX], plains[ROUNDS_MAX];
    double        ratios[ROUNDS_MAX];
    bool          is_good = true;
    uint64_t      i;

    for (i = 0; i < o->rounds; ++i) {
        if (i % 2 == 0) {
            measure_plain(o, argv, point, &plains[i]);
        }
        measure_engine(o, argv, point, &engines[i]);
        if (i % 2 != 0) {
            measure_plain(o, argv, point, &plains[i]);
        }
        is_good &= engines[i].is_verified && engines[i].failed == 0;
        ratios[i] = rate(&engines[i]) / rate(&plains[i]);
    }
    qsort(engines, o->rounds, sizeof(engines[0]), by_rate);
    qsort(plains, o->rounds, sizeof(plains[0]), by_rate);
    qsort(ratios, o->rounds, sizeof(ratios[0]), by_value);
    *engine           = engines[o->rounds / 2];
    *plain            = plains[o->rounds / 2];
    engine->ratio     = ratios[o->rounds / 2];
    engine->ratio_min = ratios[0];
    engine->ratio_max = ratios[o->rounds - 1];
    return is_good;
}

static bool run_sweep(const struct options *o, char **argv)
{
    struct result result = {.seconds = 0}, plain = {.seconds = 0};
    struct point  point   = {.block = 0};
    bool          is_good = true;
    unsigned      t, b, n;

    report_header(o);
    for (t = 0; t < o->threads.count; ++t) {
        for (b = 0; b < o->block.count; ++b) {
            for (n = 0; n < o->batch.count; ++n) {
                point = (struct point){
                    .threads = o->threads.values[t], .block = o->block.values[b], .batch = o->batch.values[n]};
                if (o->baseline) {
                    is_good &= measure_in_turn(o, argv, &point, &result, &plain);
                } else {
                    measure_engine(o, argv, &point, &result);
                    is_good &= result.is_verified && result.failed == 0;
                }
                report_point(o, &point, &result, o->baseline ? &plain : NULL);
            }
        }
    }
    if (o->json) {
        report_json(o, &point, &result, o->baseline ? &plain : NULL, is_good);
    }
    return is_good;
}

/* UCX's library opens its log while it is loaded, on standard output if nothing else is said, and there it would be in
 * the midst of the results: once more from the start, with something said. The target's process inherits it. */
static void keep_log_out(char **argv)
{
    if (getenv("UCX_LOG_FILE") == NULL && setenv("UCX_LOG_FILE", "stderr", 0) == 0) {
        execv("/proc/self/exe", argv); /* where there is no /proc, the log stays where it is */
    }
}

int main(int argc, char **argv)
{
    struct options options;

    keep_log_out(argv);
    child_main(argc, argv);
    options_parse(&options, argc, argv);
    if ((options.mode == MODE_SELF || options.mode == MODE_METRICS) && options.name == NULL) {
        options.name = default_name(&options);
    }
    if (options.mode == MODE_TARGET) {
        run_target(&options, -1, -1);
        return 0;
    }
    if (options.mode == MODE_METRICS) {
        print_metrics(&options);
        return 0;
    }
    return run_sweep(&options, argv) ? 0 : 1;
}
