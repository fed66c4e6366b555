/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "bench_base.h"

#define PERIOD  0.25 /* seconds */
#define COLUMNS 79

struct look {
    double              when;
    uint64_t            bytes;
    struct hte_counters counters;
};

static struct look look(const struct progress *p)
{
    struct look now = {.when = now_seconds(), .bytes = atomic_load(p->bytes), .counters.size = sizeof(now.counters)};

    must_do(hte_counters(p->engine, &now.counters), "counters");
    return now;
}

static const char *way_of(const struct progress *p)
{
    static const char *const names[] = {[HTE_WAY_NONE]      = "no connection",
                                        [HTE_WAY_SAME_HOST] = "same host",
                                        [HTE_WAY_RDMA]      = "RDMA",
                                        [HTE_WAY_MESSAGES]  = "messages",
                                        [HTE_WAY_EMULATED]  = "emulated"};
    char                     text[2]; /* the words have no room here */
    int                      way;

    must_do(hte_segment_way(p->engine, p->segment, &way, text, sizeof(text)), "way of the segment");
    return way >= 0 && way < (int)(sizeof(names) / sizeof(names[0])) ? names[way] : "?";
}

/* Since the last look: a mean over all the time hides what happens now. */
static void show(const struct progress *p, const struct look *before, const struct look *now)
{
    double   seconds = now->when - before->when;
    double   gb      = (double)(p->options->check ? now->bytes : now->bytes - before->bytes) * 1e-9;
    uint64_t ended   = now->counters.requests_ended - before->counters.requests_ended;
    char     line[COLUMNS + 1];

    snprintf(line, sizeof(line), "%5.1f s  %.3f %s  %.0f requests/s  %s  %llu retries  %llu in flight",
             now->when - p->begin, p->options->check ? gb : gb / seconds, p->options->check ? "GB compared" : "GB/s",
             (double)ended / seconds, way_of(p), (unsigned long long)now->counters.slices_retried,
             (unsigned long long)(now->counters.requests - now->counters.requests_ended));
    fprintf(stderr, "\r%-*s", COLUMNS, line);
}

void show_progress(const struct progress *p)
{
    struct look before, now;

    if (p->options->quiet || !isatty(STDERR_FILENO)) {
        return;
    }
    for (before = look(p); before.when < p->end - PERIOD; before = now) {
        usleep((useconds_t)(PERIOD * 1e6));
        now = look(p);
        show(p, &before, &now);
    }
    fprintf(stderr, "\r%*s\r", COLUMNS, "");
}
