/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_base.h"

#define BUFFER_DEFAULT (256ull << 20)

static const char help[] =
    "usage: hte_bench [options]                          target and initiator on this machine\n"
    "       hte_bench --mode=target [options]            prints the name of its segment, serves until it is stopped\n"
    "       hte_bench --mode=initiator --segment_id=NAME [options]\n"
    "       hte_bench --mode=metrics --segment_id=NAME [options]    prints what that process counts, for Prometheus\n"
    "\n"
    "  --mode=self|initiator|target|metrics   self starts the target by itself\n"
    "  --metadata_server=URL          P2PHANDSHAKE (default), http://, redis://, etcd://\n"
    "  --local_server_name=NAME       own name; peer to peer: host[:port] that others reach this one by; in mode self "
    "the\n"
    "                                 initiator's: the target is NAME-target, peer to peer host with a port of its "
    "own\n"
    "  --bind=ADDRESS                 of the handshake server\n"
    "  --segment_id=NAME              of the target; mode metrics: of any process that uses the engine\n"
    "  --operation=read|write|mix     default write\n"
    "  --buffer_size=BYTES            registered memory per side; default 256M, in mode self more if a batch needs it\n"
    "  --block_size=BYTES[,...]       per request, default 64K; several values are swept\n"
    "  --batch_size=N[,...]           requests per batch, default 128\n"
    "  --threads=N[,...]              submitting threads, default 1\n"
    "  --engine_threads=N             worker threads of the engine, default as --threads, at most 64\n"
    "  --depth=N                      batches that each thread has under way, default 4\n"
    "  --duration=SECONDS             per point, default 5\n"
    "  --device_name=LIST             devices to choose among (option devices)\n"
    "  --nic_priority_matrix=FILE     topology JSON (option topology_file)\n"
    "  --protocol=LIST                UCX_TLS\n"
    "  --set=KEY=VALUE                any option of the engine, or UCX_*; repeatable; --set=help lists them\n"
    "  --check                        compare every byte of every batch, outside of the timed part; without it a "
    "sample is\n"
    "                                 compared afterwards: 16 MiB per thread, but for a second at most\n"
    "  --baseline                     mode self: also run plain ucp_put_nbx/ucp_get_nbx, as many under way, with "
    "the same\n"
    "                                 devices and the same options of UCX\n"
    "  --rounds=N                     with --baseline: measurements of each, in turn; medians are printed, of the "
    "ratio\n"
    "                                 the median over the rounds; default 3\n"
    "  --report_unit=GB|GiB|Gb|MB|MiB|Mb   per second, default GB\n"
    "  --report_precision=N           digits, default 2\n"
    "  --csv, --json, --quiet         CSV table; JSON of the last point as last line; no line on the terminal that "
    "says "
    "what goes\n"
    "                                 on: speed, way of the requests, slices retried, requests under way\n"
    "\n"
    "Sizes take K, M, G. Exit status 0: all requests completed and all bytes compared were right.\n";

/* Digits, and maybe a unit; *end is what follows. False if it is none, or too large for 64 bits. */
static bool read_size(const char *text, char **end, uint64_t *value)
{
    static const char units[] = "KMGT";
    const char       *unit;
    unsigned          shift;

    errno  = 0;
    *value = strtoull(text, end, 10);
    if (!isdigit((unsigned char)text[0]) || errno != 0) {
        return false;
    }
    unit  = **end == '\0' ? NULL : strchr(units, toupper((unsigned char)**end));
    shift = unit == NULL ? 0 : 10 * (unsigned)(unit - units + 1);
    *end += unit != NULL;
    if (*value > UINT64_MAX >> shift) {
        return false;
    }
    *value <<= shift;
    return true;
}

uint64_t option_number(const char *name, const char *text, uint64_t min, uint64_t max)
{
    char    *end;
    uint64_t value;

    if (!read_size(text, &end, &value) || *end != '\0' || value < min || value > max) {
        die("--%s='%s' is not a number from %llu to %llu", name, text, (unsigned long long)min,
            (unsigned long long)max);
    }
    return value;
}

static void parse_sweep(const char *name, const char *text, uint64_t max, struct sweep *sweep)
{
    const char *at = text;
    char       *end;
    uint64_t    value;

    for (sweep->count = 0;; at = end + 1) {
        if (sweep->count == SWEEP_MAX) {
            die("--%s has more than %d values", name, SWEEP_MAX);
        }
        if (!read_size(at, &end, &value) || value < 1 || value > max || (*end != '\0' && *end != ',')) {
            die("--%s='%s': write numbers from 1 to %llu, separated by commas", name, text, (unsigned long long)max);
        }
        sweep->values[sweep->count++] = value;
        if (*end == '\0') {
            return;
        }
    }
}

static unsigned parse_choice(const char *name, const char *text, const char *const *choices)
{
    unsigned i;

    for (i = 0; choices[i] != NULL; ++i) {
        if (strcmp(text, choices[i]) == 0) {
            return i;
        }
    }
    die("--%s='%s' is not known; --help lists the values", name, text);
}

static void list_engine_options(void)
{
    struct hte_option_help option;
    unsigned               i;

    for (i = 0; hte_option_help(i, &option) == HTE_OK; ++i) {
        printf("%-22s %-8s %s\n", option.key, option.value, option.help);
    }
    flush_output();
    exit(0);
}

static void add_engine(struct options *options, const char *key, const char *value)
{
    if (options->n_engine == OPTIONS_MAX) {
        die("more than %d options for the engine", OPTIONS_MAX);
    }
    options->engine[options->n_engine++] = (struct hte_option){.key = key, .value = value};
}

/* The words stay as they are: mode self hands them to its target. */
static void set_engine(struct options *options, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    char       *key;

    if (strcmp(assignment, "help") == 0) {
        list_engine_options();
    }
    if (equals == NULL) {
        die("--set=%s: write KEY=VALUE", assignment);
    }
    key = strndup(assignment, (size_t)(equals - assignment));
    if (key == NULL) {
        die("no memory");
    }
    add_engine(options, key, equals + 1); /* for as long as the program runs */
}

enum id {
    ID_MODE = 256,
    ID_METADATA,
    ID_NAME,
    ID_BIND,
    ID_SEGMENT,
    ID_OPERATION,
    ID_BUFFER,
    ID_BLOCK,
    ID_BATCH,
    ID_THREADS,
    ID_ENGINE_THREADS,
    ID_DEPTH,
    ID_DURATION,
    ID_DEVICE,
    ID_MATRIX,
    ID_PROTOCOL,
    ID_SET,
    ID_CHECK,
    ID_BASELINE,
    ID_ROUNDS,
    ID_UNIT,
    ID_PRECISION,
    ID_CSV,
    ID_JSON,
    ID_QUIET,
    ID_HELP
};

static const struct option table[] = {{"mode", 1, NULL, ID_MODE},
                                      {"metadata_server", 1, NULL, ID_METADATA},
                                      {"local_server_name", 1, NULL, ID_NAME},
                                      {"bind", 1, NULL, ID_BIND},
                                      {"segment_id", 1, NULL, ID_SEGMENT},
                                      {"operation", 1, NULL, ID_OPERATION},
                                      {"buffer_size", 1, NULL, ID_BUFFER},
                                      {"block_size", 1, NULL, ID_BLOCK},
                                      {"batch_size", 1, NULL, ID_BATCH},
                                      {"threads", 1, NULL, ID_THREADS},
                                      {"engine_threads", 1, NULL, ID_ENGINE_THREADS},
                                      {"depth", 1, NULL, ID_DEPTH},
                                      {"duration", 1, NULL, ID_DURATION},
                                      {"device_name", 1, NULL, ID_DEVICE},
                                      {"nic_priority_matrix", 1, NULL, ID_MATRIX},
                                      {"protocol", 1, NULL, ID_PROTOCOL},
                                      {"set", 1, NULL, ID_SET},
                                      {"check", 0, NULL, ID_CHECK},
                                      {"baseline", 0, NULL, ID_BASELINE},
                                      {"rounds", 1, NULL, ID_ROUNDS},
                                      {"report_unit", 1, NULL, ID_UNIT},
                                      {"report_precision", 1, NULL, ID_PRECISION},
                                      {"csv", 0, NULL, ID_CSV},
                                      {"json", 0, NULL, ID_JSON},
                                      {"quiet", 0, NULL, ID_QUIET},
                                      {"help", 0, NULL, ID_HELP},
                                      {NULL, 0, NULL, 0}};

static double parse_seconds(const char *text)
{
    char  *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value > 0 && value <= 86400)) {
        die("--duration='%s' is not a number of seconds", text);
    }
    return value;
}

static void set_text(struct options *o, int id, char *value)
{
    static const char *const modes[]      = {"self", "initiator", "target", "metrics", NULL};
    static const char *const operations[] = {"read", "write", "mix", NULL};

    switch (id) {
    case ID_MODE:
        o->mode = (enum mode)parse_choice("mode", value, modes);
        break;
    case ID_OPERATION:
        o->operation = (enum operation)parse_choice("operation", value, operations);
        break;
    case ID_METADATA:
        o->metadata = value;
        break;
    case ID_NAME:
        o->name = value;
        break;
    case ID_BIND:
        o->bind_host = value;
        break;
    case ID_SEGMENT:
        o->segment = value;
        break;
    case ID_DEVICE:
        add_engine(o, "devices", value);
        break;
    case ID_MATRIX:
        add_engine(o, "topology_file", value);
        break;
    case ID_PROTOCOL:
        add_engine(o, "UCX_TLS", value);
        break;
    case ID_SET:
        set_engine(o, value);
        break;
    case ID_HELP:
        fputs(help, stdout);
        flush_output();
        exit(0);
    default:
        fputs("hte_bench --help lists the options\n", stderr);
        exit(2);
    }
}

static void set(struct options *o, int id, char *value)
{
    static const char *const units[] = {"GB", "GiB", "Gb", "MB", "MiB", "Mb", NULL};

    switch (id) {
    case ID_BUFFER:
        o->buffer_size = option_number("buffer_size", value, 4096, 1ull << 46);
        break;
    case ID_BLOCK:
        parse_sweep("block_size", value, 1ull << 40, &o->block);
        break;
    case ID_BATCH:
        parse_sweep("batch_size", value, HTE_BATCH_MAX, &o->batch);
        break;
    case ID_THREADS:
        parse_sweep("threads", value, 256, &o->threads);
        break;
    case ID_ENGINE_THREADS:
        o->engine_threads = option_number("engine_threads", value, 1, ENGINE_THREADS_MAX);
        break;
    case ID_DEPTH:
        o->depth = option_number("depth", value, 1, 64);
        break;
    case ID_DURATION:
        o->duration = parse_seconds(value);
        break;
    case ID_UNIT:
        o->unit = units[parse_choice("report_unit", value, units)];
        break;
    case ID_PRECISION:
        o->precision = option_number("report_precision", value, 0, 9);
        break;
    case ID_CHECK:
        o->check = true;
        break;
    case ID_BASELINE:
        o->baseline = true;
        break;
    case ID_ROUNDS:
        o->rounds = option_number("rounds", value, 1, ROUNDS_MAX);
        break;
    case ID_CSV:
        o->csv = true;
        break;
    case ID_JSON:
        o->json = true;
        break;
    case ID_QUIET:
        o->quiet = true;
        break;
    default:
        set_text(o, id, value);
        break;
    }
}

static uint64_t largest(const struct sweep *sweep)
{
    uint64_t value = 0;
    unsigned i;

    for (i = 0; i < sweep->count; ++i) {
        value = sweep->values[i] > value ? sweep->values[i] : value;
    }
    return value;
}

/* Each thread has its part of the buffer, and its batch must fit there. */
static void set_buffer_size(struct options *o)
{
    uint64_t threads = largest(&o->threads), batch = largest(&o->batch), block = largest(&o->block), share, need;
    uint64_t free_memory = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    if (__builtin_mul_overflow(batch, block, &share) || __builtin_add_overflow(share, 63, &share) ||
        __builtin_mul_overflow(share & ~63ull, threads, &need)) {
        need = UINT64_MAX;
    }
    if (o->buffer_size == 0) {
        o->buffer_size = o->mode == MODE_SELF && need > BUFFER_DEFAULT ? need : BUFFER_DEFAULT;
    }
    if (o->mode == MODE_SELF && need > free_memory / 2) {
        die("--threads=%llu with --batch_size=%llu and --block_size=%llu: more memory, twice, than the %lluM that are "
            "free; "
            "take a smaller batch",
            (unsigned long long)threads, (unsigned long long)batch, (unsigned long long)block,
            (unsigned long long)free_memory >> 20);
    }
    if ((o->mode == MODE_SELF || o->mode == MODE_INITIATOR) && o->buffer_size < need) {
        die("--threads=%llu with --batch_size=%llu and --block_size=%llu need --buffer_size=%lluM or more, on both "
            "sides; "
            "it is %llu bytes",
            (unsigned long long)threads, (unsigned long long)batch, (unsigned long long)block,
            (unsigned long long)((need + (1 << 20) - 1) >> 20), (unsigned long long)o->buffer_size);
    }
}

void options_parse(struct options *o, int argc, char **argv)
{
    int id;

    *o = (struct options){
        .operation = OPERATION_WRITE,
        .block     = {.values = {65536}, .count = 1},
        .batch     = {.values = {128}, .count = 1},
        .threads   = {.values = {1}, .count = 1},
        .depth     = 4, /* with batches of 128 slices all that the engine takes at once: see HTE_WINDOWS */
        .duration  = 5,
        .rounds    = 3,
        .unit      = "GB",
        .precision = 2,
    };
    while ((id = getopt_long(argc, argv, "", table, NULL)) != -1) {
        set(o, id, optarg);
    }
    if (optind < argc) {
        die("'%s' is not an option; --help lists them", argv[optind]);
    }
    if (o->mode == MODE_INITIATOR && o->segment == NULL) {
        die("--mode=initiator needs --segment_id: the name that the target printed");
    }
    if (o->mode == MODE_METRICS && o->segment == NULL) {
        die("--mode=metrics needs --segment_id: what hte_local_name() gives in the process that is meant");
    }
    if (o->baseline && o->mode != MODE_SELF) {
        die("--baseline is for mode self; between hosts, compare with ucx_perftest -t ucp_put_bw");
    }
    if (o->baseline && o->operation == OPERATION_MIX) {
        die("--baseline is for --operation=read or write");
    }
    if (o->baseline && strcmp(engine_text(o, "devices"), "rdma") == 0) {
        die("--baseline cannot have devices 'rdma', which UCX does not know: name them, as in "
            "--device_name=mlx5_0:1,mlx5_1:1");
    }
    set_buffer_size(o);
}

const char *engine_text(const struct options *o, const char *key)
{
    struct hte_option_help help;
    const char            *value = "";
    char                   name[64];
    unsigned               i;

    for (i = 0; hte_option_help(i, &help) == HTE_OK; ++i) {
        value = strcmp(help.key, key) == 0 ? help.value : value;
    }
    snprintf(name, sizeof(name), "HTE_%s", key);
    for (i = 0; name[i] != '\0'; ++i) {
        name[i] = (char)toupper((unsigned char)name[i]);
    }
    value = getenv(name) != NULL ? getenv(name) : value;
    for (i = 0; i < o->n_engine; ++i) {
        value = strcmp(o->engine[i].key, key) == 0 ? o->engine[i].value : value;
    }
    return value;
}

uint64_t engine_number(const struct options *o, const char *key)
{
    return option_number(key, engine_text(o, key), 0, UINT64_MAX);
}
