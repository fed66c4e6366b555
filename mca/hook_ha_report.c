/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hook_ha_report: what the job went through, at its end, in a few lines.
 *
 *   1   rank 0 says it for all. Each process sends it a record, before Open MPI begins to end itself, by a collective
 *       operation: a message of our own could match a receive that the program has forgotten. Not a blocking one: a
 *       host may have no component, and nobody would wait for its record in vain for ever.
 *   2   before that each process says its own, which needs nobody else
 *
 * Nothing of it may do harm to a job that is right and all but done: an error ends the report, not the job.
 */
#include "hook_ha.h"

#include <mpi.h>

#include "opal/util/output.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT_STATE "/sys/class/infiniband/%.*s/ports/%s/state"
#define HAS_COME   UINT64_C(0x6861207265706f72)
#define LIST_MAX   8 /* hosts, or ranks, that a line names */

/* What rank 0 gets of each process; all zero of one that has sent nothing. */
struct record {
    uint64_t            has_come;
    struct uct_ha_stats stats;
    char                host[64];
    char                rails[192]; /* with their states */
    char                unmet[192]; /* why it has no ha_rc; "" = it has */
};

/* The sum of them, and who stands out. */
struct summary {
    struct uct_ha_stats total;
    int                 missing, without, moved, unprotected, worst; /* processes; the worst one's rank */
    int                 first_missing, first_without;
    uint64_t            longest; /* pause at `worst`, ns */
};

#define SAY(...) opal_output(0, "hook/ha: report: " __VA_ARGS__)

/* ---- one process ---------------------------------------------------------------------------- */

/* Upper border of the longest duration that is counted there: of its bin, or all of them together if that is less. With
 * one duration that is the duration itself. */
static uint64_t longest_at_most(const uint64_t bins[UCT_HA_STATS_SETUP_BINS], uint64_t sum)
{
    int i;

    for (i = UCT_HA_STATS_SETUP_BINS - 1; i >= 0 && bins[i] == 0; i--) {
    }
    if (i < 0) {
        return 0;
    }
    if (i < UCT_HA_STATS_SETUP_BINS - 1 && (UINT64_C(1) << i) * 1000000 < sum) {
        return (UINT64_C(1) << i) * 1000000;
    }
    return sum;
}

static uint64_t pause_at_most(const struct uct_ha_stats *s)
{
    return longest_at_most(s->silent_hist, s->silent_ns_total) + longest_at_most(s->move_hist, s->outage_ns_total);
}

/* By what the driver says, in the manner of "4: ACTIVE"; the library's totals tell only how many. */
static const char *rail_state(const char *name, const struct uct_ha_stats *s)
{
    const char *port = strchr(name, ':'), *state = NULL;
    char        path[128], text[32]              = "";
    FILE       *file;

    if (port) {
        (void)snprintf(path, sizeof(path), PORT_STATE, (int)(port - name), name, port + 1);
        file = fopen(path, "r");
        if (file) {
            state = fgets(text, sizeof(text), file) && strstr(text, "ACTIVE") ? " up" : " down";
            (void)fclose(file);
        }
    }
    if (!state) {
        state = s->rails_down == 0 ? " up" : s->rails_up == 0 ? " down" : "";
    }
    return state;
}

static void rails_tell(const struct uct_ha_stats *s, char *text, size_t size)
{
    struct uct_ha_rail_stats rail;
    const char              *state     = "";
    bool                     are_known = true;
    size_t                   end       = 0;
    unsigned                 i;
    int                      answer;

    text[0] = '\0';
    for (i = 0; (answer = mca_hook_ha_library_rail(i, &rail)) != -EINVAL && end < size; i++) {
        if (answer == 0) {
            state     = rail_state(rail.name, s);
            are_known = are_known && state[0] != '\0';
            end += (size_t)snprintf(text + end, size - end, "%s%s%s", end > 0 ? ", " : "", rail.name, state);
        }
    }
    if (!are_known && end < size) {
        (void)snprintf(text + end, size - end, " (%" PRIu64 " up, %" PRIu64 " down)", s->rails_up, s->rails_down);
    }
}

static void record_fill(struct record *record, const char *unmet)
{
    memset(record, 0, sizeof(*record));
    record->has_come = HAS_COME;
    (void)gethostname(record->host, sizeof(record->host) - 1);
    (void)snprintf(record->unmet, sizeof(record->unmet), "%s", unmet);
    if (unmet[0] == '\0' && mca_hook_ha_library_stats(&record->stats)) {
        rails_tell(&record->stats, record->rails, sizeof(record->rails));
    }
}

static void record_say(const struct record *r, int rank)
{
    const struct uct_ha_stats *s = &r->stats;

    if (r->unmet[0] != '\0') {
        SAY("rank %d at %s: no ha_rc: %s", rank, r->host, r->unmet);
        return;
    }
    SAY("rank %d at %s: failovers %" PRIu64 ", longest pause at most %.1f ms; rails: %s; endpoints %" PRIu64
        ", without a standby %" PRIu64,
        rank, r->host, s->failovers, (double)pause_at_most(s) / 1e6, r->rails, s->pairs, s->pairs - s->standbys);
}

/* ---- all of them, at rank 0 ------------------------------------------------------------------- */

static void summary_add(struct summary *sum, const struct record *r, int rank)
{
    const struct uct_ha_stats *s = &r->stats;
    uint64_t                   longest;

    if (r->has_come != HAS_COME) {
        sum->first_missing = sum->missing++ == 0 ? rank : sum->first_missing;
        return;
    }
    if (r->unmet[0] != '\0') {
        sum->first_without = sum->without++ == 0 ? rank : sum->first_without;
        return;
    }
    sum->total.failovers += s->failovers;
    sum->total.failbacks += s->failbacks;
    sum->total.replayed += s->replayed;
    sum->total.retired += s->retired;
    sum->total.ep_errors += s->ep_errors;
    sum->total.in_doubt += s->in_doubt;
    sum->total.pairs += s->pairs;
    sum->total.standbys += s->standbys;
    sum->total.rails_down += s->rails_down;
    sum->moved += s->failovers > 0;
    sum->unprotected += s->pairs > s->standbys;
    longest = pause_at_most(s);
    if (longest > sum->longest) {
        sum->longest = longest;
        sum->worst   = rank;
    }
}

/* Where not all are up: each host once, if its processes see the same. */
static void rails_say(const struct record *records, int size, const struct summary *sum)
{
    const struct record *said = NULL;
    int                  i, lines = 0;

    if (sum->total.rails_down == 0) {
        SAY("rails now: all up");
        return;
    }
    for (i = 0; i < size; i++) {
        const struct record *r = &records[i];

        if (r->stats.rails_down == 0 ||
            (said && strcmp(said->host, r->host) == 0 && strcmp(said->rails, r->rails) == 0)) {
            continue;
        }
        said = r;
        if (++lines > LIST_MAX) {
            SAY("rails now: more hosts have rails that are down; all of them: --mca hook_ha_report 2");
            return;
        }
        SAY("rails now, at %s: %s", r->host, r->rails);
    }
}

static void unprotected_say(const struct record *records, int size, const struct summary *sum)
{
    char   ranks[128] = "";
    size_t end        = 0;
    int    i, named = 0;

    for (i = 0; i < size && named < LIST_MAX; i++) {
        if (records[i].stats.pairs > records[i].stats.standbys) {
            end += (size_t)snprintf(ranks + end, sizeof(ranks) - end, "%s%d", named++ > 0 ? ", " : "", i);
        }
    }
    SAY("endpoints: %" PRIu64 ", of them %" PRIu64 " without a standby now (rank%s %s%s): one more failure would have "
        "ended them; why: HA-112 in the log, ha_info --check on the host",
        sum->total.pairs, sum->total.pairs - sum->total.standbys, sum->unprotected > 1 ? "s" : "", ranks,
        sum->unprotected > named ? ", ..." : "");
}

static void missing_say(const struct record *records, const struct summary *sum)
{
    if (sum->without > 0) {
        SAY("%d process%s had no ha_rc, the first one rank %d at %s: %s", sum->without, sum->without > 1 ? "es" : "",
            sum->first_without, records[sum->first_without].host, records[sum->first_without].unmet);
    }
    if (sum->missing > 0) {
        SAY("%d process%s sent nothing for %d s, the first one rank %d: is the component on its host? Later ones: "
            "--mca hook_ha_report_wait SECONDS",
            sum->missing, sum->missing > 1 ? "es" : "", mca_hook_ha_params.report_wait, sum->first_missing);
    }
}

static void summary_say(const struct record *records, int size)
{
    struct summary       sum = {.longest = 0};
    struct uct_ha_stats *s   = &sum.total;
    int                  i, protected_ones;

    for (i = 0; i < size; i++) {
        summary_add(&sum, &records[i], i);
    }
    protected_ones = size - sum.missing - sum.without;
    if (protected_ones > 0 && s->failovers == 0) {
        SAY("no failover in %d process%s", protected_ones, protected_ones > 1 ? "es" : "");
    } else if (protected_ones > 0) {
        SAY("failovers %" PRIu64 " in %d of %d processes (an endpoint's, counted at both of its ends; back to the "
            "preferred rail %" PRIu64 "), operations sent again %" PRIu64 ", confirmed %" PRIu64,
            s->failovers, sum.moved, protected_ones, s->failbacks, s->replayed, s->retired);
        SAY("longest pause at most %.1f ms, silence and move together (rank %d at %s)", (double)sum.longest / 1e6,
            sum.worst, records[sum.worst].host);
    }
    if (s->ep_errors + s->in_doubt > 0) {
        SAY("NOT all went well: %" PRIu64 " endpoints ended with an error, %" PRIu64
            " operations in doubt; the lines HA-121 and HA-2xx of the log say which",
            s->ep_errors, s->in_doubt);
    }
    if (protected_ones > 0) {
        rails_say(records, size, &sum);
    }
    if (s->pairs > s->standbys) {
        unprotected_say(records, size, &sum);
    } else if (protected_ones > 0) {
        SAY("endpoints: %" PRIu64 ", all with a standby", s->pairs);
    }
    missing_say(records, &sum);
}

/* ---- together --------------------------------------------------------------------------------- */

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* False when it has not come to its end in time; then its memory must stay. */
static bool request_wait(MPI_Request *request)
{
    double end     = seconds_now() + mca_hook_ha_params.report_wait;
    int    is_done = 0;

    while (PMPI_Test(request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !is_done) {
        if (seconds_now() > end) {
            return false;
        }
        (void)sched_yield();
    }
    return is_done;
}

static void records_gather(const struct record *own, int rank, int size)
{
    static struct record sent; /* an operation that did not end may still look at it */
    struct record       *records = rank == 0 ? calloc((size_t)size, sizeof(*records)) : NULL;
    MPI_Request          request;
    bool                 is_done;

    sent = *own;
    if ((rank == 0 && !records) || PMPI_Igather(&sent, sizeof(sent), MPI_BYTE, records, sizeof(sent), MPI_BYTE, 0,
                                                MPI_COMM_WORLD, &request) != MPI_SUCCESS) {
        free(records);
        return;
    }
    is_done = request_wait(&request);
    if (rank == 0) {
        summary_say(records, size);
    }
    if (is_done) {
        free(records);
    }
}

void mca_hook_ha_report(const char *unmet)
{
    MPI_Errhandler of_program;
    struct record  own;
    int            rank, size;

    record_fill(&own, unmet);
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (mca_hook_ha_params.report > 1) {
        record_say(&own, rank);
    }
    if (size == 1) {
        summary_say(&own, 1);
        return;
    }
    (void)PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_program);
    (void)PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    records_gather(&own, rank, size);
    (void)PMPI_Comm_set_errhandler(MPI_COMM_WORLD, of_program);
    (void)PMPI_Errhandler_free(&of_program);
}
