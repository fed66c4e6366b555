/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_net.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 128
#define LOOK_MS 100 /* between two looks whether to stop */

int64_t hte_net_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- text -------------------------------------------------------------------- */

static bool parse_port(const char *text, uint16_t *port)
{
    unsigned long value;
    char         *end;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    value = strtoul(text, &end, 10);
    if (*end != '\0' || value == 0 || value > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

int hte_net_split(const char *text, char host[HTE_HOST_MAX + 1], uint16_t *port, struct hte_why *why)
{
    const char *start = text, *end, *colon;
    uint16_t    found = 0;

    if (text[0] == '[') {
        start = text + 1;
        end   = strchr(start, ']');
        colon = end != NULL && end[1] == ':' ? end + 1 : NULL;
        if (end == NULL || (end[1] != '\0' && colon == NULL)) {
            return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "'%s': an address of the form [v6]:port is expected",
                               text);
        }
    } else {
        colon = strchr(text, ':');
        if (colon != NULL && strchr(colon + 1, ':') != NULL) {
            colon = NULL; /* a bare v6 address */
        }
        end = colon != NULL ? colon : text + strlen(text);
    }
    if (end == start || (size_t)(end - start) > HTE_HOST_MAX) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "'%.64s': a host name of 1..%d characters is expected", text,
                           HTE_HOST_MAX);
    }
    if (colon != NULL && !parse_port(colon + 1, &found)) {
        return hte_why_set(why, HTE_ERR_INVALID_ARGUMENT, "'%s': '%s' is no port in 1..65535", text, colon + 1);
    }
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    *port             = found;
    return 0;
}

void hte_net_join(const char *host, uint16_t port, char text[HTE_ADDRESS_TEXT_MAX])
{
    const char *format = strchr(host, ':') != NULL ? "[%.*s]:%u" : "%.*s:%u";

    snprintf(text, HTE_ADDRESS_TEXT_MAX, format, HTE_HOST_MAX, host, port);
}

/* ---- the management address ------------------------------------------------------ */

static int resolve(const char *host, uint16_t port, int flags, struct addrinfo **list, struct hte_why *why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    char            service[8];
    int             ret;

    snprintf(service, sizeof(service), "%u", port);
    ret = getaddrinfo(host, service, &hints, list);
    if (ret != 0 && strcmp(host, "localhost") == 0) { /* RFC 6761 promises it, not every machine keeps it */
        ret = getaddrinfo("127.0.0.1", service, &hints, list);
    }
    if (ret == 0) {
        return 0;
    }
    return hte_why_set(why, HTE_ERR_DNS, "%s does not resolve: %s", host,
                       ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (b == NULL || a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    }
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24) == 127;
    }
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_of_this_machine(const struct sockaddr *address)
{
    struct ifaddrs *all, *one;
    bool            found = false;

    if (is_loopback(address)) {
        return true; /* all of 127/8 is ours; only one of it is listed */
    }
    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (one = all; one != NULL && !found; one = one->ifa_next) {
        found = same_address(address, one->ifa_addr);
    }
    freeifaddrs(all);
    return found;
}

static bool address_to_text(const struct sockaddr *address, socklen_t length, char text[HTE_HOST_MAX + 1])
{
    return getnameinfo(address, length, text, HTE_HOST_MAX + 1, NULL, 0, NI_NUMERICHOST) == 0;
}

/* Asked for by name: the loopback is meant. But Debian maps a machine's own name to 127.0.1.1, where no peer can
 * reach it. */
static bool loopback_is_meant(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static bool address_of_host(const char *host, char text[HTE_HOST_MAX + 1])
{
    struct addrinfo *list, *one;
    bool             found = false;

    if (resolve(host, 0, 0, &list, NULL) != 0) {
        return false;
    }
    for (one = list; one != NULL && !found; one = one->ai_next) {
        found = is_of_this_machine(one->ai_addr) && (!is_loopback(one->ai_addr) || loopback_is_meant(host)) &&
                address_to_text(one->ai_addr, one->ai_addrlen, text);
    }
    freeaddrinfo(list);
    return found;
}

/* Connecting a datagram socket chooses a route and a source address, and sends nothing.
 * The targets are addresses that are reserved for documentation. */
static bool address_of_default_route(const char *target, char text[HTE_HOST_MAX + 1])
{
    struct sockaddr_storage own;
    socklen_t               length = sizeof(own);
    struct addrinfo        *list;
    bool                    found = false;
    int                     fd;

    if (resolve(target, 9, AI_NUMERICHOST, &list, NULL) != 0) {
        return false;
    }
    fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        found = connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
                getsockname(fd, (struct sockaddr *)(void *)&own, &length) == 0 &&
                address_to_text((struct sockaddr *)(void *)&own, length, text);
        close(fd);
    }
    freeaddrinfo(list);
    return found;
}

void hte_net_management_address(const char *host, char address[HTE_HOST_MAX + 1])
{
    if ((host != NULL && address_of_host(host, address)) || address_of_default_route("192.0.2.1", address) ||
        address_of_default_route("2001:db8::1", address)) {
        return;
    }
    snprintf(address, HTE_HOST_MAX + 1, "127.0.0.1");
}

/* ---- sockets ------------------------------------------------------------------------ */

static int listen_at(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, error;

    if (fd < 0) {
        return -errno;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    error = errno;
    close(fd);
    return -error;
}

static int listen_on_port(const char *host, uint16_t port, int *fd, struct hte_why *why)
{
    struct addrinfo *list;
    int              ret = resolve(host, port, AI_PASSIVE, &list, why);
    char             address[HTE_ADDRESS_TEXT_MAX];

    if (ret != 0) {
        return ret;
    }
    *fd = listen_at(list);
    freeaddrinfo(list);
    if (*fd >= 0) {
        return 0;
    }
    hte_net_join(host, port, address);
    return hte_why_set(why, HTE_ERR_SOCKET, "cannot listen at %s: %s%s", address, strerror(-*fd),
                       *fd == -EADDRNOTAVAIL ? " (no address of this machine: set the bind address)" : "");
}

int hte_net_listen(const char *host, uint16_t first, uint16_t last, int *fd, uint16_t *port, struct hte_why *why)
{
    uint32_t num = (uint32_t)last - first + 1u, start = 0, i;
    int      ret = HTE_ERR_SOCKET;

    if (getrandom(&start, sizeof(start), GRND_NONBLOCK) != (ssize_t)sizeof(start)) {
        start = (uint32_t)getpid();
    }
    for (i = 0; i < num; i++) {
        *port = (uint16_t)(first + (start % num + i) % num);
        ret   = listen_on_port(host, *port, fd, why);
        if (ret == 0 || ret == HTE_ERR_DNS || *fd != -EADDRINUSE) {
            return ret;
        }
    }
    if (num > 1) {
        hte_why_set(why, ret, "no free port in %u..%u at %s", first, last, host);
    }
    return ret;
}

int hte_net_wait(int fd, short events, int64_t deadline, const _Atomic bool *stop, struct hte_why *why)
{
    struct pollfd entry = {.fd = fd, .events = events};
    int64_t       left;
    int           ret;

    do {
        if (stop != NULL && atomic_load(stop)) {
            return hte_why_set(why, HTE_ERR_CANCELED, "given up: the engine is being destroyed");
        }
        left = deadline - hte_net_now();
        ret  = poll(&entry, 1, left > 0 ? (int)(left < LOOK_MS ? left : LOOK_MS) : 0);
    } while ((ret < 0 && errno == EINTR) || (ret == 0 && hte_net_now() < deadline));
    if (ret > 0) {
        return 0;
    }
    return ret == 0 ? hte_why_set(why, HTE_ERR_TIMEOUT, "no answer in time")
                    : hte_why_set(why, HTE_ERR_SOCKET, "poll: %s", strerror(errno));
}

static int connect_to(const struct addrinfo *address, int64_t deadline, const _Atomic bool *stop, int *fd,
                      struct hte_why *why)
{
    socklen_t length = sizeof(int);
    int       on = 1, error = 0, ret;

    *fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0) {
        return hte_why_set(why, HTE_ERR_SOCKET, "socket: %s", strerror(errno));
    }
    if (connect(*fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
        error = errno;
    } else {
        ret = hte_net_wait(*fd, POLLOUT, deadline, stop, why);
        if (ret != 0) {
            close(*fd);
            return ret;
        }
        getsockopt(*fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) {
        close(*fd);
        *fd = -error;
        return hte_why_set(why, HTE_ERR_SOCKET, "%s", strerror(error));
    }
    setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return 0;
}

int hte_net_connect(const char *host, uint16_t port, int64_t deadline, const _Atomic bool *stop, int *fd,
                    struct hte_why *why)
{
    struct hte_why   cause = {.text = "no address"};
    char             address[HTE_ADDRESS_TEXT_MAX];
    struct addrinfo *list, *one;
    int              ret = resolve(host, port, 0, &list, why);

    if (ret != 0) {
        return ret;
    }
    ret = HTE_ERR_SOCKET;
    for (one = list; one != NULL && ret != 0; one = one->ai_next) {
        ret = connect_to(one, deadline, stop, fd, &cause);
    }
    freeaddrinfo(list);
    if (ret == 0) {
        return 0;
    }
    hte_net_join(host, port, address);
    return hte_why_set(why, ret, "connect to %s: %s", address, cause.text);
}
