/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hte_error.h"
#include "core/hte_pick.h"
#include "core/hte_rail_state.h"

enum kind { KIND_NUMBER, KIND_CHOICE, KIND_TEXT };

struct row {
    const char        *key, *value, *help;
    size_t             offset;
    enum kind          kind;
    uint64_t           min, max;
    const char *const *choices; /* by value; NULL is the end */
};

static const char *const policies[] = {
    [HTE_POLICY_RANDOM] = "random", [HTE_POLICY_ROUND_ROBIN] = "round_robin", [HTE_POLICY_LOAD] = "load", NULL};
static const char *const moves[] = {
    [HTE_MOVES_AUTO] = "auto", [HTE_MOVES_RMA] = "rma", [HTE_MOVES_LETTERS] = "messages", NULL};

static const char *const same_host[] = {
    [HTE_SAME_HOST_AUTO] = "auto", [HTE_SAME_HOST_ON] = "on", [HTE_SAME_HOST_OFF] = "off", NULL};
static const char *const require[] = {
    [HTE_REQUIRE_ANY] = "any", [HTE_REQUIRE_RDMA] = "rdma", [HTE_REQUIRE_SAME_HOST] = "same-host", NULL};

#define NUMBER(key_, offset_, value_, min_, max_, help_)                                                              \
    {                                                                                                                 \
        .key = key_, .offset = offset_, .value = value_, .kind = KIND_NUMBER, .min = min_, .max = max_, .help = help_ \
    }
#define AT(name) offsetof(struct hte_settings, name)

static const struct row rows[] = {
    NUMBER("threads", AT(threads), "2", 1, 64, "worker threads; each drives its own UCP worker per device"),
    NUMBER("slice_size", AT(slice_size), "64K", 4096, 1ull << 40, "bytes of a slice"),
    NUMBER("run_size", AT(run_size), "1M", 0, 1ull << 40,
           "with one device, neighbouring slices are one operation of up to this many bytes; 0 = never"),
    NUMBER("fragment_size", AT(fragment_size), "16K", 0, 1ull << 40,
           "a rest of at most this many bytes joins the slice before it"),
    NUMBER("split_size", AT(split_size), "1M", 4096, 1ull << 40,
           "a request is divided among threads when each gets at least this many bytes"),
    NUMBER("window", AT(window), "128", 1, 65536,
           "slices for one target that UCX has of a thread; with those that wait for a confirmation or retry up to "
           "four times as many are out; several targets share twice that"),
    NUMBER("retry_count", AT(retry_count), "9", 0, 250, "retries of a slice before its request fails"),
    NUMBER("slice_timeout_ms", AT(slice_timeout_ms), "0", 0, 65535000,
           "a slice posted for so long, gives its request TIMEOUT; over RDMA it ends its connection, too; 0 = off"),
    NUMBER("poll_us", AT(poll_us), "20", 0, 1000000,
           "a worker thread polls for so long without success before it sleeps"),
    {.key     = "policy",
     .offset  = AT(policy),
     .value   = "load",
     .kind    = KIND_CHOICE,
     .choices = policies,
     .help    = "choice among devices: random, round_robin or load (least predicted time)"},
    {.key     = "moves",
     .offset  = AT(moves),
     .value   = "auto",
     .kind    = KIND_CHOICE,
     .choices = moves,
     .help    = "how bytes are moved: rma: by UCX's put and get, also where UCX emulates them (over tcp a peer's death "
                "then ends this process); messages: by active messages of the engine's own; auto: by put and get where "
                "a transport with hardware for it is used, else by messages"},
    {.key     = "same_host",
     .offset  = AT(same_host),
     .value   = "auto",
     .kind    = KIND_CHOICE,
     .choices = same_host,
     .help    = "processes of one host reach each other's memory without UCX, where the system allows it; auto: unless "
                "moves is set, or UCX_TLS names transports and none for shared memory; on; off"},
    {.key     = "require",
     .offset  = AT(require),
     .value   = "any",
     .kind    = KIND_CHOICE,
     .choices = require,
     .help    = "what a connection must be, else its requests fail with ENDPOINT and hte_segment_way() says why: rdma "
                "(a transport with hardware for it), same-host, any"},
    {.key    = "devices",
     .offset = AT(devices),
     .value  = "",
     .kind   = KIND_TEXT,
     .help   = "UCX devices that the engine chooses among slice by slice, as in mlx5_0:1,mlx5_1:1; devices joined by + "
               "are one choice; one that this machine has not is an error; rdma: all active RDMA ports; empty: one "
               "choice, whatever UCX takes (right for ha_rc)"},
    {.key    = "topology_file",
     .offset = AT(topology_file),
     .value  = "",
     .kind   = KIND_TEXT,
     .help   = "JSON with preferred and available devices per location; empty: by NUMA node from sysfs"},
    NUMBER("rail_errors", AT(rail_errors), "5", 1, HTE_RAIL_ERRORS_MAX,
           "errors within rail_window_ms that pause a device"),
    NUMBER("rail_window_ms", AT(rail_window_ms), "5000", 1, 3600000, "see rail_errors"),
    NUMBER("rail_pause_ms", AT(rail_pause_ms), "30000", 1, 3600000,
           "first pause of a device; each further one is twice as long"),
    NUMBER("rail_pause_max_ms", AT(rail_pause_max_ms), "300000", 1, 86400000, "longest pause"),
    NUMBER("pretouch_size", AT(pretouch_size), "1G", 0, UINT64_MAX,
           "memory of this size and above is touched by several threads before it is registered; 0 = never"),
    NUMBER("handshake_timeout_ms", AT(handshake_timeout_ms), "5000", 1, 600000,
           "for a peer's or store's answer, connecting included"),
    NUMBER("handshake_max", AT(handshake_max), "1M", 1ull << 20, 64ull << 20,
           "bytes of a descriptor or message between processes; thousands of buffers need more, on all sides"),
    NUMBER("connect_timeout_ms", AT(connect_timeout_ms), "5000", 1, 600000,
           "of that, for a TCP connection to a peer or store"),
    NUMBER("shutdown_timeout_ms", AT(shutdown_timeout_ms), "5000", 0, 600000,
           "hte_destroy() breaks connections off after it"),
    NUMBER("keepalive_ms", AT(keepalive_ms), "10000", 0, 3600000,
           "interval of UCX's test whether peers live, which finds processes and machines that are gone; one that "
           "stands still is waited for where its kernel answers for it, as with tcp and shared memory (bound: "
           "slice_timeout_ms); not used where UCX_KEEPALIVE_INTERVAL is set; 0 = UCX's own default"),
    NUMBER("notify_max", AT(notify_max), "65536", 1, 1u << 24, "notifications kept until they are drained"),
    NUMBER("segments_max", AT(segments_max), "4096", 1, 65534, "segments open at a time"),
    NUMBER("batches_max", AT(batches_max), "65536", 1, 1u << 24, "batches allocated at a time"),
    {.key    = "cluster",
     .offset = AT(cluster),
     .value  = "",
     .kind   = KIND_TEXT,
     .help   = "part of the keys in a metadata store, to keep clusters apart"},
    {.key    = "metrics_file",
     .offset = AT(metrics_file),
     .value  = "",
     .kind   = KIND_TEXT,
     .help =
         "file that has what hte_metrics() tells, for Prometheus' node_exporter, while the engine lives, for "
         "example /run/hte/%h.%p.prom: %h is the host, %p the process, with .2 behind it for its second such engine "
         "and so on; on a local file system; empty: none"},
    NUMBER("metrics_interval_ms", AT(metrics_interval_ms), "1000", 100, 3600000, "how often that file is written"),
    {.key    = "secret",
     .offset = AT(secret),
     .value  = "",
     .kind   = KIND_TEXT,
     .help   = "shared secret of the cluster, at least 16 characters; empty: none is asked"},
};

#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))

int hte_option_help(unsigned index, struct hte_option_help *help)
{
    if (index >= NUM_ROWS || help == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "there are %zu options", NUM_ROWS);
    }
    *help = (struct hte_option_help){.key = rows[index].key, .value = rows[index].value, .help = rows[index].help};
    return HTE_OK;
}

static int parse_number(const struct row *row, const char *value, uint64_t *number)
{
    static const char units[] = "KMGT";
    const char       *unit;
    char             *end;
    uint64_t          shift = 0;

    errno   = 0;
    *number = strtoull(value, &end, 10);
    if (errno == 0 && end != value && *end != '\0') {
        unit  = strchr(units, toupper((unsigned char)*end));
        shift = unit == NULL ? 0 : 10 * (uint64_t)(unit - units + 1);
        end += unit != NULL;
    }
    if (!isdigit((unsigned char)value[0]) || errno != 0 || *end != '\0' || *number > UINT64_MAX >> shift ||
        *number << shift < row->min || *number << shift > row->max) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT,
                        "option %s='%s': write a whole number from %llu to %llu, with K, M, G or T for powers of 1024",
                        row->key, value, (unsigned long long)row->min, (unsigned long long)row->max);
    }
    *number <<= shift;
    return HTE_OK;
}

static int parse_choice(const struct row *row, const char *value, uint64_t *choice)
{
    char   all[128] = "";
    size_t i;

    for (i = 0; row->choices[i] != NULL; ++i) {
        if (strcmp(value, row->choices[i]) == 0) {
            *choice = i;
            return HTE_OK;
        }
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
                 i == 0                ? ""
                 : row->choices[i + 1] ? ", "
                                       : " or ",
                 row->choices[i]);
    }
    return hte_fail(HTE_ERR_INVALID_ARGUMENT, "option %s='%s': write %s", row->key, value, all);
}

static int set_text(char **field, const char *value)
{
    char *copy = strdup(value);

    if (copy == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for an option");
    }
    free(*field);
    *field = copy;
    return HTE_OK;
}

static int set_row(struct hte_settings *settings, const struct row *row, const char *value)
{
    void *field = (char *)settings + row->offset;

    switch (row->kind) {
    case KIND_NUMBER:
        return parse_number(row, value, field);
    case KIND_CHOICE:
        return parse_choice(row, value, field);
    case KIND_TEXT:
        break;
    }
    return set_text(field, value);
}

static int set_from_environment(struct hte_settings *settings, const struct row *row)
{
    char        name[64];
    const char *value;
    size_t      i;

    snprintf(name, sizeof(name), "HTE_%s", row->key);
    for (i = 0; name[i] != '\0'; ++i) {
        name[i] = (char)toupper((unsigned char)name[i]);
    }
    value = getenv(name);
    return value == NULL ? HTE_OK : set_row(settings, row, value);
}

static int set_option(struct hte_settings *settings, const struct hte_option *option)
{
    size_t i;

    if (option->key == NULL || option->value == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "an option's key or value is NULL");
    }
    if (strncmp(option->key, "UCX_", 4) == 0) {
        return HTE_OK; /* for UCX, see hte_rail.c */
    }
    for (i = 0; i < NUM_ROWS; ++i) {
        if (strcmp(option->key, rows[i].key) == 0) {
            return set_row(settings, &rows[i], option->value);
        }
    }
    return hte_fail(HTE_ERR_INVALID_ARGUMENT, "option '%s' does not exist; hte_option_help() lists them", option->key);
}

static int set_all(struct hte_settings *settings, const struct hte_config *config)
{
    size_t i;
    int    error = HTE_OK;

    for (i = 0; i < NUM_ROWS && error == HTE_OK; ++i) {
        error = set_row(settings, &rows[i], rows[i].value);
    }
    for (i = 0; i < NUM_ROWS && error == HTE_OK; ++i) {
        error = set_from_environment(settings, &rows[i]);
    }
    for (i = 0; i < config->n_options && error == HTE_OK; ++i) {
        error = set_option(settings, &config->options[i]);
    }
    return error;
}

/* What UCX will go by. */
static const char *transports(const struct hte_config *config)
{
    const char *value = getenv("UCX_TLS");
    size_t      i;

    for (i = 0; i < config->n_options; ++i) {
        if (strcmp(config->options[i].key, "UCX_TLS") == 0) {
            value = config->options[i].value;
        }
    }
    return value;
}

/* Who names his transports gets those. */
static bool has_shared_memory(const char *names)
{
    static const char *const shared[] = {"all", "sm", "shm", "mm", "posix", "sysv", "cma", "knem", "xpmem"};
    size_t                   i, length;

    if (names == NULL || names[0] == '\0' || names[0] == '^') {
        return true;
    }
    for (; *names != '\0'; names += length + (names[length] != '\0')) {
        length = strcspn(names, ",");
        for (i = 0; i < sizeof(shared) / sizeof(shared[0]); ++i) {
            if (length == strlen(shared[i]) && strncmp(names, shared[i], length) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void decide_same_host(struct hte_settings *settings, const struct hte_config *config)
{
    bool is_wanted = settings->moves == HTE_MOVES_AUTO && has_shared_memory(transports(config));

    if (settings->same_host == HTE_SAME_HOST_AUTO) {
        is_wanted |= settings->require == HTE_REQUIRE_SAME_HOST;
        settings->same_host = is_wanted && settings->require != HTE_REQUIRE_RDMA ? HTE_SAME_HOST_ON : HTE_SAME_HOST_OFF;
    }
}

static int check_same_host(const struct hte_settings *settings)
{
    if (settings->require == HTE_REQUIRE_SAME_HOST && settings->same_host == HTE_SAME_HOST_OFF) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "option require='same-host' with same_host='off': nothing is left");
    }
    return HTE_OK;
}

int hte_settings_init(struct hte_settings *settings, const struct hte_config *config)
{
    int error;

    *settings = (struct hte_settings){.ucx = config->options, .n_options = config->n_options};
    if (config->n_options > 0 && config->options == NULL) {
        return hte_fail(HTE_ERR_INVALID_ARGUMENT, "config.options is NULL but n_options is %zu", config->n_options);
    }
    error = set_all(settings, config);
    if (error == HTE_OK) {
        error = check_same_host(settings);
        decide_same_host(settings, config);
    }
    if (error != HTE_OK) {
        hte_settings_cleanup(settings);
    }
    return error;
}

void hte_settings_cleanup(struct hte_settings *settings)
{
    free(settings->devices);
    free(settings->topology_file);
    free(settings->cluster);
    free(settings->metrics_file);
    free(settings->secret);
    *settings = (struct hte_settings){0};
}
