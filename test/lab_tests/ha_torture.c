/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

#define BURST         16  /* operations started between two calls of progress */
#define SETTLE        0.5 /* seconds for late writes to show, after the end */
#define LEAVE_SECONDS 20
#define PLANT_SECONDS 30 /* longer than asked for, until the fault was planted */
#define WATCHDOG      30 /* seconds that one call of UCX may take */

static struct op *free_ops;

/* ---- operations ------------------------------------------------------------------ */

struct op *op_create(struct torture *t, unsigned kind, uint64_t seq, uint32_t size, struct buffer *buffer)
{
    struct op *op = free_ops;

    if (op != NULL) {
        free_ops = op->next;
    } else {
        op = must_alloc(sizeof(*op));
    }
    *op = (struct op){.torture = t, .kind = kind, .seq = seq, .size = size, .buffer = buffer};
    return op;
}

int planted(const struct torture *t, enum torture_plant plant)
{
    return t->opt.plant == plant;
}

void ep_failed(struct torture *t, ucs_status_t status)
{
    if (t->run->ep_status == UCS_OK) {
        t->run->ep_status    = status;
        t->run->ep_failed_at = wall_seconds();
    }
}

void op_finish(struct op *op, ucs_status_t status)
{
    struct torture *t = op->torture;

    if (status != UCS_OK) {
        t->total.errors++;
        ep_failed(t, status);
    } else if (op->kind < KIND_COUNT) {
        t->total.done[op->kind]++;
        report_progress(t);
    }
    if (op->kind == KIND_GET && status == UCS_OK) {
        rma_get_finish(op);
    } else if (op->kind == KIND_AMO && status == UCS_OK) {
        amo_finish(op);
    } else if (op->buffer != NULL) {
        buffer_put(op->buffer, op->size);
    }
    op->next = free_ops;
    free_ops = op;
}

void op_completed(void *request, ucs_status_t status, void *user_data)
{
    if (request != NULL) {
        ucp_request_free(request);
    }
    op_finish(user_data, status);
}

void op_started(struct torture *t, struct op *op, ucs_status_ptr_t request)
{
    (void)t;
    if (!UCS_PTR_IS_PTR(request)) {
        op_finish(op, UCS_PTR_STATUS(request));
    }
}

uint64_t outstanding(const struct torture *t)
{
    uint64_t sum = t->total.sent[KIND_GET] - t->total.done[KIND_GET] + t->total.sent[KIND_AMO] -
                   t->total.done[KIND_AMO];

    for (unsigned kind = KIND_TAG; kind <= KIND_PUT; kind++) {
        if (t->total.acked[kind] < t->total.sent[kind]) { /* more when doubled */
            sum += t->total.sent[kind] - t->total.acked[kind];
        }
    }
    return sum;
}

/* ---- UCP --------------------------------------------------------------------------- */

static void sleep_until_event(struct torture *t)
{
    struct pollfd fd     = {.fd = t->run->event_fd, .events = POLLIN};
    ucs_status_t  status = ucp_worker_arm(t->run->worker);

    if (status == UCS_OK) {
        poll(&fd, 1, 10);
    } else if (status != UCS_ERR_BUSY) {
        must(status, "ucp_worker_arm");
    }
}

/* ---- the run -------------------------------------------------------------------------- */

static void start_some(struct torture *t)
{
    static uint64_t dice; /* shared: endpoints do not run in step */
    unsigned        kind, n;

    for (n = 0; n < BURST && outstanding(t) < t->opt.plan.window && t->run->ep_status == UCS_OK; n++) {
        kind = (unsigned)(mix(t->opt.plan.seed + dice++) % KIND_COUNT);
        if (t->opt.plan.ops & (1u << kind)) {
            (void)(kind <= KIND_AM ? msg_start(t, kind) : kind == KIND_AMO ? amo_start(t) : rma_start(t, kind));
        }
    }
}

/* A peer that computes: it calls nothing of UCX for a while each second. */
static int is_busy(const struct torture *t)
{
    return t->opt.busy_ms > 0 && fmod(now_seconds(), 1.0) * 1000 < t->opt.busy_ms;
}

/* Planted: what a leak would look like. */
static void leak_planted(struct torture *t)
{
    static double next;
    static char *volatile memory; /* or the compiler sees that nobody uses it */

    if (t->opt.plant < PLANT_FD || now_seconds() < next) {
        return;
    }
    next = now_seconds() + 0.2;
    if (planted(t, PLANT_FD)) {
        (void)!dup(STDOUT_FILENO);
    } else if ((memory = malloc(4u << 20)) != NULL) {
        memset(memory, POISON, 4u << 20);
    }
}

static void turn(struct torture *t)
{
    static unsigned turns;
    unsigned        moved;
    double          began;

    if (is_busy(t)) {
        began = now_seconds();
        usleep(1000);
        t->run->busy += now_seconds() - began;
        report_poll(t);
        return;
    }
    for_each_ep(e, t)
    {
        if (t->run->running && t->sends) {
            start_some(e);
        }
    }
    moved = ucp_worker_progress(t->run->worker);
    for_each_ep(e, t)
    {
        msg_progress(e);
        rma_progress(e);
    }
    if (moved == 0 && t->opt.wakeup) {
        sleep_until_event(t);
    }
    if (++turns % 32 == 0) {
        report_poll(t);
        alarm(WATCHDOG);
        leak_planted(t);
    }
}

static int stalled(struct torture *t)
{
    if (report_stalled(t) < t->opt.stall_limit) {
        return 0;
    }
    printf("%.3f no progress for %u s and no endpoint error\n", wall_seconds(), t->opt.stall_limit);
    return 1;
}

/* Turns until a packet of that type came. 0, or how the program has to end. */
static int turn_until(struct torture *t, enum link_type type, struct link_packet *packet)
{
    double closed_at = 0;
    int    got;

    for (;;) {
        turn(t);
        if (t->run->ep_status != UCS_OK) {
            return EXIT_EP_ERROR;
        }
        got = link_receive(t, packet);
        if (got == 1 && packet->type == type) {
            return 0;
        }
        if (got == -1 && closed_at == 0) {
            closed_at = now_seconds();
            printf("%.3f the peer's process is gone\n", wall_seconds());
        }
        if ((closed_at != 0 && now_seconds() - closed_at > t->opt.stall_limit)) {
            printf("%.3f no endpoint error within %u s\n", wall_seconds(), t->opt.stall_limit);
            return EXIT_NO_EP_ERROR;
        }
    }
}

static volatile sig_atomic_t asked_to_stop;

static void on_stop(int signal)
{
    (void)signal;
    asked_to_stop = 1;
}

/* A fault that is still to be planted: on a slow machine that takes a while. */
static int plant_is_due(const struct torture *t)
{
    if (planted(t, PLANT_REORDERED)) {
        return t->total.sent[KIND_TAG] <= PLANT_AT + 1;
    }
    return !planted(t, PLANT_NOTHING) && t->opt.plant < PLANT_FD;
}

static int should_stop(struct torture *t, double until)
{
    uint64_t limit = t->opt.plan.max_failovers;

    if (plant_is_due(t) && !asked_to_stop && now_seconds() < until + PLANT_SECONDS) {
        return 0;
    }
    return asked_to_stop || now_seconds() > until || (limit != 0 && report_failovers(t) >= limit);
}

static int phase_run(struct torture *t)
{
    double             until = now_seconds() + t->opt.plan.seconds;
    struct link_packet packet;

    if (!t->is_client) {
        return turn_until(t, LINK_STOP, &packet);
    }
    while (!should_stop(t, until)) {
        turn(t);
        if (t->run->ep_status != UCS_OK) {
            return EXIT_EP_ERROR;
        }
        if (stalled(t)) {
            return EXIT_NO_EP_ERROR;
        }
    }
    link_send(t, LINK_STOP, 1);
    return 0;
}

static int ep_done(const struct torture *t)
{
    return outstanding(t) == 0 && t->total.done[KIND_TAG] == t->total.sent[KIND_TAG] &&
           t->total.done[KIND_AM] == t->total.sent[KIND_AM] && t->total.done[KIND_PUT] == t->total.sent[KIND_PUT];
}

static int all_done(const struct torture *t)
{
    for_each_ep(e, (struct torture *)t)
    {
        if (!ep_done(e)) {
            return 0;
        }
    }
    return 1;
}

/* Until everything is complete, here and at the peer. What never completes
 * is looked for all the same: it may have been lost. */
static int phase_drain(struct torture *t, struct link_packet *peer)
{
    unsigned pending = 0;
    int      flushed = 0;

    t->run->running = 0;
    report_progress(t);
    while ((!all_done(t) || !flushed || pending > 0) && !t->run->stuck) {
        turn(t);
        if (all_done(t) && !flushed) {
            flushed = 1; /* posted atomics */
            for_each_ep(e, t)
            {
                ep_flush_start(e, &pending);
            }
        }
        if (t->run->ep_status != UCS_OK) {
            return EXIT_EP_ERROR;
        }
        t->run->stuck = stalled(t);
    }
    link_send(t, LINK_DRAINED, 1);
    return turn_until(t, LINK_DRAINED, peer);
}

static void turn_for(struct torture *t, double seconds)
{
    double until = now_seconds() + seconds;

    while (now_seconds() < until && t->run->ep_status == UCS_OK) {
        turn(t);
    }
}

static int is_right(const struct torture *t)
{
    struct totals total;

    totals_add(t, &total);
    return total.lost + total.duplicate + total.reordered + total.corrupt + total.stale_write + total.errors == 0;
}

static int run(struct torture *t)
{
    struct link_packet peer;
    int                result;

    if ((result = phase_run(t)) != 0 || (result = phase_drain(t, &peer)) != 0) {
        return result;
    }
    turn_for(t, SETTLE);
    for_each_ep(e, t)
    {
        msg_check_lost(e, peer.ep[e->index].sent);
        rma_check_final(e, peer.ep[e->index].sent);
        amo_check_final(e, peer.ep[e->index].words);
    }
    result = !is_right(t) ? EXIT_WRONG : t->run->stuck ? EXIT_NO_EP_ERROR : EXIT_RIGHT;
    link_send(t, LINK_VERDICT, result == EXIT_RIGHT);
    if (turn_until(t, LINK_VERDICT, &peer) != 0) {
        return t->run->ep_status != UCS_OK ? EXIT_EP_ERROR : EXIT_NO_EP_ERROR;
    }
    if (!peer.ok) {
        printf("the peer found its data wrong\n");
        result = EXIT_WRONG;
    }
    turn_for(t, t->opt.linger);
    return t->run->ep_status != UCS_OK ? EXIT_EP_ERROR : result;
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Nobody destroys his worker while the other still closes its endpoint. */
static void leave(struct torture *t)
{
    struct link_packet packet;
    double             until = now_seconds() + LEAVE_SECONDS;

    link_send(t, LINK_LEAVE, 1);
    if (t->opt.leave || t->opt.linger) {
        return;
    }
    while (link_receive(t, &packet) == 0 && now_seconds() < until) {
        ucp_worker_progress(t->run->worker);
    }
}

/* Everything is closed: somebody may want to see what is left of it. */
static void hold(struct torture *t)
{
    double until = now_seconds() + t->opt.hold;

    if (t->opt.hold == 0) {
        return;
    }
    alarm(0);
    asked_to_stop = 0;
    printf("%.3f closed\n", wall_seconds());
    fflush(stdout);
    while (!asked_to_stop && now_seconds() < until) {
        usleep(10000);
    }
}

static void finish(struct torture *t, int result)
{
    if (result == EXIT_EP_ERROR) {
        printf("%.3f endpoint error: %s\n", t->run->ep_failed_at, ucs_status_string(t->run->ep_status));
    }
    report_final(t, result == EXIT_RIGHT);
    alarm(WATCHDOG);
    if (result != EXIT_RIGHT && result != EXIT_WRONG && !t->opt.plan.peer_err) {
        exit(result); /* nothing may be closed in this error handling mode */
    }
    for_each_ep(e, t)
    { /* first: the peer may still write into our memory */
        ep_close(e, result == EXIT_EP_ERROR || t->run->stuck);
    }
    for_each_ep(e, t)
    {
        rma_destroy(e);
        amo_destroy(e);
    }
    if (result == EXIT_RIGHT || result == EXIT_WRONG) {
        leave(t);
    }
    for_each_ep(e, t)
    {
        msg_cancel(e);
    }
    ucp_worker_destroy(t->run->worker);
    ucp_cleanup(t->run->context);
    for_each_ep(e, t)
    {
        msg_destroy(e);
    }
    link_destroy(t);
    report_destroy(t);
    series_destroy();
    hold(t);
    free(t->run->pattern[0]);
    free(t->run->pattern[1]);
}

static void on_alarm(int signal)
{
    static const char text[] = "ha_torture: stuck inside UCX\n";

    (void)signal;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(EXIT_STUCK);
}

/* The first one is made: the others are like it. */
static void endpoints_create(struct torture *endpoints)
{
    unsigned count = endpoints[0].opt.plan.eps;

    for (unsigned i = 0; i < count; i++) {
        if (i > 0) {
            endpoints[i]           = endpoints[0];
            endpoints[i].index     = i;
            endpoints[i].opt.plant = PLANT_NOTHING;
            endpoints[i - 1].next  = &endpoints[i];
        }
        endpoints[i].next = NULL;
        rma_create(&endpoints[i]);
        amo_create(&endpoints[i]);
        msg_create(&endpoints[i]);
    }
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    static struct torture     endpoints[MAX_EPS];
    static struct torture_run shared;
    struct torture           *t = &endpoints[0];
    int                       result;

    options_parse(&t->opt, argc, argv);
    t->is_client = t->opt.host != NULL;
    signal(SIGALRM, on_alarm);
    signal(SIGUSR1, on_stop);
    link_create(t);
    t->sends        = t->is_client || !t->opt.plan.oneway;
    t->run          = &shared;
    t->run->running = 1;
    pattern_create(t);
    report_create(t);
    buffers_create();
    series_create(t);
    worker_create(t);
    endpoints_create(endpoints);
    peer_connect(t);
    result = run(t);
    finish(t, result);
    return result;
}
