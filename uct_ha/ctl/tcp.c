/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif

#include "ctl/tcp.h"

#include "base/now.h"
#include "core/ha_packet.h"
#include "ctl/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH_LEN   2u
#define FRAME_MAX    (LENGTH_LEN + HA_PACKET_MTU)
#define RETRY_NS     500000000ull  /* between two tries to connect */
#define PROVE_NS     2000000000ull /* an incoming connection has so long to say something that is for us */
#define UNPROVEN_MAX 16            /* such ones at a time: beyond that the oldest goes */

struct incoming {          /* a connection that a peer made */
    struct incoming *next; /* the youngest first */
    int              fd;
    int              proven; /* it has said what is for us */
    uint64_t         since;
    size_t           have;
    uint8_t          frame[FRAME_MAX];
};

struct uct_ha_tcp_link {
    struct uct_ha_tcp_link *next;
    struct uct_ha_tcp      *tcp;
    struct uct_ha_tcp_addr  addr;
    int                     fd; /* -1 while there is none */
    int                     connected;
    uint64_t                retry_at;
    size_t                  rest; /* of a frame that the socket took in part, or the newest while it connects */
    uint8_t                 tail[FRAME_MAX];
};

struct uct_ha_tcp {
    struct uct_ha_tcp      *next; /* in `live` */
    pthread_mutex_t        *lock;
    uct_ha_tcp_cb           cb;
    void                   *arg;
    int                     fd;
    int                     spare; /* a descriptor to give up when there are no others */
    struct uct_ha_tcp_addr  addr;
    struct incoming        *incoming;
    unsigned                unproven;
    struct uct_ha_tcp_link *links;
};

/* A handler that was removed may be about to run all the same: it believes its
 * argument only if it is listed here. Lock order: this one before a carrier's. */
static pthread_mutex_t    live_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uct_ha_tcp *live;

/* ---- incoming --------------------------------------------------------------------- */

static void on_event(int fd, ucs_event_set_types_t events, void *arg);

static int watch(struct uct_ha_tcp *tcp, int fd, ucs_event_set_types_t events)
{
    return ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_SPINLOCK, fd, events, on_event, tcp, NULL) == UCS_OK
               ? 0
               : -EIO;
}

/* Not synchronous: the handler may wait for our lock. It looks its descriptor
 * up again and finds nothing. */
static void unwatch_close(int fd)
{
    (void)ucs_async_remove_handler(fd, 0);
    close(fd);
}

/* Out of descriptors the listener would stay readable for ever: use the spare
 * one to take the connection and refuse it. 1 = there may be more. */
static int refuse_one(struct uct_ha_tcp *tcp)
{
    int fd;

    if ((errno != EMFILE && errno != ENFILE) || tcp->spare < 0) {
        return 0;
    }
    close(tcp->spare);
    fd = accept4(tcp->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    tcp->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void drop_incoming(struct uct_ha_tcp *tcp, struct incoming *in)
{
    struct incoming **at;

    for (at = &tcp->incoming; *at != in; at = &(*at)->next) {
    }
    *at = in->next;
    tcp->unproven -= !in->proven;
    unwatch_close(in->fd);
    free(in);
}

static struct incoming *oldest_unproven(const struct uct_ha_tcp *tcp)
{
    struct incoming *oldest = NULL;

    for (struct incoming *in = tcp->incoming; in != NULL; in = in->next) {
        oldest = in->proven ? oldest : in;
    }
    return oldest;
}

uint64_t uct_ha_tcp_due(const struct uct_ha_tcp *tcp)
{
    return tcp->unproven == 0 ? UINT64_MAX : oldest_unproven(tcp)->since + PROVE_NS;
}

void uct_ha_tcp_sweep(struct uct_ha_tcp *tcp, uint64_t now)
{
    while (uct_ha_tcp_due(tcp) <= now) {
        drop_incoming(tcp, oldest_unproven(tcp));
    }
}

/* A host that vanishes says nothing: within a minute and a half its connection is one that failed. */
static void keep_alive(int fd)
{
    static const int on = 1, idle = 30, interval = 10, count = 6;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static void accept_all(struct uct_ha_tcp *tcp)
{
    struct incoming *in;
    int              fd;

    while ((fd = accept4(tcp->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0 || refuse_one(tcp)) {
        if (fd < 0) {
            continue;
        }
        if (tcp->unproven == UNPROVEN_MAX) {
            drop_incoming(tcp, oldest_unproven(tcp));
        }
        in = calloc(1, sizeof(*in));
        if (in == NULL || watch(tcp, fd, UCS_EVENT_SET_EVREAD) != 0) {
            free(in);
            close(fd);
            continue;
        }
        keep_alive(fd);
        in->fd        = fd;
        in->next      = tcp->incoming;
        in->since     = uct_ha_now();
        tcp->incoming = in;
        tcp->unproven++;
    }
    tcp->cb(tcp->arg, NULL, 0); /* the timer has to know */
}

static size_t frame_length(const struct incoming *in)
{
    return LENGTH_LEN + (size_t)(in->frame[0] << 8 | in->frame[1]);
}

/* Hand over whole frames. -EPROTO: not our protocol. */
static int take_frames(struct uct_ha_tcp *tcp, struct incoming *in)
{
    while (in->have >= LENGTH_LEN) {
        size_t length = frame_length(in);

        if (length > FRAME_MAX || length == LENGTH_LEN) {
            return -EPROTO;
        }
        if (in->have < length) {
            return 0;
        }
        if (tcp->cb(tcp->arg, in->frame + LENGTH_LEN, length - LENGTH_LEN) && !in->proven) {
            in->proven = 1;
            tcp->unproven--;
        }
        in->have -= length;
        memmove(in->frame, in->frame + length, in->have);
    }
    return 0;
}

static void read_incoming(struct uct_ha_tcp *tcp, struct incoming *in)
{
    ssize_t got;

    for (;;) {
        got = recv(in->fd, in->frame + in->have, sizeof(in->frame) - in->have, 0);
        if (got > 0) {
            in->have += (size_t)got;
            if (take_frames(tcp, in) != 0) {
                break;
            }
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else {
            break;
        }
    }
    drop_incoming(tcp, in); /* closed, broken, or a stranger: costs only itself */
}

/* ---- outgoing ----------------------------------------------------------------------- */

static void link_down(struct uct_ha_tcp_link *link)
{
    if (link->fd >= 0) {
        unwatch_close(link->fd);
    }
    link->fd        = -1;
    link->connected = 0;
    link->rest      = 0;
}

static void link_connect(struct uct_ha_tcp_link *link)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(link->addr.port)};
    int                on  = 1, fd;

    memcpy(&sin.sin_addr, link->addr.ip, sizeof(link->addr.ip));
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if ((connect(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0 && errno != EINPROGRESS) ||
        watch(link->tcp, fd, UCS_EVENT_SET_EVWRITE) != 0) {
        close(fd);
        return;
    }
    link->fd = fd;
}

static ssize_t write_some(struct uct_ha_tcp_link *link, const uint8_t *data, size_t length)
{
    ssize_t sent = send(link->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        link_down(link);
        return -1;
    }
    return sent < 0 ? 0 : sent;
}

/* What is left of the last frame goes first. 1 = nothing is left. */
static int flush_rest(struct uct_ha_tcp_link *link)
{
    ssize_t sent;

    if (link->rest == 0) {
        return 1;
    }
    sent = write_some(link, link->tail, link->rest);
    if (sent <= 0) {
        return 0;
    }
    link->rest -= (size_t)sent;
    memmove(link->tail, link->tail + sent, link->rest);
    return link->rest == 0;
}

static void link_event(struct uct_ha_tcp_link *link)
{
    int       error = 0;
    socklen_t len   = sizeof(error);
    uint8_t   byte;

    if (!link->connected) {
        (void)getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        if (error != 0) {
            link_down(link);
            return;
        }
        link->connected = 1;
        (void)ucs_async_modify_handler(link->fd, UCS_EVENT_SET_EVREAD);
        (void)flush_rest(link);
    } else if (recv(link->fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EINTR)) {
        link_down(link); /* the peer never sends here: this is its end */
    }
}

int uct_ha_tcp_send(struct uct_ha_tcp_link *link, const void *data, size_t length, uint64_t now)
{
    uint8_t frame[FRAME_MAX];
    ssize_t sent;

    if (length > HA_PACKET_MTU) {
        return 0;
    }
    if (link->fd < 0 && now >= link->retry_at) {
        link->retry_at = now + RETRY_NS;
        link_connect(link);
    }
    frame[0] = (uint8_t)(length >> 8);
    frame[1] = (uint8_t)length;
    memcpy(frame + LENGTH_LEN, data, length);
    if (link->fd >= 0 && !link->connected) {
        link->rest = LENGTH_LEN + length;
        memcpy(link->tail, frame, link->rest);
        return 1;
    }
    if (link->fd < 0 || !flush_rest(link)) {
        return 0;
    }
    sent = write_some(link, frame, LENGTH_LEN + length);
    if (sent <= 0) {
        return 0;
    }
    link->rest = LENGTH_LEN + length - (size_t)sent;
    memcpy(link->tail, frame + sent, link->rest);
    return 1;
}

int uct_ha_tcp_is_acknowledged(const struct uct_ha_tcp_link *link)
{
    int waiting = 0;

    return link->connected && link->rest == 0 && ioctl(link->fd, SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

struct uct_ha_tcp_link *uct_ha_tcp_link_create(struct uct_ha_tcp *tcp, const struct uct_ha_tcp_addr *addr)
{
    struct uct_ha_tcp_link *link = calloc(1, sizeof(*link));

    if (link != NULL) {
        link->tcp  = tcp;
        link->addr = *addr;
        link->fd   = -1;
        link->next = tcp->links;
        tcp->links = link;
    }
    return link;
}

void uct_ha_tcp_link_destroy(struct uct_ha_tcp_link *link)
{
    struct uct_ha_tcp_link **at;

    for (at = &link->tcp->links; *at != link; at = &(*at)->next) {
    }
    *at = link->next;
    link_down(link);
    free(link);
}

/* ---- the descriptor that is ready --------------------------------------------------- */

static int lock_if_live(struct uct_ha_tcp *tcp)
{
    struct uct_ha_tcp *entry;

    pthread_mutex_lock(&live_lock);
    for (entry = live; entry != NULL && entry != tcp; entry = entry->next) {
    }
    if (entry != NULL) {
        pthread_mutex_lock(tcp->lock);
    }
    pthread_mutex_unlock(&live_lock);
    return entry != NULL;
}

static void on_event(int fd, ucs_event_set_types_t events, void *arg)
{
    struct uct_ha_tcp      *tcp = arg;
    struct uct_ha_tcp_link *link;
    struct incoming        *in;

    (void)events;
    if (!lock_if_live(tcp)) {
        return;
    }
    for (in = tcp->incoming; in != NULL && in->fd != fd; in = in->next) {
    }
    for (link = tcp->links; link != NULL && link->fd != fd; link = link->next) {
    }
    if (fd == tcp->fd) {
        accept_all(tcp);
    } else if (in != NULL) {
        read_incoming(tcp, in);
    } else if (link != NULL) {
        link_event(link);
    }
    pthread_mutex_unlock(tcp->lock);
}

/* ---- life ----------------------------------------------------------------------------- */

static int listen_on(struct uct_ha_tcp *tcp, struct sockaddr_in *sin)
{
    socklen_t len = sizeof(*sin);

    sin->sin_port = 0; /* any: the address travels with the worker's */
    tcp->fd       = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (tcp->fd < 0 || bind(tcp->fd, (struct sockaddr *)sin, sizeof(*sin)) != 0 || listen(tcp->fd, SOMAXCONN) != 0 ||
        getsockname(tcp->fd, (struct sockaddr *)sin, &len) != 0) {
        return -errno;
    }
    memcpy(tcp->addr.ip, &sin->sin_addr, sizeof(tcp->addr.ip));
    tcp->addr.port = ntohs(sin->sin_port);
    return watch(tcp, tcp->fd, UCS_EVENT_SET_EVREAD);
}

ucs_status_t uct_ha_tcp_open(const char *interface, const struct ha_rail_addr *rails, unsigned num_rails,
                             pthread_mutex_t *lock, uct_ha_tcp_cb cb, void *arg, struct uct_ha_tcp **tcp_p)
{
    struct uct_ha_tcp *tcp = calloc(1, sizeof(*tcp));
    struct sockaddr_in sin;
    int                status;

    if (tcp == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    tcp->lock  = lock;
    tcp->cb    = cb;
    tcp->arg   = arg;
    tcp->fd    = -1;
    tcp->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    status     = uct_ha_netdev_choose(interface, rails, num_rails, &sin);
    if (status == 0) {
        status = listen_on(tcp, &sin);
    }
    if (status != 0) {
        ucs_debug("ha_rc: no TCP control port on %s: %s", interface[0] != '\0' ? interface : "any net device",
                  strerror(-status));
        if (tcp->fd >= 0) {
            close(tcp->fd);
        }
        close(tcp->spare);
        free(tcp);
        return UCS_ERR_NO_DEVICE;
    }
    pthread_mutex_lock(&live_lock);
    tcp->next = live;
    live      = tcp;
    pthread_mutex_unlock(&live_lock);
    *tcp_p = tcp;
    return UCS_OK;
}

void uct_ha_tcp_close(struct uct_ha_tcp *tcp)
{
    struct uct_ha_tcp **at;

    pthread_mutex_lock(&live_lock);
    for (at = &live; *at != tcp; at = &(*at)->next) {
    }
    *at = tcp->next;
    pthread_mutex_unlock(&live_lock);

    pthread_mutex_lock(tcp->lock);
    while (tcp->links != NULL) {
        uct_ha_tcp_link_destroy(tcp->links);
    }
    while (tcp->incoming != NULL) {
        drop_incoming(tcp, tcp->incoming);
    }
    unwatch_close(tcp->fd);
    close(tcp->spare);
    pthread_mutex_unlock(tcp->lock);
    free(tcp);
}

struct uct_ha_tcp_addr uct_ha_tcp_addr(const struct uct_ha_tcp *tcp)
{
    return tcp->addr;
}
