/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

/*
 * How connections begin. Round after round two processes create new workers, and at the
 * same moment endpoints to each other; each sends one message on each endpoint and
 * waits for the echo. Time: from ucp_ep_create() to the echo. A connection is connected
 * (echo), refused (its error handler was called) or, after --limit seconds, hung.
 *
 *   ha_connect --port P                                               server
 *   ha_connect --port P --host H --rounds R --eps E --limit S         client, dictates the rest
 *
 * One line per connection on stdout: "round,endpoint,milliseconds,status"; the last line is JSON.
 */

#define MAX_EPS  256
#define ADDR_MAX 8192
enum { AM_PING, AM_ECHO };
enum { WAITING, CONNECTED, REFUSED };

struct plan {
    uint32_t rounds, eps, limit;
};

struct connection {
    ucp_ep_h ep;
    int      state;
    double   began, took;
    uint32_t number; /* what is sent */
    unsigned echoes; /* wanted by the peer before our endpoint was there */
};

static struct plan       plan = {10, 20, 30};
static struct connection conns[MAX_EPS];
static ucp_context_h     context;
static ucp_worker_h      worker;
static int               tcp;
static unsigned          pending; /* sends under way */
static unsigned          connected, refused, hung;
static double           *times;

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    fprintf(stderr, "ha_connect: %s\n", what);
    exit(2);
}

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "ha_connect: %s: %s\n", what, ucs_status_string(status));
        exit(2);
    }
}

/* ---- the TCP connection: plan, addresses, barriers -------------------------------- */

static void link_up(const char *host, const char *port)
{
    struct addrinfo  hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found;
    int              on    = 1, fd;
    double           until = now() + 30;

    if (getaddrinfo(host, port, &hints, &found) != 0) {
        fail("host or port not understood");
    }
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (host == NULL) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0 ||
            (tcp = accept(fd, NULL, NULL)) < 0) {
            fail("cannot listen on that port");
        }
        close(fd);
    } else {
        while (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
            close(fd);
            if (now() > until) {
                fail("the server does not answer");
            }
            usleep(50000);
            fd = socket(AF_INET, SOCK_STREAM, 0);
        }
        tcp = fd;
    }
    freeaddrinfo(found);
    setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void give(const void *data, size_t size)
{
    if (send(tcp, data, size, MSG_NOSIGNAL) != (ssize_t)size) {
        fail("the other side is gone");
    }
}

static void take(void *data, size_t size)
{
    if (recv(tcp, data, size, MSG_WAITALL) != (ssize_t)size) {
        fail("the other side is gone");
    }
}

/* Until the other side is here too, without ceasing to serve it. */
static void barrier(void)
{
    char byte = 0;

    give(&byte, 1);
    while (recv(tcp, &byte, 1, MSG_DONTWAIT) != 1) {
        ucp_worker_progress(worker);
    }
}

/* ---- messages ------------------------------------------------------------------------ */

static void sent(void *request, ucs_status_t status, void *user_data)
{
    (void)status, (void)user_data;
    ucp_request_free(request);
    pending--;
}

static void say(struct connection *conn, unsigned id)
{
    ucp_request_param_t param   = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = sent};
    ucs_status_ptr_t    request = ucp_am_send_nbx(conn->ep, id, NULL, 0, &conn->number, sizeof(conn->number), &param);

    pending += UCS_PTR_IS_PTR(request);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    struct connection *conn;
    uint32_t           number;

    (void)header, (void)header_length, (void)param;
    if (length != sizeof(number)) {
        fail("a message of the wrong length");
    }
    memcpy(&number, data, sizeof(number));
    if (number >= plan.eps) {
        fail("a message with the wrong contents");
    }
    conn = &conns[number];
    if (arg == NULL) {
        conn->echoes++;
    } else if (conn->state == WAITING) {
        conn->state = CONNECTED;
        conn->took  = now() - conn->began;
    }
    return UCS_OK;
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct connection *conn = arg;

    (void)ep, (void)status;
    if (conn->state == WAITING) {
        conn->state = REFUSED;
        conn->took  = now() - conn->began;
    }
}

/* ---- a round -------------------------------------------------------------------------- */

static void worker_begin(void)
{
    ucp_worker_params_t params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};

    must(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    for (uintptr_t id = AM_PING; id <= AM_ECHO; id++) {
        ucp_am_handler_param_t handler = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
            .id    = (unsigned)id,
            .cb    = on_message,
            .arg   = (void *)id,
            .flags = UCP_AM_FLAG_WHOLE_MSG,
        };
        must(ucp_worker_set_am_recv_handler(worker, &handler), "ucp_worker_set_am_recv_handler");
    }
}

static void addresses_swap(char *peer)
{
    ucp_address_t *own;
    size_t         length;
    uint64_t       size;

    must(ucp_worker_get_address(worker, &own, &length), "ucp_worker_get_address");
    size = length;
    give(&size, sizeof(size));
    give(own, length);
    ucp_worker_release_address(worker, own);
    take(&size, sizeof(size));
    if (size > ADDR_MAX) {
        fail("the other side's address is too long");
    }
    take(peer, size);
}

static void connect_all(const char *peer)
{
    for (uint32_t i = 0; i < plan.eps; i++) {
        struct connection *conn   = &conns[i];
        ucp_ep_params_t    params = {
               .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                             UCP_EP_PARAM_FIELD_ERR_HANDLER,
               .address     = (const ucp_address_t *)peer,
               .err_mode    = UCP_ERR_HANDLING_MODE_PEER,
               .err_handler = {.cb = on_error, .arg = conn},
        };

        conn->number = i;
        conn->state  = WAITING;
        conn->began  = now();
        if (ucp_ep_create(worker, &params, &conn->ep) != UCS_OK) {
            conn->state = REFUSED;
            conn->ep    = NULL;
            continue;
        }
        say(conn, AM_PING);
    }
}

static int turn(void)
{
    int waiting = 0;

    ucp_worker_progress(worker);
    for (uint32_t i = 0; i < plan.eps; i++) {
        for (; conns[i].echoes > 0 && conns[i].ep != NULL; conns[i].echoes--) {
            say(&conns[i], AM_ECHO);
        }
        waiting += conns[i].state == WAITING;
    }
    return waiting;
}

static void close_all(void)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t    closing[MAX_EPS];
    double              until = now() + plan.limit;

    for (uint32_t i = 0; i < plan.eps; i++) {
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = conns[i].state == CONNECTED ? 0 : UCP_EP_CLOSE_FLAG_FORCE;
        closing[i]         = conns[i].ep == NULL ? NULL : ucp_ep_close_nbx(conns[i].ep, &param);
    }
    for (uint32_t i = 0; i < plan.eps; i++) {
        while (UCS_PTR_IS_PTR(closing[i]) && ucp_request_check_status(closing[i]) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
            if (now() > until) {
                fail("closing an endpoint takes for ever");
            }
        }
        if (UCS_PTR_IS_PTR(closing[i])) {
            ucp_request_free(closing[i]);
        }
    }
}

static void round_run(uint32_t round)
{
    static const char *const names[] = {"hung", "connected", "refused"};
    static char              peer[ADDR_MAX];
    double                   until;

    memset(conns, 0, sizeof(conns));
    worker_begin();
    addresses_swap(peer);
    barrier();
    until = now() + plan.limit;
    connect_all(peer);
    while (turn() > 0 && now() < until) {
    }
    for (uint32_t i = 0; i < plan.eps; i++) {
        int state = conns[i].state;

        if (state == CONNECTED) {
            times[connected++] = conns[i].took * 1000;
        }
        refused += state == REFUSED;
        hung += state == WAITING;
        printf("%u,%u,%.3f,%s\n", round, i, conns[i].took * 1000, names[state]);
    }
    barrier(); /* the peer may still wait for our echo */
    for (int i = 0; i < 100 && pending > 0; i++) {
        turn();
    }
    close_all();
    barrier();
    ucp_worker_destroy(worker);
}

/* ---- the program ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double rank_of(double share)
{
    return connected == 0 ? 0 : times[(unsigned)(share * (connected - 1))];
}

static void report(void)
{
    qsort(times, connected, sizeof(*times), by_value);
    printf("{\"connections\":%u,\"connected\":%u,\"refused\":%u,\"hung\":%u,\"p50_ms\":%.3f,"
           "\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
           plan.rounds * plan.eps, connected, refused, hung, rank_of(0.5), rank_of(0.99), rank_of(1));
    fflush(stdout);
}

static void usage(void)
{
    fprintf(stderr, "usage: ha_connect --port P [--host H [--rounds R] [--eps E, up to %d] [--limit S]]\n", MAX_EPS);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"port", 1, NULL, 'p'}, {"host", 1, NULL, 'h'},  {"rounds", 1, NULL, 'r'},
                                            {"eps", 1, NULL, 'e'},  {"limit", 1, NULL, 'l'}, {NULL, 0, NULL, 0}};
    ucp_params_t               params    = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    const char                *host = NULL, *port = NULL;
    int                        option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            port = optarg;
            break;
        case 'h':
            host = optarg;
            break;
        case 'r':
            plan.rounds = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'e':
            plan.eps = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'l':
            plan.limit = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        default:
            usage();
        }
    }
    if (port == NULL || plan.rounds == 0 || plan.eps == 0 || plan.eps > MAX_EPS || optind < argc) {
        usage();
    }
    link_up(host, port);
    if (host != NULL) {
        give(&plan, sizeof(plan));
    } else {
        take(&plan, sizeof(plan));
    }
    times = calloc((size_t)plan.rounds * plan.eps, sizeof(*times));
    if (times == NULL) {
        fail("no memory");
    }
    must(ucp_init(&params, NULL, &context), "ucp_init");
    for (uint32_t round = 0; round < plan.rounds; round++) {
        round_run(round);
    }
    report();
    ucp_cleanup(context);
    free(times);
    close(tcp);
    return hung > 0;
}
