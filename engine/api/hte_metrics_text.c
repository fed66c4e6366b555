/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole numbers only: the point of a fraction is the locale's business, and that is the program's. */
#include "config.h"

#include "hte_metrics_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hte_error.h"
#include "hte_peers.h"
#include "hte_stats.h"

#define PEERS_MAX  1024 /* a text that nobody reads any more */
#define QUOTED_MAX (2 * HTE_NAME_MAX + 1)
#define LABELS_MAX (QUOTED_MAX + 64)

/* All that is told, as of one moment. */
struct picture {
    char                labels[LABELS_MAX]; /* that everything has */
    struct hte_counters counters;
    struct hte_nic_load load[HTE_RAILS_MAX];
    unsigned            n_loads;
    struct hte_peers    peers;
    size_t              shown; /* of the peers */
    uint64_t            failures;
};

struct row {
    const char *name, *type, *help;
    size_t      offset; /* of a uint64_t */
};

#define COUNTER(field_, name_, help_)                                  \
    {                                                                  \
        name_, "counter", help_, offsetof(struct hte_counters, field_) \
    }
#define GAUGE(field_, name_, help_)                                  \
    {                                                                \
        name_, "gauge", help_, offsetof(struct hte_counters, field_) \
    }

static const struct row counters[] = {
    COUNTER(requests, "requests_total", "requests that were submitted"),
    COUNTER(requests_ended, "requests_ended_total", "requests that became final, with whatever status"),
    COUNTER(slices_posted, "slices_posted_total", "slices that were posted, retries included"),
    COUNTER(slices_retried, "slices_retried_total", "slices that were posted once more after a failure"),
    COUNTER(flushes, "flushes_total", "confirmations that made WRITEs final"),
    COUNTER(ep_errors, "ep_errors_total", "connections that broke"),
    GAUGE(batches_open, "batches_open", "batches that are allocated now"),
    GAUGE(memory_regions, "memory_regions", "memory registered now"),
    COUNTER(notices_sent, "notices_sent_total", "notifications of batches that arrived, per target"),
    COUNTER(notices_dropped, "notices_dropped_total", "notifications of batches that were given up"),
    COUNTER(posts, "posts_total", "operations that slices were posted as"),
    COUNTER(posts_messages, "posts_messages_total", "operations that went by messages of the engine's own"),
    COUNTER(posts_same_host, "posts_same_host_total", "operations that this process carried out itself"),
};

/* Who adds a counter to hte.h adds it here. */
_Static_assert(sizeof(counters) / sizeof(counters[0]) ==
                   (sizeof(struct hte_counters) - offsetof(struct hte_counters, requests)) / sizeof(uint64_t),
               "counters that are not told");

#define LOAD(field_, name_, type_, help_)                          \
    {                                                              \
        name_, type_, help_, offsetof(struct hte_nic_load, field_) \
    }

static const struct row loads[] = {
    LOAD(inflight, "device_inflight_bytes", "gauge", "bytes posted on a device and not completed"),
    LOAD(bandwidth, "device_bandwidth_bytes_per_second", "gauge", "moving average of a device, 0: not known"),
    LOAD(transferred, "device_transferred_bytes_total", "counter", "bytes completed on a device"),
    LOAD(errors, "device_errors_total", "counter", "slices that failed on a device"),
    LOAD(pauses, "device_pauses_total", "counter", "times that a device was paused"),
};

#define PEER(field_, name_, help_)                                     \
    {                                                                  \
        name_, "counter", help_, offsetof(struct hte_peer_sum, field_) \
    }

static const struct row sums[] = {
    PEER(transferred, "peer_transferred_bytes_total", "bytes completed to and from a segment while it is open"),
    PEER(reconnects, "peer_reconnects_total", "times that a connection to a segment was made anew"),
};

#define ROWS(table_) (sizeof(table_) / sizeof((table_)[0]))

static uint64_t value_of(const struct row *row, const void *object)
{
    return *(const uint64_t *)((const char *)object + row->offset);
}

/* As a label's value. */
static const char *quoted(const char *from, char buf[QUOTED_MAX])
{
    size_t length = 0;

    for (; *from != '\0' && length + 2 < QUOTED_MAX; ++from) {
        if (*from == '"' || *from == '\\') {
            buf[length++] = '\\';
        }
        buf[length++] = (unsigned char)*from < ' ' ? '?' : *from;
    }
    buf[length] = '\0';
    return buf;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP hte_%s %s\n# TYPE hte_%s %s\n", name, help, name, type);
}

static void number(FILE *out, const struct picture *picture, const struct row *row, uint64_t value)
{
    head(out, row->name, row->type, row->help);
    fprintf(out, "hte_%s{%s} %" PRIu64 "\n", row->name, picture->labels, value);
}

static void put_process(FILE *out, const struct picture *picture)
{
    char            host[256] = "", program[64] = "", safe[QUOTED_MAX];
    FILE           *comm = fopen("/proc/self/comm", "re");
    struct timespec now;
    size_t          i;

    gethostname(host, sizeof(host) - 1);
    if (comm != NULL) {
        if (fscanf(comm, "%63[^\n]", program) != 1) {
            program[0] = '\0';
        }
        fclose(comm);
    }
    for (i = 0; program[i] != '\0'; ++i) {
        program[i] = (char)((program[i] & 0x80) != 0 ? '?' : program[i]); /* cut off within a letter, maybe */
    }
    head(out, "info", "gauge", "whose numbers these are");
    fprintf(out, "hte_info{%s,host=\"%s\",program=\"%s\",version=\"%s\"} 1\n", picture->labels, host,
            quoted(program, safe), PACKAGE_VERSION);
    clock_gettime(CLOCK_REALTIME, &now);
    head(out, "written_timestamp_seconds", "gauge", "when this was written, since 1970");
    fprintf(out, "hte_written_timestamp_seconds{%s} %lld.%03ld\n", picture->labels, (long long)now.tv_sec,
            now.tv_nsec / 1000000);
}

static void put_devices(FILE *out, const struct picture *picture)
{
    char     safe[QUOTED_MAX];
    size_t   row;
    unsigned i;

    for (row = 0; row < ROWS(loads); ++row) {
        head(out, loads[row].name, loads[row].type, loads[row].help);
        for (i = 0; i < picture->n_loads; ++i) {
            fprintf(out, "hte_%s{%s,device=\"%s\"} %" PRIu64 "\n", loads[row].name, picture->labels,
                    quoted(picture->load[i].device, safe), value_of(&loads[row], &picture->load[i]));
        }
    }
    head(out, "device_pause_left_seconds", "gauge", "for so long a device is not used for its errors, 0: it is");
    for (i = 0; i < picture->n_loads; ++i) {
        fprintf(out, "hte_device_pause_left_seconds{%s,device=\"%s\"} %d.%03d\n", picture->labels,
                quoted(picture->load[i].device, safe), picture->load[i].pause_left_ms / 1000,
                picture->load[i].pause_left_ms % 1000);
    }
}

static void put_peers(FILE *out, const struct picture *picture)
{
    static const char *const   ways[HTE_WAYS] = {"none", "same-host", "rdma", "messages", "emulated"};
    static const struct row    left           = {"peers_left_out", "gauge", "segments that this has no room for", 0};
    const struct hte_peer_sum *peer, *end = picture->peers.list + picture->shown;
    char                       safe[QUOTED_MAX];
    size_t                     row;
    int                        way;

    for (row = 0; row < ROWS(sums); ++row) {
        head(out, sums[row].name, sums[row].type, sums[row].help);
        for (peer = picture->peers.list; peer < end; ++peer) {
            fprintf(out, "hte_%s{%s,peer=\"%s\"} %" PRIu64 "\n", sums[row].name, picture->labels,
                    quoted(peer->segment->name, safe), value_of(&sums[row], peer));
        }
    }
    head(out, "peer_connections", "gauge", "connections to a segment that are up, by the way that they go");
    for (peer = picture->peers.list; peer < end; ++peer) {
        for (way = 0; way < HTE_WAYS; ++way) {
            if (peer->connected[way] > 0) {
                fprintf(out, "hte_peer_connections{%s,peer=\"%s\",way=\"%s\"} %u\n", picture->labels,
                        quoted(peer->segment->name, safe), ways[way], peer->connected[way]);
            }
        }
    }
    number(out, picture, &left, picture->peers.count - picture->shown);
}

static char *write_text(const struct picture *picture, size_t *length)
{
    static const struct row segments = {"segments_open", "gauge", "segments that are open now", 0};
    static const struct row failures = {"metrics_file_failures_total", "counter",
                                        "times that metrics_file could not be written", 0};
    char                   *text     = NULL;
    FILE                   *out      = open_memstream(&text, length);
    bool                    failed;
    size_t                  row;

    if (out == NULL) {
        return NULL;
    }
    put_process(out, picture);
    for (row = 0; row < ROWS(counters); ++row) {
        number(out, picture, &counters[row], value_of(&counters[row], &picture->counters));
    }
    number(out, picture, &segments, picture->peers.count);
    number(out, picture, &failures, picture->failures);
    put_devices(out, picture);
    put_peers(out, picture);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* Each try with fewer peers, in proportion to what was too much. */
static int fit(struct picture *picture, size_t size, char **text)
{
    size_t length;
    char  *made;

    for (;;) {
        made = write_text(picture, &length);
        if (made == NULL) {
            return hte_fail(HTE_ERR_MEMORY, "no memory for metrics");
        }
        if (length < size) {
            *text = made;
            return HTE_OK;
        }
        free(made);
        if (picture->shown == 0) {
            return hte_fail(HTE_ERR_LIMIT, "metrics of %zu bytes: there is room for %zu", length, size);
        }
        picture->shown = (size_t)((uint64_t)picture->shown * size / (length + 1));
    }
}

int hte_metrics_text(struct hte_engine *engine, size_t size, char **text)
{
    struct picture *picture = calloc(1, sizeof(*picture));
    char            safe[QUOTED_MAX];
    int             error;

    if (picture == NULL) {
        return hte_fail(HTE_ERR_MEMORY, "no memory for metrics");
    }
    snprintf(picture->labels, sizeof(picture->labels), "pid=\"%d\",engine=\"%s\"", (int)getpid(),
             quoted(hte_meta_name(engine->meta), safe));
    hte_stats_count(engine, &picture->counters);
    picture->failures = atomic_load(&engine->metrics_file.failures);
    for (picture->n_loads = 0; picture->n_loads < engine->rails.count; ++picture->n_loads) {
        hte_stats_load(engine, picture->n_loads, &picture->load[picture->n_loads]);
    }
    error = hte_peers_gather(engine, &picture->peers);
    if (error == HTE_OK) {
        picture->shown = picture->peers.count < PEERS_MAX ? picture->peers.count : PEERS_MAX;
        error          = fit(picture, size, text);
        hte_peers_free(&picture->peers);
    }
    free(picture);
    return error;
}
