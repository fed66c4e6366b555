/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * many_driver PEERS [IDLE-SECONDS [KIND]]: an interface with so many peers, over the software card. Run by bench/many,
 * which also sets the environment.
 *
 *    this process, host 0                          up to 32 processes on hosts 1 to 7, which this one starts
 *    one interface  <------ 2 rails ------>        PEERS interfaces in all, each a peer of its own
 *
 * Each peer sends back what it gets. Connections are set up; then nobody does anything for a while; then rail sc0 of
 * this process fails (KIND: down, the port says so; mute, it is silent), with a message to each peer under way. The
 * last line is a JSON object.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_end.h"

#define PER_GROUP  128u
#define AT_ONCE    16u /* messages, from one call of progress to the next */
#define GROUPS_MAX (MANY_MAX / PER_GROUP)

struct group {
    pid_t    pid;
    unsigned count;
    int      to, from;
};

static struct many_end end;
static struct group    group[GROUPS_MAX];
static unsigned        groups;

static void start_group(struct group *one, const char *self, unsigned host)
{
    int  there[2], back[2];
    char text[16], number[16];

    snprintf(text, sizeof(text), "%u", one->count);
    snprintf(number, sizeof(number), "%u", 1 + host % 7);
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0) {
        many_die("pipe");
    }
    one->pid = fork();
    if (one->pid == 0) {
        dup2(there[0], STDIN_FILENO);
        dup2(back[1], STDOUT_FILENO);
        setenv("SOFTCARD_HOST", number, 1);
        /* They are many in one process, and not what is measured. */
        setenv("UCX_HA_RC_HEARTBEAT", "20s", 1);
        setenv("UCX_HA_RC_SRQ_LEN", "64", 1);
        execl(self, self, "--peers", text, NULL);
        _exit(127);
    }
    close(there[0]);
    close(back[1]);
    one->to   = there[1];
    one->from = back[0];
}

static void start_groups(const char *self, unsigned count)
{
    groups = (count + PER_GROUP - 1) / PER_GROUP;
    for (unsigned i = 0; i < groups; i++) {
        group[i].count = count / groups + (i < count % groups);
        start_group(&group[i], self, i);
    }
}

/* ---- what is measured -------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static long resident_kib(void)
{
    long  pages[2] = {0, 0};
    FILE *file     = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) {
        many_die("/proc/self/statm");
    }
    fclose(file);
    return pages[1] * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct uct_ha_stats stats(void)
{
    struct uct_ha_stats now;

    many_stats(&now);
    return now;
}

/* A message to each; *first and *last are when the first and the last one came back. */
static void ask_all(unsigned count, double since, double *first, double *last)
{
    unsigned long began = end.got;
    unsigned      sent  = 0;

    *first = 0;
    while (end.got - began < count) {
        for (unsigned i = 0; i < AT_ONCE && sent < count && many_send(&end, sent) == UCS_OK; i++) {
            sent++;
        }
        uct_worker_progress(end.worker);
        if (*first == 0 && end.got != began) {
            *first = many_now() - since;
        }
        if (many_now() - since > 120) {
            fprintf(stderr, "many_driver: only %lu of %u peers answered\n", end.got - began, count);
            exit(1);
        }
    }
    *last = many_now() - since;
}

static void set_up(unsigned count)
{
    long     before = resident_kib();
    double   since, first, last;
    unsigned made = 0;

    for (unsigned i = 0; i < groups; i++) {
        many_wait(group[i].from); /* until here they open their interfaces */
    }
    since = many_now();
    for (unsigned i = 0; i < groups; i++) {
        for (unsigned k = 0; k < group[i].count; k++) {
            many_connect(&end, made++, group[i].from);
        }
    }
    ask_all(count, since, &first, &last);
    printf("\"setup_s\":%.3f,", last);
    while (stats().standbys < count) {
        uct_worker_progress(end.worker);
        if (many_now() - since > 300) {
            fprintf(stderr, "many_driver: only %" PRIu64 " of %u have a standby\n", stats().standbys, count);
            exit(1);
        }
    }
    printf("\"standbys_s\":%.3f,\"kib_per_peer\":%.1f,", many_now() - since, (double)(resident_kib() - before) / count);
}

/* The program looks a hundred times a second. */
static void idle(double seconds)
{
    struct uct_ha_stats before;
    double              used, since, end_at;

    since = many_now();
    while (many_now() - since < 3) { /* until what was just set up is calm */
        uct_worker_progress(end.worker);
        usleep(10000);
    }
    before = stats();
    used   = processor_seconds();
    since  = many_now();
    end_at = since + seconds;
    while (many_now() < end_at) {
        uct_worker_progress(end.worker);
        usleep(10000);
    }
    since = many_now() - since;
    printf("\"idle_percent\":%.2f,\"idle_sent\":%.1f,\"idle_received\":%.1f,\"idle_states\":%.1f,",
           100 * (processor_seconds() - used) / since, (double)(stats().ctl_tx - before.ctl_tx) / since,
           (double)(stats().ctl_rx - before.ctl_rx) / since,
           (double)(stats().ctl_tx_state - before.ctl_tx_state) / since);
}

static void fail_over(unsigned count, const char *kind)
{
    struct uct_ha_stats before = stats();
    double              since, first, last, used = processor_seconds();
    char                command[512];

    /* The card's tool writes into the fabric that all share; the card itself is not loaded in front of it. */
    snprintf(command, sizeof(command), "LD_PRELOAD= %s fault %s h0/sc0", getenv("SOFTCARD_TOOL"), kind);
    since = many_now();
    if (system(command) != 0) {
        many_die(command);
    }
    ask_all(count, since, &first, &last);
    printf("\"first_ms\":%.1f,\"last_ms\":%.1f,\"failovers\":%" PRIu64 ",\"move_cpu_s\":%.3f,"
           "\"move_sent\":%" PRIu64 ",\"move_visits\":%" PRIu64 ",\"resent\":%" PRIu64 ",\"errors\":%" PRIu64,
           1000 * first, 1000 * last, stats().failovers - before.failovers, processor_seconds() - used,
           stats().ctl_tx - before.ctl_tx, stats().visits - before.visits, stats().replayed - before.replayed,
           stats().ep_errors);
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[argc > 2 && strcmp(argv[1], "--peers") == 0 ? 2 : 1], NULL, 10)
                              : 0;

    if (count < 1 || count > MANY_MAX) {
        fprintf(stderr, "usage: many_driver PEERS [IDLE-SECONDS [KIND]], PEERS from 1 to %u; see bench/many\n",
                MANY_MAX);
        return 2;
    }
    many_files();
    if (strcmp(argv[1], "--peers") == 0) {
        return many_be_peers(count);
    }
    start_groups(argv[0], count);
    many_open(&end, count);
    for (unsigned i = 0; i < groups; i++) {
        many_introduce(&end, group[i].to);
    }
    printf("{\"peers\":%u,", count);
    set_up(count);
    idle(argc > 2 ? strtod(argv[2], NULL) : 10);
    fflush(stdout);
    fail_over(count, argc > 3 ? argv[3] : "down");
    printf("}\n");
    fflush(stdout);
    for (unsigned i = 0; i < groups; i++) {
        kill(group[i].pid, SIGKILL);
        waitpid(group[i].pid, NULL, 0);
    }
    return 0;
}
