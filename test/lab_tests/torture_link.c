/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "torture.h"

/* The TCP connection over the management network. */

#define CONNECT_SECONDS 30

struct torture_link {
    int                fd;
    int                closed;
    struct link_packet packet; /* being received */
    size_t             have;
};

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "ha_torture: %s: %s\n", what, detail);
    exit(EXIT_USAGE);
}

static int accept_peer(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int                on = 1, fd, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval     limit = {.tv_sec = CONNECT_SECONDS};

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 1) != 0) {
        fail("cannot listen on the port given by --port", strerror(errno));
    }
    fd = accept(listener, NULL, NULL);
    if (fd < 0) {
        fail("no client connected", strerror(errno));
    }
    close(listener);
    return fd;
}

static int connect_peer(const char *host, unsigned port)
{
    struct addrinfo  hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    double           until = now_seconds() + CONNECT_SECONDS;
    char             service[16];
    int              fd, status;

    snprintf(service, sizeof(service), "%u", port);
    status = getaddrinfo(host, service, &hints, &found);
    if (status != 0) {
        fail(host, gai_strerror(status));
    }
    for (;;) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, found->ai_addr, found->ai_addrlen) == 0) {
            freeaddrinfo(found);
            return fd;
        }
        close(fd);
        if (now_seconds() > until) {
            fail("cannot connect to the server given by --host", strerror(errno));
        }
        usleep(50000);
    }
}

static void read_all(int fd, void *data, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t n = read(fd, (char *)data + have, size - have);

        if (n <= 0) {
            fail("the peer closed the connection during set-up", n < 0 ? strerror(errno) : "EOF");
        }
        have += (size_t)n;
    }
}

static void write_all(int fd, const void *data, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t n = send(fd, (const char *)data + have, size - have, MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            usleep(1000);
        } else if (n <= 0) {
            return; /* the receiving side notices */
        } else {
            have += (size_t)n;
        }
    }
}

/* Connects; the client's plan becomes the server's. */
void link_create(struct torture *t)
{
    int on = 1;

    t->link     = must_alloc(sizeof(*t->link));
    *t->link    = (struct torture_link){0};
    t->link->fd = t->is_client ? connect_peer(t->opt.host, t->opt.port) : accept_peer(t->opt.port);
    setsockopt(t->link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (t->is_client) {
        write_all(t->link->fd, &t->opt.plan, sizeof(t->opt.plan));
    } else {
        read_all(t->link->fd, &t->opt.plan, sizeof(t->opt.plan));
    }
}

void link_exchange(struct torture *t, const void *own, size_t own_size, void **peer, size_t *peer_size)
{
    uint64_t size = own_size;

    write_all(t->link->fd, &size, sizeof(size));
    write_all(t->link->fd, own, own_size);
    read_all(t->link->fd, &size, sizeof(size));
    *peer      = must_alloc(size);
    *peer_size = size;
    read_all(t->link->fd, *peer, size);
    fcntl(t->link->fd, F_SETFL, fcntl(t->link->fd, F_GETFL) | O_NONBLOCK);
}

void link_send(struct torture *t, enum link_type type, int ok)
{
    struct link_packet packet = {.type = type, .ok = (uint32_t)ok};

    for_each_ep(e, t)
    {
        memcpy(packet.ep[e->index].sent, e->total.sent, sizeof(e->total.sent));
        amo_expected(e, packet.ep[e->index].words);
    }
    write_all(t->link->fd, &packet, sizeof(packet));
}

int link_receive(struct torture *t, struct link_packet *packet)
{
    struct torture_link *link = t->link;
    ssize_t              n;

    if (link->closed) {
        return -1;
    }
    n = read(link->fd, (char *)&link->packet + link->have, sizeof(link->packet) - link->have);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (n <= 0) {
        link->closed = 1;
        return -1;
    }
    link->have += (size_t)n;
    if (link->have < sizeof(link->packet)) {
        return 0;
    }
    link->have = 0;
    *packet    = link->packet;
    return 1;
}

void link_destroy(struct torture *t)
{
    close(t->link->fd);
    free(t->link);
}
