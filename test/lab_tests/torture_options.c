/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "torture.h"

static const char *const kind_names[KIND_COUNT] = {"tag", "am", "put", "get", "atomic"};
static const char *const size_names[]           = {"mixed", "small", "large", "bulk"};
static const char *const plant_names[]          = {[PLANT_LOST] = "lost",           [PLANT_DUPLICATE] = "duplicate",
                                                   [PLANT_REORDERED] = "reordered", [PLANT_CORRUPT] = "corrupt",
                                                   [PLANT_STALE] = "stale",         [PLANT_ATOMIC] = "atomic",
                                                   [PLANT_ERROR] = "error",         [PLANT_FD] = "fd",
                                                   [PLANT_MEMORY] = "memory"};

static void usage(FILE *to)
{
    fprintf(to, "usage: ha_torture --port P [options]              (server)\n"
                "       ha_torture --port P --host HOST [options]  (client; dictates * to the server)\n"
                "  --ops KIND,...       * tag, am, put, get, atomic (default: all)\n"
                "  --eps N              * endpoints, each with all this traffic (default 1)\n"
                "  --sizes KIND         * mixed (default), small (to 1 KiB), large or bulk (above 64 KiB)\n"
                "  --seconds N          * start operations for so long (default 10)\n"
                "  --failovers N        * ... or until the transport failed over N times\n"
                "  --window N           * operations outstanding per side (default 4096)\n"
                "  --seed S             * of sizes, contents and order (default 1)\n"
                "  --oneway             * only the client starts operations\n"
                "  --busy MS              compute MS of every second, without any UCX call\n"
                "  --wakeup               sleep on the event fd when there is nothing to do\n"
                "  --peer-err           * UCP_ERR_HANDLING_MODE_PEER with an error handler\n"
                "  --progress FILE        one line there, renewed 20 times a second\n"
                "  --stall-limit S        give up after so long without any progress (default 60)\n"
                "  --leave                do not wait for the peer when closing\n"
                "  --linger S             stay S seconds after the end, the peer may be gone\n"
                "  --quiet                no status line every second\n"
                "  --hold S               when all is closed, say so and stay S seconds (or until SIGUSR1)\n"
                "  --gaps MS              a line for each longer time in which no message arrived\n"
                "  --series FILE          received throughput, as CSV\n"
                "  --plant FAULT          make a mistake that must be noticed: lost, duplicate, reordered,\n"
                "                         corrupt, stale, atomic, error; or leak: fd, memory\n"
                "SIGUSR1 tells the client to stop early.\n"
                "Exit status: 0 all right, 1 wrong data, 2 usage, 3 endpoint error,\n"
                "4 no progress or peer gone without endpoint error, 5 stuck inside UCX.\n");
}

static unsigned parse_number(const char *option, const char *text, unsigned most)
{
    char         *end;
    unsigned long value = strtoul(text, &end, 0);

    if (*text == '\0' || *end != '\0' || value > most) {
        fprintf(stderr, "ha_torture: %s needs a number up to %u, not '%s'\n", option, most, text);
        exit(EXIT_USAGE);
    }
    return (unsigned)value;
}

static uint32_t parse_ops(char *text)
{
    uint32_t ops = 0;

    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        unsigned kind = 0;

        while (kind < KIND_COUNT && strcmp(name, kind_names[kind]) != 0) {
            kind++;
        }
        if (kind == KIND_COUNT) {
            fprintf(stderr, "ha_torture: --ops knows tag, am, put, get and atomic, not '%s'\n", name);
            exit(EXIT_USAGE);
        }
        ops |= 1u << kind;
    }
    return ops;
}

static enum torture_plant parse_plant(const char *text)
{
    for (unsigned i = 1; i < sizeof(plant_names) / sizeof(plant_names[0]); i++) {
        if (strcmp(text, plant_names[i]) == 0) {
            return (enum torture_plant)i;
        }
    }
    fprintf(stderr, "ha_torture: --plant knows no fault '%s', see --help\n", text);
    exit(EXIT_USAGE);
}

static uint32_t parse_sizes(const char *text)
{
    for (uint32_t i = 0; i < sizeof(size_names) / sizeof(size_names[0]); i++) {
        if (strcmp(text, size_names[i]) == 0) {
            return i;
        }
    }
    fprintf(stderr, "ha_torture: --sizes knows mixed, small, large and bulk, not '%s'\n", text);
    exit(EXIT_USAGE);
}

enum {
    O_HOST,
    O_PORT,
    O_OPS,
    O_SIZES,
    O_SECONDS,
    O_FAILOVERS,
    O_WINDOW,
    O_SEED,
    O_ONEWAY,
    O_BUSY,
    O_WAKEUP,
    O_PEER_ERR,
    O_PROGRESS,
    O_STALL,
    O_LEAVE,
    O_LINGER,
    O_QUIET,
    O_EPS,
    O_PLANT,
    O_GAPS,
    O_SERIES,
    O_HOLD,
    O_HELP
};

static const struct option options[] = {
    {"host", 1, NULL, O_HOST},         {"port", 1, NULL, O_PORT},         {"ops", 1, NULL, O_OPS},
    {"sizes", 1, NULL, O_SIZES},       {"seconds", 1, NULL, O_SECONDS},   {"failovers", 1, NULL, O_FAILOVERS},
    {"window", 1, NULL, O_WINDOW},     {"seed", 1, NULL, O_SEED},         {"oneway", 0, NULL, O_ONEWAY},
    {"busy", 1, NULL, O_BUSY},         {"wakeup", 0, NULL, O_WAKEUP},     {"peer-err", 0, NULL, O_PEER_ERR},
    {"progress", 1, NULL, O_PROGRESS}, {"stall-limit", 1, NULL, O_STALL}, {"leave", 0, NULL, O_LEAVE},
    {"linger", 1, NULL, O_LINGER},     {"quiet", 0, NULL, O_QUIET},       {"eps", 1, NULL, O_EPS},
    {"gaps", 1, NULL, O_GAPS},         {"series", 1, NULL, O_SERIES},     {"plant", 1, NULL, O_PLANT},
    {"hold", 1, NULL, O_HOLD},         {"help", 0, NULL, O_HELP},         {NULL, 0, NULL, 0},
};

/* What the client dictates to the server. Returns 0 when the option is another one. */
static int parse_plan_option(struct torture_plan *plan, int option)
{
    switch (option) {
    case O_OPS:
        plan->ops = parse_ops(optarg);
        break;
    case O_SIZES:
        plan->sizes = parse_sizes(optarg);
        break;
    case O_SECONDS:
        plan->seconds = parse_number("--seconds", optarg, 1u << 30);
        break;
    case O_FAILOVERS:
        plan->max_failovers = parse_number("--failovers", optarg, 1u << 30);
        break;
    case O_WINDOW:
        plan->window = parse_number("--window", optarg, 1u << 20);
        break;
    case O_SEED:
        plan->seed = parse_number("--seed", optarg, UINT32_MAX);
        break;
    case O_ONEWAY:
        plan->oneway = 1;
        break;
    case O_PEER_ERR:
        plan->peer_err = 1;
        break;
    case O_EPS:
        plan->eps = parse_number("--eps", optarg, MAX_EPS);
        break;
    default:
        return 0;
    }
    return 1;
}

static void parse_option(struct torture_options *opt, int option)
{
    if (parse_plan_option(&opt->plan, option)) {
        return;
    }
    switch (option) {
    case O_HOST:
        opt->host = optarg;
        break;
    case O_PORT:
        opt->port = parse_number("--port", optarg, 65535);
        break;
    case O_BUSY:
        opt->busy_ms = parse_number("--busy", optarg, 999);
        break;
    case O_WAKEUP:
        opt->wakeup = 1;
        break;
    case O_PROGRESS:
        opt->progress_file = optarg;
        break;
    case O_STALL:
        opt->stall_limit = parse_number("--stall-limit", optarg, 3600);
        break;
    case O_LEAVE:
        opt->leave = 1;
        break;
    case O_LINGER:
        opt->linger = parse_number("--linger", optarg, 3600);
        break;
    case O_QUIET:
        opt->quiet = 1;
        break;
    case O_GAPS:
        opt->gap_ms = parse_number("--gaps", optarg, 60000);
        break;
    case O_SERIES:
        opt->series_file = optarg;
        break;
    case O_HOLD:
        opt->hold = parse_number("--hold", optarg, 3600);
        break;
    case O_PLANT:
        opt->plant = parse_plant(optarg);
        break;
    case O_HELP:
        usage(stdout);
        exit(0);
    default:
        usage(stderr);
        exit(EXIT_USAGE);
    }
}

void options_parse(struct torture_options *opt, int argc, char **argv)
{
    int option;

    opt->plan        = (struct torture_plan){.seed = 1, .seconds = 10, .window = 4096, .ops = 31, .eps = 1};
    opt->stall_limit = 60;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        parse_option(opt, option);
    }
    if (optind < argc || opt->port == 0 || opt->plan.window == 0 || opt->plan.ops == 0 || opt->plan.eps == 0) {
        usage(stderr);
        exit(EXIT_USAGE);
    }
}
