/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The transport over made-up hardware, through UCT's public API.
 *
 *   test_glue [PATTERN]     only tests whose name matches ('*' and '?')
 *   GLUE_PATIENCE=20        seconds that a test waits for what must happen, 60 if not given
 *   GLUE_FAILOVERS=10000    how many in test_nothing_is_left_behind, 2000 if not given
 *   GLUE_JOBS=4             groups of tests at once, each in a process of its own: they mostly wait; 1 if not given
 *   GLUE_PART=1/2           only every second group, from the first on; 2/2 are the others
 *   GLUE_PERSONALITY=irdma the kind of card that tests have which do not choose one, see fake_verbs.h
 *   UCX_LOG_LEVEL=warn      shows what the product says; many tests provoke errors
 */

#include "glue_tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 32

/* UCX reads its environment before main(). Its hooks for memory events run in
 * ending threads and disturb sanitizers; nothing here needs them. */
static void prepare(char **argv)
{
    if (getenv("UCX_MEM_EVENTS") == NULL) {
        setenv("UCX_MEM_EVENTS", "n", 1);
        setenv("UCX_LOG_LEVEL", "fatal", 0);
        setenv("MALLOC_ARENA_MAX", "1", 1); /* all of the heap is counted */
        execv("/proc/self/exe", argv);
    }
}

typedef int (*group_fn_t)(void);

/* Each has a state of its own. */
static const group_fn_t groups[] = {
    glue_basic,   glue_rma,     glue_atomics,   glue_setup_faults, glue_failover, glue_memory, glue_order, glue_credits,
    glue_receive, glue_barrier, glue_many,      glue_hundreds,     glue_shared,   glue_repost, glue_keep,  glue_proof,
    glue_card,    glue_hang,    glue_detect,    glue_ends,         glue_leave,    glue_paths,  glue_peers, glue_forged,
    glue_sealed,  glue_again,   glue_strangers, glue_zones,        glue_devices,  glue_cm,     glue_opts,  glue_report,
    glue_silent,  glue_room,    glue_cold,      glue_personality,  glue_triggers, glue_gets,   glue_parts, glue_soak,
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

struct child {
    pid_t pid;
    FILE *said;
};

/* In a process of its own, which says nothing before it has ended: two at once would mix their lines. */
static void begin(struct child *child, group_fn_t group)
{
    child->said = tmpfile();
    fflush(stdout);
    child->pid = child->said == NULL ? -1 : fork();
    if (child->pid < 0) {
        perror("test_glue: a group of tests cannot begin");
        exit(2);
    }
    if (child->pid == 0) {
        dup2(fileno(child->said), STDOUT_FILENO);
        dup2(fileno(child->said), STDERR_FILENO);
        exit(group() != 0);
    }
}

static void tell(FILE *said)
{
    char   part[4096];
    size_t bytes;

    rewind(said);
    while ((bytes = fread(part, 1, sizeof(part), said)) > 0) {
        fwrite(part, 1, bytes, stdout);
    }
    fclose(said);
}

/* Waits until one has ended. Returns whether it failed; its place is free then. */
static int end_one(struct child *children, unsigned jobs)
{
    int   status;
    pid_t pid = wait(&status);

    for (unsigned i = 0; i < jobs; i++) {
        if (children[i].pid == pid) {
            tell(children[i].said);
            children[i].pid = 0;
        }
    }
    if (WIFSIGNALED(status)) {
        printf("test_glue: a group of tests ended: %s\n", strsignal(WTERMSIG(status)));
    }
    return status != 0;
}

static int run_beside(const group_fn_t *wanted, size_t count, unsigned jobs)
{
    struct child children[JOBS_MAX] = {0};
    unsigned     running            = 0;
    int          failed             = 0;

    for (size_t group = 0; group < count; group++) {
        unsigned i = 0;

        if (running == jobs) {
            failed |= end_one(children, jobs);
            running--;
        }
        while (children[i].pid != 0) {
            i++;
        }
        begin(&children[i], wanted[group]);
        running++;
    }
    for (; running > 0; running--) {
        failed |= end_one(children, jobs);
    }
    return failed;
}

/* Makes `wanted` those that are wanted, and says how many they are: 0 if GLUE_PART is no part. */
static size_t choose(group_fn_t *wanted)
{
    const char *part  = getenv("GLUE_PART");
    unsigned    first = 1, each = 1;
    size_t      count = 0;
    char        more;

    if (part != NULL && (sscanf(part, "%u/%u%c", &first, &each, &more) != 2 || first == 0 || first > each)) {
        fprintf(stderr, "test_glue: GLUE_PART '%s' is not one of so many, such as 1/2\n", part);
        return 0;
    }
    for (size_t group = first - 1; group < GROUPS; group += each) {
        wanted[count++] = groups[group];
    }
    return count;
}

static unsigned wanted_jobs(void)
{
    const char *wanted = getenv("GLUE_JOBS");
    int         jobs   = wanted == NULL ? 1 : atoi(wanted);

    return jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : (unsigned)jobs;
}

int main(int argc, char **argv)
{
    group_fn_t wanted[GROUPS];
    size_t     count;
    int        failed = 0;

    prepare(argv);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    count = choose(wanted);
    if (count == 0) {
        return 2;
    }
    if (wanted_jobs() > 1) {
        return run_beside(wanted, count, wanted_jobs());
    }
    for (size_t group = 0; group < count; group++) {
        failed |= wanted[group]();
    }
    return failed != 0;
}
