/* SPDX-License-Identifier: BSD-3-Clause */

/* The story of a schedule that failed. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim.h"

#define TRACE_LINES 200
#define TRACE_WIDTH 160

static char     trace[TRACE_LINES][TRACE_WIDTH];
static unsigned trace_used;

static void keep(const struct sim_world *w, int pair, const char *format, va_list args)
{
    char *line = trace[trace_used++ % TRACE_LINES];
    int   n    = snprintf(line, TRACE_WIDTH, "%6u %12.3f us  ", w->steps, (double)w->now / 1000);

    if (pair >= 0 && w->num_pairs > 1) {
        n += snprintf(line + n, (size_t)(TRACE_WIDTH - n), "pair %d ", pair);
    }
    vsnprintf(line + n, (size_t)(TRACE_WIDTH - n), format, args);
    if (w->tracing > 1) {
        puts(line);
    }
}

void sim_trace(const struct sim_pair *p, const char *format, ...)
{
    va_list args;

    if (!p->world->tracing) {
        return;
    }
    va_start(args, format);
    keep(p->world, p->number, format, args);
    va_end(args);
}

void sim_trace_world(const struct sim_world *w, const char *format, ...)
{
    va_list args;

    if (!w->tracing) {
        return;
    }
    va_start(args, format);
    keep(w, -1, format, args);
    va_end(args);
}

static void print_trace(void)
{
    unsigned from = trace_used > TRACE_LINES ? trace_used - TRACE_LINES : 0;

    if (from > 0) {
        printf("  ... %u lines before\n", from);
    }
    for (unsigned i = from; i < trace_used; i++) {
        printf("  %s\n", trace[i % TRACE_LINES]);
    }
}

static void show_lane(const struct sim_side *side, int slot)
{
    const struct ha_lane *lane = &side->pair.lane[slot];
    const struct ha_view *view = &side->pair.view[slot];
    const struct sim_qp  *qp   = &side->qp[slot];

    printf("    lane %d.%u %s q %u act %u rx %u k %u drained %u asked %u usable %u | peer %d.%u "
           "%s k %u | posted %u wired %u acked %u polled %u received %u delivered %u\n",
           slot, lane->gen, ha_lane_status_name(lane->st), lane->q, lane->act, lane->rxpsn, lane->k, lane->drained,
           lane->asked, lane->usable, slot, view->gen, ha_lane_status_name(view->st), view->k, qp->num_wqe, qp->wired,
           qp->acked, qp->polled, qp->num_msg, qp->delivered);
}

static void show_pair(const struct sim_pair *p)
{
    printf("  pair %d: rails %u and %u, %u used%s\n", p->number, p->rail[0], p->rail[1], p->slots,
           p->doomed ? ", struck by the plot" : "");
    for (int x = 0; x < 2; x++) {
        const struct sim_side *side = &p->side[x];

        printf("  side %d on host %u: epoch %u, %u of %u operations ended, flags %x, peer %x%s%s%s\n", x, side->host,
               side->pair.epoch, side->ended, side->num_ops, side->pair.flags, side->pair.view_flags,
               side->dead ? ", killed" : "", side->gone ? ", gone" : "", side->flushing ? ", flushing" : "");
        for (int slot = 0; slot < HA_SLOTS; slot++) {
            show_lane(side, slot);
        }
    }
}

void sim_report(struct sim_world *w, uint64_t seed, uint32_t ops)
{
    uint64_t cover[SIM_COVER_LAST] = {0};

    trace_used = 0;
    sim_run(w, seed, ops, 1, cover);
    printf("FAILED seed %" PRIu64 ": %s\n", seed, w->violation);
    print_trace();
    for (int i = 0; i < w->num_live; i++) {
        show_pair(&w->pair[w->live[i]]);
    }
    printf("  again: ha_sim --seed %" PRIu64 " --schedules 1 --ops %u --verbose\n", seed, ops);
}
