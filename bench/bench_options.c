/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A window of messages is held in memory when it is verified. */
#define MEMORY_MAX ((size_t)1 << 30)

struct parser {
    struct bench_options *options;
    char                 *message;
    size_t                message_size;
};

struct option {
    const char *name;
    const char *argument; /* NULL: a switch */
    bool        bw_only;
    const char *help;
    bool (*parse)(struct parser *parser, const char *name, const char *value);
};

static bool bad(struct parser *p, const char *name, const char *value, const char *wanted)
{
    (void)snprintf(p->message, p->message_size, "%s: '%s' is not %s", name, value, wanted);
    return false;
}

/* 4096, 64K, 4M; false when it is not a positive size. */
static bool size_read(const char *text, char **end, size_t *size)
{
    unsigned long long value;
    unsigned           shift = 0;

    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    value = strtoull(text, end, 10);
    switch (**end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    *end += shift ? 1 : 0;
    if (errno || value == 0 || value > (unsigned long long)(INT_MAX >> shift)) {
        return false;
    }
    *size = (size_t)value << shift;
    return true;
}

static bool parse_size(struct parser *p, const char *name, const char *value)
{
    const char *wanted = "a size or MIN:MAX, 1 byte to 2 GiB, like 65536, 64K or 8:1M";
    char       *end;

    if (!size_read(value, &end, &p->options->size_min)) {
        return bad(p, name, value, wanted);
    }
    p->options->size_max = p->options->size_min;
    if (*end == ':' && !size_read(end + 1, &end, &p->options->size_max)) {
        return bad(p, name, value, wanted);
    }
    if (*end != '\0' || p->options->size_max < p->options->size_min) {
        return bad(p, name, value, wanted);
    }
    return true;
}

static bool integer_read(const char *text, int64_t min, int64_t max, int64_t *number)
{
    char *end;

    errno   = 0;
    *number = strtoll(text, &end, 10);
    return !errno && end != text && *end == '\0' && *number >= min && *number <= max;
}

static bool seconds_read(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds > 0 && *seconds < 1e6;
}

static bool parse_window(struct parser *p, const char *name, const char *value)
{
    int64_t number;

    if (!integer_read(value, 1, 65536, &number)) {
        return bad(p, name, value, "a number of messages from 1 to 65536");
    }
    p->options->window = (int)number;
    return true;
}

static bool parse_iters(struct parser *p, const char *name, const char *value)
{
    return integer_read(value, 1, INT64_MAX, &p->options->iters) || bad(p, name, value, "a positive number");
}

static bool parse_seconds(struct parser *p, const char *name, const char *value)
{
    return seconds_read(value, &p->options->seconds) || bad(p, name, value, "a positive number of seconds");
}

static bool parse_stall(struct parser *p, const char *name, const char *value)
{
    return seconds_read(value, &p->options->stall) || bad(p, name, value, "a positive number of seconds");
}

static bool parse_interval(struct parser *p, const char *name, const char *value)
{
    int64_t number;

    if (!integer_read(value, 1, 60000, &number)) {
        return bad(p, name, value, "a number of milliseconds from 1 to 60000");
    }
    p->options->interval_ms = (int)number;
    return true;
}

static bool parse_seed(struct parser *p, const char *name, const char *value)
{
    int64_t number;

    if (!integer_read(value, 0, INT64_MAX, &number)) {
        return bad(p, name, value, "a number from 0 on");
    }
    p->options->seed = (uint64_t)number;
    return true;
}

static bool parse_csv(struct parser *p, const char *name, const char *value)
{
    p->options->csv = value;
    return value[0] != '\0' || bad(p, name, value, "a file name");
}

static bool parse_json(struct parser *p, const char *name, const char *value)
{
    p->options->json = strcmp(value, "-") == 0 ? NULL : value;
    return value[0] != '\0' || bad(p, name, value, "a file name or -");
}

static bool parse_verify(struct parser *p, const char *name, const char *value)
{
    (void)name, (void)value;
    return p->options->verify = true;
}

static bool parse_bidir(struct parser *p, const char *name, const char *value)
{
    (void)name, (void)value;
    return p->options->bidir = true;
}

static bool parse_help(struct parser *p, const char *name, const char *value)
{
    (void)name, (void)value;
    return p->options->help = true;
}

static const struct option option_table[] = {
    {"--size", "BYTES[:MAX]", false, "message size, or sizes doubling up to MAX", parse_size},
    {"--window", "N", true, "messages in flight before an acknowledgement (64)", parse_window},
    {"--iters", "N", false, "windows (round trips) per size; default as osu_bw", parse_iters},
    {"--seconds", "S", false, "measure each size for S seconds instead", parse_seconds},
    {"--verify", NULL, false, "check every byte, order, loss, duplicates, late writes", parse_verify},
    {"--bidir", NULL, true, "both ranks send", parse_bidir},
    {"--csv", "FILE", true, "throughput over time, written by the receiver (rank 1)", parse_csv},
    {"--interval", "MS", true, "length of one row of --csv (100)", parse_interval},
    {"--json", "FILE", false, "result to FILE too; - (default): only the last line of stdout", parse_json},
    {"--stall", "S", false, "give up when no message arrives for S seconds", parse_stall},
    {"--seed", "N", false, "of the pattern that --verify checks (1)", parse_seed},
    {"--help", NULL, false, "this text", parse_help},
};
#define OPTION_COUNT (sizeof(option_table) / sizeof(option_table[0]))

static const struct option *option_find(enum bench_program program, const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++) {
        if (strlen(option_table[i].name) == length && strncmp(option_table[i].name, name, length) == 0 &&
            !(option_table[i].bw_only && program != BENCH_BW)) {
            return &option_table[i];
        }
    }
    return NULL;
}

static bool options_consistent(struct parser *p)
{
    const struct bench_options *o = p->options;

    if (o->iters && o->seconds > 0) {
        (void)snprintf(p->message, p->message_size, "--iters and --seconds: give one of them");
        return false;
    }
    if (o->verify && (size_t)o->window > MEMORY_MAX / o->size_max) {
        (void)snprintf(p->message, p->message_size,
                       "--verify keeps a window in memory: %d messages of %zu bytes are more "
                       "than 1 GiB; use a smaller --window or --size",
                       o->window, o->size_max);
        return false;
    }
    return true;
}

static void options_default(enum bench_program program, struct bench_options *options)
{
    *options = (struct bench_options){
        .size_min    = program == BENCH_BW ? 65536 : 8,
        .size_max    = program == BENCH_BW ? 65536 : 8,
        .window      = program == BENCH_BW ? 64 : 1,
        .interval_ms = 100,
        .seed        = 1,
    };
}

bool bench_options_parse(enum bench_program program, int argc, char **argv, struct bench_options *options,
                         char *message, size_t message_size)
{
    struct parser parser = {options, message, message_size};
    int           i;

    options_default(program, options);
    for (i = 1; i < argc; i++) {
        size_t               length = strcspn(argv[i], "=");
        const struct option *option = option_find(program, argv[i], length);
        const char          *value  = argv[i][length] == '=' ? argv[i] + length + 1 : NULL;

        if (!option) {
            (void)snprintf(message, message_size, "unknown option '%s'; --help lists them", argv[i]);
            return false;
        }
        if (!option->argument && value) {
            (void)snprintf(message, message_size, "%s takes no value", option->name);
            return false;
        }
        if (option->argument && !value && i + 1 < argc) {
            value = argv[++i];
        }
        if (option->argument && !value) {
            (void)snprintf(message, message_size, "%s needs %s", option->name, option->argument);
            return false;
        }
        if (!option->parse(&parser, option->name, value)) {
            return false;
        }
    }
    return options_consistent(&parser);
}

void bench_options_usage(enum bench_program program, FILE *out)
{
    size_t i;

    (void)fprintf(out, program == BENCH_BW ? "usage: mpirun -np 2 ha_bw [options]\n"
                                             "Bandwidth from rank 0 to rank 1, with the meaning of osu_bw.\n"
                                           : "usage: mpirun -np 2 ha_lat [options]\n"
                                             "Half round trip time between two ranks, as osu_latency.\n");
    for (i = 0; i < OPTION_COUNT; i++) {
        const struct option *o = &option_table[i];
        char                 left[40];

        if (o->bw_only && program != BENCH_BW) {
            continue;
        }
        (void)snprintf(left, sizeof(left), "%s %s", o->name, o->argument ? o->argument : "");
        (void)fprintf(out, "  %-22s %s\n", left, o->help);
    }
}
