/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

#define BURST         16   /* operations started between two calls of progress */
#define SETTLE        0.5  /* seconds for late writes to show, after the end */
#define LEAVE_SECONDS 20
#define WATCHDOG      30   /* seconds that one call of UCX may take */

static struct op *free_ops;

/* ---- operations ------------------------------------------------------------------ */

struct op *op_create(struct torture *t, unsigned kind, uint64_t seq, uint32_t size,
                     struct buffer *buffer)
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

void ep_failed(struct torture *t, ucs_status_t status)
{
    if (t->ep_status == UCS_OK) {
        t->ep_status    = status;
        t->ep_failed_at = wall_seconds();
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
    } else {
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
    uint64_t sum = t->total.sent[KIND_GET] - t->total.done[KIND_GET];

    for (unsigned kind = KIND_TAG; kind <= KIND_PUT; kind++) {
        sum += t->total.sent[kind] - t->total.acked[kind];
    }
    return sum;
}

/* ---- UCP --------------------------------------------------------------------------- */

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "ha_torture: %s: %s\n", what, ucs_status_string(status));
        exit(EXIT_USAGE);
    }
}

static void ep_error_handler(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    ep_failed(arg, status);
}

static void worker_create(struct torture *t)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA |
                      (t->opt.wakeup ? UCP_FEATURE_WAKEUP : 0),
    };
    ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SINGLE,
    };

    must(ucp_init(&params, NULL, &t->context), "ucp_init");
    must(ucp_worker_create(t->context, &worker_params, &t->worker), "ucp_worker_create");
    if (t->opt.wakeup) {
        must(ucp_worker_get_efd(t->worker, &t->event_fd), "ucp_worker_get_efd");
    }
}

static void ep_create(struct torture *t, const void *address)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .address    = address,
        .err_mode   = UCP_ERR_HANDLING_MODE_NONE,
    };

    if (t->opt.plan.peer_err) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode    = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = (ucp_err_handler_t){.cb = ep_error_handler, .arg = t};
    }
    must(ucp_ep_create(t->worker, &params, &t->ep), "ucp_ep_create");
}

/* Blob: size of the worker's address, the address, the remote keys. */
static void connect_peer(struct torture *t)
{
    static char    blob[16384];
    ucp_address_t *address;
    size_t         length, used, peer_size;
    uint64_t       size;
    void          *peer;

    must(ucp_worker_get_address(t->worker, &address, &length), "ucp_worker_get_address");
    if (length > sizeof(blob) / 2) {
        fprintf(stderr, "ha_torture: worker address of %zu bytes\n", length);
        exit(EXIT_USAGE);
    }
    size = length;
    memcpy(blob, &size, sizeof(size));
    memcpy(blob + sizeof(size), address, length);
    used = sizeof(size) + length;
    used += rma_pack(t, blob + used, sizeof(blob) - used);
    ucp_worker_release_address(t->worker, address);

    link_exchange(t, blob, used, &peer, &peer_size);
    memcpy(&size, peer, sizeof(size));
    ep_create(t, (char *)peer + sizeof(size));
    rma_unpack(t, (char *)peer + sizeof(size) + size, peer_size - sizeof(size) - size);
    free(peer);
}

static void sleep_until_event(struct torture *t)
{
    struct pollfd fd = {.fd = t->event_fd, .events = POLLIN};
    ucs_status_t  status = ucp_worker_arm(t->worker);

    if (status == UCS_OK) {
        poll(&fd, 1, 10);
    } else if (status != UCS_ERR_BUSY) {
        must(status, "ucp_worker_arm");
    }
}

/* ---- the run -------------------------------------------------------------------------- */

static void start_some(struct torture *t)
{
    static uint64_t dice;
    unsigned        kind, n;

    for (n = 0; n < BURST && outstanding(t) < t->opt.plan.window && t->ep_status == UCS_OK; n++) {
        kind = (unsigned)(mix(t->opt.plan.seed + dice++) % KIND_COUNT);
        if (t->opt.plan.ops & (1u << kind)) {
            (void)(kind <= KIND_AM ? msg_start(t, kind) : rma_start(t, kind));
        }
    }
}

/* A peer that computes: it calls nothing of UCX for a while each second. */
static int is_busy(const struct torture *t)
{
    return t->opt.busy_ms > 0 && fmod(now_seconds(), 1.0) * 1000 < t->opt.busy_ms;
}

static void turn(struct torture *t)
{
    static unsigned turns;
    unsigned        moved;

    if (is_busy(t)) {
        usleep(1000);
        report_poll(t);
        return;
    }
    if (t->running && t->sends) {
        start_some(t);
    }
    moved = ucp_worker_progress(t->worker);
    msg_progress(t);
    rma_progress(t);
    if (moved == 0 && t->opt.wakeup) {
        sleep_until_event(t);
    }
    if (++turns % 32 == 0) {
        report_poll(t);
    }
    if (turns % 1024 == 0) {
        alarm(WATCHDOG);
    }
}

static int stalled(struct torture *t)
{
    if (report_stalled(t) < t->opt.stall_limit) {
        return 0;
    }
    printf("%.3f no progress for %u s and no endpoint error\n", wall_seconds(),
           t->opt.stall_limit);
    return 1;
}

/* Turns until a packet of that type came. 0, or how the program has to end. */
static int turn_until(struct torture *t, enum link_type type, struct link_packet *packet)
{
    double closed_at = 0;
    int    got;

    for (;;) {
        turn(t);
        if (t->ep_status != UCS_OK) {
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

static int should_stop(struct torture *t, double until)
{
    uint64_t limit = t->opt.plan.max_failovers;

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
        if (t->ep_status != UCS_OK) {
            return EXIT_EP_ERROR;
        }
        if (stalled(t)) {
            return EXIT_NO_EP_ERROR;
        }
    }
    link_send(t, LINK_STOP, 1);
    return 0;
}

static int all_done(const struct torture *t)
{
    return outstanding(t) == 0 && t->total.done[KIND_TAG] == t->total.sent[KIND_TAG] &&
           t->total.done[KIND_AM] == t->total.sent[KIND_AM] &&
           t->total.done[KIND_PUT] == t->total.sent[KIND_PUT];
}

static int phase_drain(struct torture *t, struct link_packet *peer)
{
    t->running = 0;
    report_progress(t);
    while (!all_done(t)) {
        turn(t);
        if (t->ep_status != UCS_OK) {
            return EXIT_EP_ERROR;
        }
        if (stalled(t)) {
            return EXIT_NO_EP_ERROR;
        }
    }
    link_send(t, LINK_DRAINED, 1);
    return turn_until(t, LINK_DRAINED, peer);
}

static void turn_for(struct torture *t, double seconds)
{
    double until = now_seconds() + seconds;

    while (now_seconds() < until && t->ep_status == UCS_OK) {
        turn(t);
    }
}

static int is_right(const struct torture *t)
{
    const struct totals *total = &t->total;

    return total->lost + total->duplicate + total->reordered + total->corrupt +
               total->stale_write + total->errors == 0;
}

static int run(struct torture *t)
{
    struct link_packet peer;
    int                result;

    if ((result = phase_run(t)) != 0 || (result = phase_drain(t, &peer)) != 0) {
        return result;
    }
    turn_for(t, SETTLE);
    msg_check_lost(t, peer.sent);
    rma_check_final(t, peer.sent);
    result = is_right(t) ? EXIT_RIGHT : EXIT_WRONG;
    link_send(t, LINK_VERDICT, result == EXIT_RIGHT);
    if (turn_until(t, LINK_VERDICT, &peer) != 0) {
        return t->ep_status != UCS_OK ? EXIT_EP_ERROR : EXIT_NO_EP_ERROR;
    }
    if (!peer.ok) {
        printf("the peer found its data wrong\n");
        result = EXIT_WRONG;
    }
    turn_for(t, t->opt.linger);
    return t->ep_status != UCS_OK ? EXIT_EP_ERROR : result;
}

/* ---- the end ---------------------------------------------------------------------------- */

static void ep_close(struct torture *t, int force)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = force ? UCP_EP_CLOSE_FLAG_FORCE : 0,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(t->ep, &param);
    double           until   = now_seconds() + LEAVE_SECONDS;

    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(t->worker);
        if (now_seconds() > until) {
            printf("%.3f closing the endpoint took longer than %d s\n", wall_seconds(),
                   LEAVE_SECONDS);
            _exit(EXIT_STUCK);
        }
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

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
        ucp_worker_progress(t->worker);
    }
}

static void finish(struct torture *t, int result)
{
    if (result == EXIT_EP_ERROR) {
        printf("%.3f endpoint error: %s\n", t->ep_failed_at, ucs_status_string(t->ep_status));
    }
    report_final(t, result == EXIT_RIGHT);
    alarm(WATCHDOG);
    if (result != EXIT_RIGHT && result != EXIT_WRONG && !t->opt.plan.peer_err) {
        exit(result); /* nothing may be closed in this error handling mode */
    }
    ep_close(t, result == EXIT_EP_ERROR); /* first: the peer may still write into our memory */
    rma_destroy(t);
    if (result == EXIT_RIGHT || result == EXIT_WRONG) {
        leave(t);
    }
    msg_cancel(t);
    ucp_worker_destroy(t->worker);
    ucp_cleanup(t->context);
    msg_destroy(t);
    link_destroy(t);
    report_destroy(t);
    free(t->pattern[0]);
    free(t->pattern[1]);
}

static void on_alarm(int signal)
{
    static const char text[] = "ha_torture: stuck inside UCX\n";

    (void)signal;
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(EXIT_STUCK);
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    static struct torture torture;
    struct torture       *t = &torture;
    int                   result;

    options_parse(&t->opt, argc, argv);
    t->is_client = t->opt.host != NULL;
    signal(SIGALRM, on_alarm);
    signal(SIGUSR1, on_stop);
    link_create(t);
    t->sends   = t->is_client || !t->opt.plan.oneway;
    t->running = 1;
    pattern_create(t);
    report_create(t);
    worker_create(t);
    rma_create(t);
    msg_create(t);
    connect_peer(t);
    result = run(t);
    finish(t, result);
    return result;
}
