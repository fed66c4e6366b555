/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/prom_text.h"

#include "base/stats.h"
#include "core/ha_name.h"
#include "ctl/watch.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "pair/report.h"
#include "uct_ha_counters.h"

#include <config.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define PATHS_MAX 1024 /* a file that nobody reads any more */
#define NAME_MAX_ 64

/* A rail towards a peer. */
struct path {
    char     rail[HA_RAIL_NAME_MAX], peer[UCT_HA_ADDR_TEXT_MAX];
    uint64_t cookie;
    unsigned usable, active, standby, failures;
    double   silent, cooldown, lost, round_trip;
};

struct text {
    FILE        *file;
    int          pid;
    struct path *paths;
    unsigned     num_paths, left_out;
};

/* ---- the process ------------------------------------------------------------------ */

static void head(const struct text *text, const char *name, const char *type, const char *help)
{
    (void)fprintf(text->file, "# HELP ucx_ha_%s %s\n# TYPE ucx_ha_%s %s\n", name, help, name, type);
}

static void number(const struct text *text, const char *name, const char *type, const char *help, double value)
{
    head(text, name, type, help);
    (void)fprintf(text->file, "ucx_ha_%s{pid=\"%d\"} %.15g\n", name, text->pid, value);
}

static void histogram(const struct text *text, const char *name, const char *help, const uint64_t *bins, uint64_t sum)
{
    uint64_t count = 0;

    head(text, name, "histogram", help);
    for (unsigned i = 0; i < UCT_HA_STATS_SETUP_BINS - 1; i++) {
        count += bins[i];
        (void)fprintf(text->file, "ucx_ha_%s_bucket{pid=\"%d\",le=\"%g\"} %lu\n", name, text->pid,
                      (double)(1u << i) / 1e3, (unsigned long)count);
    }
    count += bins[UCT_HA_STATS_SETUP_BINS - 1];
    (void)fprintf(text->file, "ucx_ha_%s_bucket{pid=\"%d\",le=\"+Inf\"} %lu\n", name, text->pid, (unsigned long)count);
    (void)fprintf(text->file, "ucx_ha_%s_sum{pid=\"%d\"} %g\nucx_ha_%s_count{pid=\"%d\"} %lu\n", name, text->pid,
                  (double)sum / 1e9, name, text->pid, (unsigned long)count);
}

static uint64_t sum_of(const struct uct_ha_stats *stats, const uint64_t *bins)
{
    return bins == stats->setup_hist    ? stats->connect_ns_total + stats->accept_ns_total
           : bins == stats->silent_hist ? stats->silent_ns_total
                                        : stats->outage_ns_total;
}

#define WRITE_TOTAL(_stats, _field, _name, _help) number(text, _name, "counter", _help, (double)(_stats)->_field)
#define WRITE_LEVEL(_stats, _field, _name, _help) number(text, _name, "gauge", _help, (double)(_stats)->_field)
#define WRITE_TOTAL_NS(_stats, _field, _name, _help) \
    number(text, _name, "counter", _help, (double)(_stats)->_field / 1e9)
#define WRITE_LEVEL_NS(_stats, _field, _name, _help) number(text, _name, "gauge", _help, (double)(_stats)->_field / 1e9)
#define WRITE_HIST(_stats, _field, _name, _help)                       \
    histogram(text, _name, _help, (const uint64_t *)&(_stats)->_field, \
              sum_of(_stats, (const uint64_t *)&(_stats)->_field))

static void write_counters(const struct text *text, const struct uct_ha_stats *stats)
{
#define WRITE(_field, _kind, _len, _name, _help) WRITE_##_kind(stats, _field, _name, _help);
    UCT_HA_COUNTERS(WRITE)
#undef WRITE
}

/* As a label's value. */
static const char *quoted(const char *from, char *buf, size_t size)
{
    size_t length = 0;

    for (; from != NULL && *from != '\0' && length + 2 < size; from++) {
        if (*from == '"' || *from == '\\') {
            buf[length++] = '\\';
        }
        buf[length++] = *from < ' ' ? '?' : *from;
    }
    buf[length] = '\0';
    return buf;
}

static void write_process(const struct text *text)
{
    char           host[NAME_MAX_] = "", program[NAME_MAX_] = "", job[NAME_MAX_], safe[2 * NAME_MAX_];
    FILE          *comm = fopen("/proc/self/comm", "re");
    struct timeval now;

    (void)gethostname(host, sizeof(host) - 1);
    if (comm != NULL) {
        (void)fscanf(comm, "%63[^\n]", program);
        (void)fclose(comm);
    }
    head(text, "info", "gauge", "who writes this file");
    (void)fprintf(text->file, "ucx_ha_info{pid=\"%d\",host=\"%s\",program=\"%s\",version=\"%s\",job=\"%s\"} 1\n",
                  text->pid, host, quoted(program, safe, sizeof(safe)), PACKAGE_VERSION,
                  quoted(getenv("SLURM_JOB_ID"), job, sizeof(job)));
    (void)gettimeofday(&now, NULL);
    number(text, "written_timestamp_seconds", "gauge", "when this file was written, since 1970",
           (double)now.tv_sec + (double)now.tv_usec / 1e6);
}

/* ---- its rails -------------------------------------------------------------------- */

static void write_rails(const struct text *text)
{
    struct uct_ha_report_rail rail;

    head(text, "rail_failures_total", "counter", "failures of a rail that endpoints of this process were on");
    for (unsigned i = 0; uct_ha_report_rail(i, &rail) == 0; i++) {
        (void)fprintf(text->file, "ucx_ha_rail_failures_total{pid=\"%d\",rail=\"%s\",last_cause=\"%s\"} %u\n",
                      text->pid, rail.name, ha_cause_name(rail.last_cause), rail.failures);
    }
    head(text, "rail_left_total", "counter", "endpoints that left a rail, by cause");
    for (unsigned i = 0; uct_ha_report_rail(i, &rail) == 0; i++) {
        for (unsigned c = 0; c < HA_CAUSE_LAST; c++) {
            if (rail.left[c] > 0) {
                (void)fprintf(text->file, "ucx_ha_rail_left_total{pid=\"%d\",rail=\"%s\",cause=\"%s\"} %lu\n",
                              text->pid, rail.name, ha_cause_name(c), (unsigned long)rail.left[c]);
            }
        }
    }
}

/* ---- the paths to its peers --------------------------------------------------------- */

static void add_path(struct text *text, const struct uct_ha_peer *peer, int slot, uint64_t now)
{
    const struct uct_ha_peer_rail *rail  = &peer->rail[slot];
    const struct uct_ha_pairs     *pairs = peer->pairs;
    struct uct_ha_conn            *conn;
    struct path                   *path;

    if (text->num_paths == PATHS_MAX) {
        text->left_out++;
        return;
    }
    path = &text->paths[text->num_paths++];
    memset(path, 0, sizeof(*path));
    (void)snprintf(path->rail, sizeof(path->rail), "%s", ha_rail_name(pairs->lanes->rail[slot]));
    (void)uct_ha_addr_text(&rail->where.addr, path->peer);
    path->cookie     = peer->cookie;
    path->usable     = uct_ha_peer_rail_usable(peer, slot);
    path->failures   = rail->damp.flaps;
    path->silent     = rail->last_rx != 0 && now > rail->last_rx ? (double)(now - rail->last_rx) / 1e9 : 0;
    path->lost       = (double)ha_lossy_lost(&rail->lossy) / HA_LOSSY_WINDOW;
    path->round_trip = (double)rail->slow.norm / 1e9;
    path->cooldown   = (double)ha_damp_left(&rail->damp, now) / 1e9;
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        path->active += ha_pair_tx_slot(&conn->pair) == slot;
        path->standby += conn->counted_spare && ha_pair_tx_slot(&conn->pair) != slot;
    }
}

static void gather(struct text *text, struct uct_ha_ctl *ctl, uint64_t now)
{
    struct uct_ha_peer *peer;

    pthread_mutex_lock(&ctl->lanes->wake.lock);
    ucs_list_for_each (peer, &ctl->pairs->peers, list) {
        for (int s = 0; s < ctl->lanes->slots && !ucs_list_is_empty(&peer->conns); s++) {
            if (peer->rail[s].where.addr.mtu != 0) {
                add_path(text, peer, s, now);
            }
        }
    }
    pthread_mutex_unlock(&ctl->lanes->wake.lock);
}

static void sample(const struct text *text, const char *name, const struct path *path, double value)
{
    (void)fprintf(text->file, "ucx_ha_path_%s{pid=\"%d\",rail=\"%s\",peer=\"%s\",instance=\"%016lx\"} %g\n", name,
                  text->pid, path->rail, path->peer, (unsigned long)path->cookie, value);
}

#define WRITE_PATHS(_name, _help)                                        \
    do {                                                                 \
        head(text, "path_" #_name, "gauge", _help);                      \
        for (unsigned i = 0; i < text->num_paths; i++) {                 \
            sample(text, #_name, &text->paths[i], text->paths[i]._name); \
        }                                                                \
    } while (0)

static void write_paths(const struct text *text)
{
    WRITE_PATHS(usable, "1: both ports are up and the rail answers, as far as is known");
    WRITE_PATHS(active, "endpoint pairs whose work goes by this rail");
    WRITE_PATHS(standby, "endpoint pairs that have their standby on this rail");
    WRITE_PATHS(silent, "seconds since the last sign of life by this rail");
    WRITE_PATHS(lost, "share of the latest probes by this rail that had no answer");
    WRITE_PATHS(round_trip, "usual round trip of the probes by this rail, in seconds; 0: not known");
    WRITE_PATHS(cooldown, "seconds that the rail is still left alone");
    WRITE_PATHS(failures, "recent failures of the rail towards this peer, forgotten in calm");
    number(text, "paths_left_out", "gauge", "paths that this file has no room for", text->left_out);
}

void uct_ha_prom_text(FILE *file, struct uct_ha_ctl *ctls, uint64_t now)
{
    struct text         text = {.file = file, .pid = (int)getpid()};
    struct uct_ha_stats stats;
    unsigned            up, down;

    for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); i++) {
        ((uint64_t *)&stats)[i] = __atomic_load_n(&((const uint64_t *)&uct_ha_stats_total)[i], __ATOMIC_RELAXED);
    }
    uct_ha_watch_count(&up, &down);
    stats.rails_up   = up;
    stats.rails_down = down;
    write_process(&text);
    write_counters(&text, &stats);
    write_rails(&text);
    text.paths = calloc(PATHS_MAX, sizeof(*text.paths));
    if (text.paths != NULL) {
        for (struct uct_ha_ctl *ctl = ctls; ctl != NULL; ctl = ctl->prom_next) {
            gather(&text, ctl, now);
        }
        write_paths(&text);
        free(text.paths);
    }
}
