/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "hte_server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hte_net.h"
#include "hte_server_peer.h"

#define EVENTS_MAX   64
#define PAUSE_MS     200 /* of accepting, without file descriptors */
#define TOKEN_LISTEN UINT32_MAX
#define TOKEN_STOP   (UINT32_MAX - 1)

struct hte_server {
    struct hte_server_options options;
    uint16_t                  port;
    int                       listen_fd, epoll_fd, stop_fd;
    pthread_t                 thread;

    /* of the thread alone */
    int64_t                 paused_until; /* 0 = accepting */
    struct hte_peer       **peers;        /* max_peers slots; a slot is the epoll token */
    struct hte_server_stats counted;

    pthread_mutex_t         lock;
    struct hte_server_stats stats; /* under lock */
};

static bool watch(const struct hte_server *server, int how, int fd, uint32_t token, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = token};

    return epoll_ctl(server->epoll_fd, how, fd, &event) == 0;
}

/* ---- peers ---------------------------------------------------------------------- */

static void drop_peer(struct hte_server *server, uint32_t slot)
{
    hte_peer_destroy(server->peers[slot]); /* closing takes it out of epoll */
    server->peers[slot] = NULL;
}

static bool is_proven(const struct hte_server *server, const struct hte_peer *peer)
{
    return server->options.secret != NULL && peer->session.state == HTE_SESSION_OPEN;
}

/* A free slot. When there is none, the peer that we have waited for longest makes room; unproven ones first. */
static uint32_t find_slot(struct hte_server *server)
{
    const struct hte_peer *peer, *oldest = NULL;
    uint32_t               slot, victim  = 0;

    for (slot = 0; slot < server->options.max_peers; slot++) {
        peer = server->peers[slot];
        if (peer == NULL) {
            return slot;
        }
        if (oldest == NULL || is_proven(server, peer) < is_proven(server, oldest) ||
            (is_proven(server, peer) == is_proven(server, oldest) && peer->since < oldest->since)) {
            oldest = peer;
            victim = slot;
        }
    }
    server->counted.evicted++;
    drop_peer(server, victim);
    return victim;
}

static void accept_peer(struct hte_server *server, int64_t now)
{
    int      fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uint32_t slot;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            server->paused_until = now + PAUSE_MS;
            watch(server, EPOLL_CTL_MOD, server->listen_fd, TOKEN_LISTEN, 0);
        }
        return;
    }
    server->counted.accepted++;
    slot                = find_slot(server);
    server->peers[slot] = hte_peer_create(fd, &server->options, now);
    if (server->peers[slot] != NULL && !watch(server, EPOLL_CTL_ADD, fd, slot, EPOLLIN)) {
        drop_peer(server, slot);
    }
}

/* An event of a peer that was dropped a moment ago may find the slot empty or another
 * peer in it: a read too many, which finds nothing. */
static void advance_peer(struct hte_server *server, uint32_t slot, int64_t now)
{
    struct hte_peer *peer = server->peers[slot];

    if (peer == NULL) {
        return;
    }
    if (!hte_peer_advance(peer, &server->options, &server->counted, now) ||
        !watch(server, EPOLL_CTL_MOD, peer->fd, slot, peer->state == HTE_PEER_WRITING ? EPOLLOUT : EPOLLIN)) {
        drop_peer(server, slot);
    }
}

/* ---- time ------------------------------------------------------------------------ */

static void end_waits(struct hte_server *server, int64_t now)
{
    uint32_t slot;

    for (slot = 0; slot < server->options.max_peers; slot++) {
        if (server->peers[slot] != NULL && now - server->peers[slot]->since >= (int64_t)server->options.read_ms) {
            server->counted.timeouts++;
            drop_peer(server, slot);
        }
    }
    if (server->paused_until != 0 && now >= server->paused_until) {
        server->paused_until = 0;
        watch(server, EPOLL_CTL_MOD, server->listen_fd, TOKEN_LISTEN, EPOLLIN);
    }
}

/* Milliseconds until end_waits() has something to do, -1 = never. */
static int next_wait(const struct hte_server *server, int64_t now)
{
    int64_t  first = server->paused_until != 0 ? server->paused_until : INT64_MAX, end;
    uint32_t slot;

    for (slot = 0; slot < server->options.max_peers; slot++) {
        if (server->peers[slot] != NULL) {
            end   = server->peers[slot]->since + server->options.read_ms;
            first = end < first ? end : first;
        }
    }
    return first == INT64_MAX ? -1 : first <= now ? 0 : (int)(first - now);
}

static void publish_stats(struct hte_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->stats = server->counted;
    pthread_mutex_unlock(&server->lock);
}

/* ---- the thread ------------------------------------------------------------------- */

/* False when it is time to stop. */
static bool handle_events(struct hte_server *server, const struct epoll_event *events, int num_events)
{
    int64_t now = hte_net_now();
    int     i;

    for (i = 0; i < num_events; i++) {
        if (events[i].data.u32 == TOKEN_STOP) {
            return false;
        }
        if (events[i].data.u32 == TOKEN_LISTEN) {
            accept_peer(server, now);
        } else {
            advance_peer(server, events[i].data.u32, now);
        }
    }
    end_waits(server, now);
    return true;
}

static void *serve(void *arg)
{
    struct hte_server *server = arg;
    struct epoll_event events[EVENTS_MAX];
    int                num_events;

    do {
        publish_stats(server);
        num_events = epoll_wait(server->epoll_fd, events, EVENTS_MAX, next_wait(server, hte_net_now()));
    } while (handle_events(server, events, num_events));
    return NULL;
}

/* ---- life -------------------------------------------------------------------------- */

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void destroy(struct hte_server *server)
{
    uint32_t slot;

    for (slot = 0; server->peers != NULL && slot < server->options.max_peers; slot++) {
        if (server->peers[slot] != NULL) {
            drop_peer(server, slot);
        }
    }
    free(server->peers);
    close_fd(server->listen_fd);
    close_fd(server->epoll_fd);
    close_fd(server->stop_fd);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* The application's signal handlers are for its own threads. */
static int start_thread(struct hte_server *server)
{
    sigset_t all, before;
    int      ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&server->thread, NULL, serve, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ret;
}

static int start(struct hte_server *server, struct hte_why *why)
{
    const struct hte_server_options *options = &server->options;
    int ret = hte_net_listen(options->host, options->first_port, options->last_port, &server->listen_fd, &server->port,
                             why);

    if (ret != 0) {
        server->listen_fd = -1;
        return ret;
    }
    server->peers    = calloc(options->max_peers, sizeof(*server->peers));
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->stop_fd  = eventfd(0, EFD_CLOEXEC);
    if (server->peers == NULL || server->epoll_fd < 0 || server->stop_fd < 0 ||
        !watch(server, EPOLL_CTL_ADD, server->listen_fd, TOKEN_LISTEN, EPOLLIN) ||
        !watch(server, EPOLL_CTL_ADD, server->stop_fd, TOKEN_STOP, EPOLLIN)) {
        return hte_why_set(why, HTE_ERR_MEMORY, "handshake server: %s", strerror(errno));
    }
    ret = start_thread(server);
    return ret == 0 ? 0 : hte_why_set(why, HTE_ERR_MEMORY, "handshake server: %s", strerror(ret));
}

int hte_server_start(const struct hte_server_options *options, struct hte_server **server, struct hte_why *why)
{
    struct hte_server *made = calloc(1, sizeof(*made));
    int                ret;

    if (made == NULL) {
        return hte_why_set(why, HTE_ERR_MEMORY, "no memory for the handshake server");
    }
    made->options   = *options;
    made->listen_fd = made->epoll_fd = made->stop_fd = -1;
    pthread_mutex_init(&made->lock, NULL);
    ret = start(made, why);
    if (ret != 0) {
        destroy(made);
        return ret;
    }
    *server = made;
    return 0;
}

void hte_server_stop(struct hte_server *server)
{
    uint64_t one = 1;

    while (write(server->stop_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    pthread_join(server->thread, NULL);
    destroy(server);
}

uint16_t hte_server_port(const struct hte_server *server)
{
    return server->port;
}

void hte_server_get_stats(const struct hte_server *server, struct hte_server_stats *stats)
{
    struct hte_server *locked = (struct hte_server *)server;

    pthread_mutex_lock(&locked->lock);
    *stats = locked->stats;
    pthread_mutex_unlock(&locked->lock);
}
