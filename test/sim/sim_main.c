/* SPDX-License-Identifier: BSD-3-Clause */

/* ha_sim: many seeded schedules of the failover core under bad luck. */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define TRACE_LINES 160
#define TRACE_WIDTH 160
#define COVER_FROM  2000 /* schedules from which on everything must have happened */

static const char *const cover_name[SIM_COVER_LAST] = {
    "failovers", "operations retired by proof", "operations replayed", "partial writes replayed",
    "reads executed again", "fetching atomics in doubt", "messages held on the new lane",
    "closes that waited for messages", "packets executed while the fence settled",
    "packets executed after the sender was fenced", "double starts", "both lanes fenced at once",
    "false alarms", "suspicions acted on", "suspicions refused", "standbys that died",
    "failovers with a computing peer", "retries exhausted", "acknowledgements lost",
    "one-way losses", "ports down", "both rails cut", "connects that failed",
    "lanes fenced while connecting", "lanes abandoned before connecting", "generations skipped",
    "empty proofs", "packet numbers that wrapped", "lanes of generation 4 or more",
    "starts on slot 1", "fenced operations that waited", "control packets lost",
    "control packets repeated", "control packets reordered", "old control packets heard",
    "error ends", "peers killed", "endpoints canceled", "sides closed before their peer finished",
    "operations refused by the peer", "lanes replaced on a single rail",
};

struct options {
    uint64_t seed, schedules;
    uint32_t ops;
    int      verbose;
};

static char trace[TRACE_LINES][TRACE_WIDTH];
static unsigned trace_used;

void sim_trace(struct sim_world *w, const char *format, ...)
{
    char *line;
    va_list args;
    int n;

    if (!w->tracing)
        return;
    line = trace[trace_used++ % TRACE_LINES];
    n    = snprintf(line, TRACE_WIDTH, "%6u %12.3f us  ", w->steps, (double)w->now / 1000);
    va_start(args, format);
    vsnprintf(line + n, (size_t)(TRACE_WIDTH - n), format, args);
    va_end(args);
    if (w->tracing > 1)
        puts(line);
}

static void print_trace(void)
{
    unsigned from = trace_used > TRACE_LINES ? trace_used - TRACE_LINES : 0;

    if (from > 0)
        printf("  ... %u lines before\n", from);
    for (unsigned i = from; i < trace_used; i++)
        printf("  %s\n", trace[i % TRACE_LINES]);
}

static void show_side(const struct sim_world *w, int x)
{
    const struct sim_side *side = &w->side[x];

    printf("  side %d: epoch %u, %u of %u operations ended, flags %x, peer %x%s%s\n", x,
           side->pair.epoch, side->ended, side->num_ops, side->pair.flags, side->pair.view_flags,
           side->dead ? ", killed" : "", side->gone ? ", gone" : "");
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        const struct ha_lane *lane = &side->pair.lane[slot];
        const struct ha_view *view = &side->pair.view[slot];
        const struct sim_qp *qp    = &side->qp[slot];

        printf("    lane %d.%u %s q %u act %u rx %u k %u drained %u asked %u usable %u | peer %d.%u "
               "%s k %u | posted %u wired %u acked %u polled %u received %u delivered %u\n",
               slot, lane->gen, ha_lane_status_name(lane->st), lane->q, lane->act, lane->rxpsn,
               lane->k, lane->drained, lane->asked, lane->usable, slot, view->gen,
               ha_lane_status_name(view->st), view->k, qp->num_wqe, qp->wired, qp->acked,
               qp->polled, qp->num_msg, qp->delivered);
    }
}

/* Run the same seed again, this time telling the story. */
static void report(struct sim_world *w, const struct options *options, uint64_t seed)
{
    uint64_t cover[SIM_COVER_LAST] = { 0 };

    trace_used = 0;
    sim_run(w, seed, options->ops, 1, cover);
    printf("FAILED seed %" PRIu64 ": %s\n", seed, w->violation);
    print_trace();
    show_side(w, 0);
    show_side(w, 1);
    printf("  again: ha_sim --seed %" PRIu64 " --schedules 1 --ops %u --verbose\n", seed, options->ops);
}

static int check_cover(const uint64_t *cover, const struct options *options)
{
    int missing = 0;

    for (int i = 0; i < SIM_COVER_LAST; i++) {
        if (options->verbose || options->schedules >= COVER_FROM)
            printf("%12" PRIu64 "  %s\n", cover[i], cover_name[i]);
        if (cover[i] == 0 && options->schedules >= COVER_FROM) {
            printf("FAILED: no schedule had '%s': this run proves nothing about it\n",
                   cover_name[i]);
            missing++;
        }
    }
    return missing;
}

static void usage(FILE *to)
{
    fprintf(to, "usage: ha_sim [--seed S] [--schedules N] [--ops N] [--verbose]\n\n"
                "Runs N schedules (default 10000) with the seeds S, S+1, ... (default 1), each with\n"
                "up to --ops operations per side (default 24, at most %d). Checks the invariants of\n"
                "docs/failover.md after every step. --verbose tells the whole story.\n"
                "Exit status 0 when every schedule passed.\n", SIM_OPS_MAX);
}

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text != NULL ? text : "", &end, 0);
    if (text == NULL || *text == '\0' || *text == '-' || *end != '\0' || errno != 0 ||
        value < min || value > max) {
        fprintf(stderr, "ha_sim: %s '%s' is not a number from %" PRIu64 " to %" PRIu64
                ". Try --help.\n", name, text != NULL ? text : "", min, max);
        exit(2);
    }
    return value;
}

static struct options parse(int argc, char **argv)
{
    struct options options = { .seed = 1, .schedules = 10000, .ops = 24 };

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
    static struct sim_world world;
    uint64_t cover[SIM_COVER_LAST] = { 0 };
    struct options options = parse(argc, argv);
    uint64_t passed = 0, failed = 0, steps = 0;

    for (uint64_t i = 0; i < options.schedules; i++) {
        uint64_t seed = options.seed + i;

        if (sim_run(&world, seed, options.ops, options.verbose ? 2 : 0, cover) == 0) {
            passed++;
        } else if (++failed <= 3) {
            report(&world, &options, seed);
        } else {
            break; /* enough to look at */
        }
        steps += world.steps;
    }
    failed += check_cover(cover, &options) != 0 && failed == 0;
    printf("%" PRIu64 " steps\n%" PRIu64 " passed, %" PRIu64 " failed\n", steps, passed, failed);
    return failed != 0;
}
