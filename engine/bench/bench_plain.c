/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX does without the engine: a loop of ucp_put_nbx() or ucp_get_nbx() per thread, as much under way as the
 * engine has, one flush at the end. Both sides wait as the engine's threads do. */
#include "bench_plain.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucp/api/ucp.h>

#include "bench_base.h"
#include "bench_options.h"

#define BLOB_MAX 65536
#define POLL     20e-6 /* seconds without success before it sleeps: the engine's option poll_us */

struct blob {
    size_t length;
    char   bytes[BLOB_MAX];
};

struct plain {
    ucp_context_h context;
    ucp_mem_h     memh;
    char         *memory;
};

static void must_ucs(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        die("baseline: %s: %s", what, ucs_status_string(status));
    }
}

static void send_all(int fd, const void *bytes, size_t length)
{
    if (write(fd, bytes, length) != (ssize_t)length) {
        die("baseline: the other process is gone");
    }
}

static void receive_all(int fd, void *bytes, size_t length)
{
    size_t  done = 0;
    ssize_t n;

    while (done < length) {
        n = read(fd, (char *)bytes + done, length - done);
        if (n <= 0) {
            die("baseline: the other process is gone");
        }
        done += (size_t)n;
    }
}

static void modify(ucp_config_t *config, const char *name, const char *value)
{
    ucs_status_t status = ucp_config_modify(config, name, value);

    if (status != UCS_OK) {
        die("baseline: UCX refuses UCX_%s='%s': %s", name, value, ucs_status_string(status));
    }
}

/* As the engine does it for its contexts, but with all the devices in one: the choice is UCX's. */
static ucp_config_t *configure(const struct options *o)
{
    ucp_config_t *config;
    char         *devices = strdup(engine_text(o, "devices")), *at;
    unsigned      i;

    must_ucs(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    for (at = devices; at != NULL && *at != '\0'; ++at) {
        *at = *at == '+' ? ',' : *at;
    }
    if (devices != NULL && devices[0] != '\0') {
        modify(config, "NET_DEVICES", devices);
    }
    free(devices);
    for (i = 0; i < o->n_engine; ++i) {
        if (strncmp(o->engine[i].key, "UCX_", 4) == 0) {
            modify(config, o->engine[i].key + 4, o->engine[i].value);
        }
    }
    return config;
}

static void open_plain(struct plain *plain, const struct options *o)
{
    uint64_t      size   = o->buffer_size;
    ucp_config_t *config = configure(o);
    ucp_params_t  params = {
         .field_mask        = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
         .features          = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP,
         .mt_workers_shared = 1,
    };
    ucp_mem_map_params_t map = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
        .length     = size,
    };

    must_ucs(ucp_init(&params, config, &plain->context), "ucp_init");
    ucp_config_release(config);
    plain->memory = aligned_alloc(4096, (size + 4095) & ~4095ull);
    if (plain->memory == NULL) {
        die("no memory for %llu bytes", (unsigned long long)size);
    }
    memset(plain->memory, 1, size);
    map.address = plain->memory;
    must_ucs(ucp_mem_map(plain->context, &map, &plain->memh), "ucp_mem_map");
}

static void close_plain(struct plain *plain)
{
    ucp_mem_unmap(plain->context, plain->memh);
    ucp_cleanup(plain->context);
    free(plain->memory);
}

static ucp_worker_h open_worker(const struct plain *plain)
{
    ucp_worker_params_t params = {.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_worker_h        worker;

    must_ucs(ucp_worker_create(plain->context, &params, &worker), "ucp_worker_create");
    return worker;
}

/* Waits as the engine's threads do: polls for a while, then sleeps. */
static void progress(ucp_worker_h worker, int event_fd)
{
    struct pollfd fd = {.fd = event_fd, .events = POLLIN};
    double        begin;

    if (ucp_worker_progress(worker) != 0) {
        return;
    }
    for (begin = now_seconds(); now_seconds() - begin < POLL;) {
        if (ucp_worker_progress(worker) != 0) {
            return;
        }
    }
    if (ucp_worker_arm(worker) == UCS_OK) {
        poll(&fd, 1, 100);
    }
}

/* ---- target ---- */

struct server {
    pthread_t     id;
    ucp_worker_h  worker;
    _Atomic bool *is_over;
};

static void *serve(void *arg)
{
    struct server *server = arg;
    int            event_fd;

    must_ucs(ucp_worker_get_efd(server->worker, &event_fd), "ucp_worker_get_efd");
    while (!atomic_load(server->is_over)) {
        progress(server->worker, event_fd);
    }
    return NULL;
}

static void tell_address(ucp_worker_h worker, int fd)
{
    struct blob    blob = {.length = 0};
    ucp_address_t *address;

    must_ucs(ucp_worker_get_address(worker, &address, &blob.length), "ucp_worker_get_address");
    if (blob.length > BLOB_MAX) {
        die("baseline: a worker address of %zu bytes", blob.length);
    }
    memcpy(blob.bytes, address, blob.length);
    ucp_worker_release_address(worker, address);
    send_all(fd, &blob, sizeof(blob));
}

static void tell_key(const struct plain *plain, int fd)
{
    struct blob blob = {.length = 0};
    uint64_t    addr = (uint64_t)plain->memory;
    void       *key;

    must_ucs(ucp_rkey_pack(plain->context, plain->memh, &key, &blob.length), "ucp_rkey_pack");
    memcpy(blob.bytes, key, blob.length);
    ucp_rkey_buffer_release(key);
    send_all(fd, &blob, sizeof(blob));
    send_all(fd, &addr, sizeof(addr));
}

void run_plain_target(const struct options *o, uint64_t threads, int out_fd, int in_fd)
{
    struct server *servers = calloc(threads, sizeof(*servers));
    _Atomic bool   is_over = false;
    struct plain   plain;
    uint64_t       i;
    char           byte;

    open_plain(&plain, o);
    tell_key(&plain, out_fd);
    for (i = 0; i < threads; ++i) {
        servers[i].worker  = open_worker(&plain);
        servers[i].is_over = &is_over;
        tell_address(servers[i].worker, out_fd);
        pthread_create(&servers[i].id, NULL, serve, &servers[i]);
    }
    receive_all(in_fd, &byte, 1);
    atomic_store(&is_over, true);
    for (i = 0; i < threads; ++i) {
        pthread_join(servers[i].id, NULL);
        ucp_worker_destroy(servers[i].worker);
    }
    close_plain(&plain);
    free(servers);
}

/* ---- initiator ---- */

struct client {
    pthread_t             id;
    pthread_barrier_t    *start;
    const struct options *options;
    const struct point   *point;
    ucp_worker_h          worker;
    ucp_ep_h              ep;
    ucp_rkey_h            rkey;
    char                 *local;
    uint64_t              remote, share, window, out, blocks;
    double                begin, finished;
    int                   event_fd;
};

static void on_end(void *request, ucs_status_t status, void *arg)
{
    must_ucs(status, "operation");
    --*(uint64_t *)arg;
    ucp_request_free(request);
}

static void post(struct client *c, uint64_t offset, uint64_t length)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_end,
        .user_data    = &c->out,
    };
    ucs_status_ptr_t request;

    ++c->out;
    request = c->options->operation == OPERATION_READ
                  ? ucp_get_nbx(c->ep, c->local + offset, length, c->remote + offset, c->rkey, &param)
                  : ucp_put_nbx(c->ep, c->local + offset, length, c->remote + offset, c->rkey, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        must_ucs(UCS_PTR_STATUS(request), "post");
        --c->out;
    }
}

static void flush(struct client *c)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = on_end,
        .user_data    = &c->out,
    };

    ++c->out;
    if (!UCS_PTR_IS_PTR(ucp_ep_flush_nbx(c->ep, &param))) {
        --c->out;
    }
    while (c->out > 0) {
        progress(c->worker, c->event_fd);
    }
}

static void go_over(struct client *c)
{
    double   end = now_seconds() + GO_OVER_SECONDS;
    uint64_t offset, length;

    for (offset = 0; offset < c->share && now_seconds() < end; offset += length) {
        length = c->share - offset < GO_OVER_BYTES ? c->share - offset : GO_OVER_BYTES;
        post(c, offset, length);
        while (c->out > 0) {
            progress(c->worker, c->event_fd);
        }
    }
    flush(c);
}

static void *run(void *arg)
{
    struct client *c      = arg;
    uint64_t       offset = 0, posted;

    go_over(c);
    pthread_barrier_wait(c->start);
    pthread_barrier_wait(c->start); /* the clock has been started */
    while (now_seconds() < c->begin + c->options->duration) {
        for (posted = 0; posted < c->window && c->out < c->window; ++posted) {
            offset = offset + c->point->block > c->share ? 0 : offset;
            post(c, offset, c->point->block);
            offset += c->point->block;
            ++c->blocks;
        }
        if (c->out < c->window) {
            ucp_worker_progress(c->worker); /* UCX has taken all at once, and may take more */
        } else {
            progress(c->worker, c->event_fd);
        }
    }
    flush(c);
    c->finished = now_seconds();
    return NULL;
}

static void connect_client(struct client *c, const struct plain *plain, struct blob *key, int in_fd)
{
    struct blob    *address = malloc(sizeof(*address));
    ucp_ep_params_t params  = {
         .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
         .err_mode   = UCP_ERR_HANDLING_MODE_PEER,
    };
    ucs_status_t status;

    if (address == NULL) {
        die("no memory");
    }
    receive_all(in_fd, address, sizeof(*address));
    c->worker      = open_worker(plain);
    params.address = (ucp_address_t *)address->bytes;
    must_ucs(ucp_worker_get_efd(c->worker, &c->event_fd), "ucp_worker_get_efd");
    status = ucp_ep_create(c->worker, &params, &c->ep);
    if (status == UCS_ERR_UNREACHABLE) { /* as the engine does */
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        status          = ucp_ep_create(c->worker, &params, &c->ep);
    }
    must_ucs(status, "ucp_ep_create");
    must_ucs(ucp_ep_rkey_unpack(c->ep, key->bytes, &c->rkey), "ucp_ep_rkey_unpack");
    flush(c);
    free(address);
}

static void disconnect_client(struct client *c)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t    request;

    ucp_rkey_destroy(c->rkey);
    request = ucp_ep_close_nbx(c->ep, &param);
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(c->worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    ucp_worker_destroy(c->worker);
}

/* Blocks under way: as many as the engine is given at a time, in the bytes of its window; its smaller requests take a
 * slice of the window each. */
static uint64_t window_of(const struct options *o, const struct point *point)
{
    uint64_t window = engine_number(o, "window"), slice = engine_number(o, "slice_size"), given;

    given = o->depth * point->batch;
    if (point->block > slice) {
        window = window * slice > point->block ? window * slice / point->block : 1;
    }
    return given < window ? given : window;
}

/* As many slices as the engine makes of the same bytes, so that processor time per slice can be compared. */
static uint64_t slices_of(const struct options *o, const struct result *result, uint64_t block)
{
    uint64_t slice = engine_number(o, "slice_size"), fragment = engine_number(o, "fragment_size");

    return result->blocks * (block / slice + (block < slice || block % slice > fragment));
}

/* When their clock was started, and the processor time so far. */
static double run_clients(struct client *clients, uint64_t count, double *cpu)
{
    pthread_barrier_t start;
    double            begin;
    uint64_t          i;

    if (pthread_barrier_init(&start, NULL, (unsigned)count + 1) != 0) {
        die("cannot create a barrier");
    }
    for (i = 0; i < count; ++i) {
        clients[i].start = &start;
        pthread_create(&clients[i].id, NULL, run, &clients[i]);
    }
    pthread_barrier_wait(&start);
    begin = now_seconds();
    *cpu  = cpu_seconds();
    for (i = 0; i < count; ++i) {
        clients[i].begin = begin;
    }
    pthread_barrier_wait(&start);
    pthread_barrier_destroy(&start);
    return begin;
}

void run_plain(const struct options *o, const struct point *point, int in_fd, int out_fd, struct result *result)
{
    struct client *clients = calloc(point->threads, sizeof(*clients));
    struct blob   *key     = malloc(sizeof(*key));
    struct plain   plain;
    uint64_t       i, remote;
    double         begin, cpu;

    if (clients == NULL || key == NULL) {
        die("no memory");
    }
    *result = (struct result){.seconds = 0};
    open_plain(&plain, o);
    receive_all(in_fd, key, sizeof(*key));
    receive_all(in_fd, &remote, sizeof(remote));
    for (i = 0; i < point->threads; ++i) {
        clients[i]        = (struct client){.options = o,
                                            .point   = point,
                                            .share   = o->buffer_size / point->threads & ~63ull,
                                            .window  = window_of(o, point)};
        clients[i].local  = plain.memory + i * clients[i].share;
        clients[i].remote = remote + i * clients[i].share;
        connect_client(&clients[i], &plain, key, in_fd);
    }
    begin = run_clients(clients, point->threads, &cpu);
    for (i = 0; i < point->threads; ++i) {
        pthread_join(clients[i].id, NULL);
        result->blocks += clients[i].blocks;
        result->seconds = clients[i].finished - begin > result->seconds ? clients[i].finished - begin : result->seconds;
    }
    result->cpu_seconds = cpu_seconds() - cpu;
    result->slices      = slices_of(o, result, point->block);
    result->bytes       = result->blocks * point->block;
    for (i = 0; i < point->threads; ++i) {
        disconnect_client(&clients[i]);
    }
    send_all(out_fd, "x", 1);
    close_plain(&plain);
    free(clients);
    free(key);
}
