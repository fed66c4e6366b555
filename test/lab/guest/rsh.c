/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames, and the client of the agent's TCP side: a remote shell between guests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

uint32_t get32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

void put32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(value >> (8 * i));
    }
}

int write_all(int fd, const void *data, size_t length)
{
    const char *p = data;

    while (length > 0) {
        ssize_t n = write(fd, p, length);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            struct pollfd pfd = {.fd = fd, .events = POLLOUT};
            if (poll(&pfd, 1, 5000) > 0) {
                continue;
            }
        }
        if (n <= 0) {
            return -1;
        }
        p += n;
        length -= (size_t)n;
    }
    return 0;
}

int frame_send(int fd, char type, uint32_t id, const void *payload, size_t length)
{
    uint8_t header[FRAME_HEADER];

    header[0] = (uint8_t)type;
    put32(header + 1, id);
    put32(header + 5, (uint32_t)length);
    return write_all(fd, header, sizeof(header)) || write_all(fd, payload, length);
}

static int tcp_connect(const char *host)
{
    struct addrinfo  hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    char             service[8];
    int              fd, one = 1;

    snprintf(service, sizeof(service), "%d", AGENT_TCP_PORT);
    if (getaddrinfo(host, service, &hints, &list) != 0) {
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, list->ai_addr, list->ai_addrlen) != 0) {
        close(fd);
        fd = -1;
    } else {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    freeaddrinfo(list);
    return fd;
}

static size_t append(char *buffer, size_t at, size_t size, const char *text)
{
    size_t n = strlen(text) + 1;

    if (at + n > size) {
        return size;
    }
    memcpy(buffer + at, text, n);
    return at + n;
}

static int rsh_request(int fd, char **words)
{
    static char request[65536], command[32768];
    char        path[4096];
    size_t      at = 0;

    snprintf(command, sizeof(command), ". /run/lab/env;");
    for (char **w = words; *w != NULL; w++) { /* as rsh does: join, and let a shell take it apart */
        size_t used = strlen(command);
        snprintf(command + used, sizeof(command) - used, " %s", *w);
    }
    snprintf(path, sizeof(path), "PATH=%s", getenv("PATH") != NULL ? getenv("PATH") : "/usr/sbin:/usr/bin:/sbin:/bin");
    at = append(request, at, sizeof(request), "/");
    at = append(request, at, sizeof(request), "2");
    at = append(request, at, sizeof(request), path);
    at = append(request, at, sizeof(request), "HOME=/root");
    at = append(request, at, sizeof(request), "/bin/bash");
    at = append(request, at, sizeof(request), "-c");
    at = append(request, at, sizeof(request), command);
    if (at == sizeof(request) || strlen(command) == sizeof(command) - 1) {
        fprintf(stderr, "lab rsh: the command is too long\n");
        return -1;
    }
    return frame_send(fd, 'X', 1, request, at);
}

int read_all(int fd, void *data, size_t length)
{
    char *p = data;

    while (length > 0) {
        ssize_t n = read(fd, p, length);
        if (n <= 0) {
            return -1;
        }
        p += n;
        length -= (size_t)n;
    }
    return 0;
}

int rsh(const char *host, char **words)
{
    static uint8_t data[FRAME_MAX];
    uint8_t        header[FRAME_HEADER];
    int            fd = tcp_connect(host);

    if (fd < 0 || rsh_request(fd, words) != 0) {
        fprintf(stderr, "lab rsh: no agent answers on '%s' (hosts are h1 and h2)\n", host);
        return 255;
    }
    while (read_all(fd, header, sizeof(header)) == 0) {
        size_t length = get32(header + 5);
        if (length > sizeof(data) || read_all(fd, data, length) != 0) {
            break;
        }
        if (header[0] == 'Q') {
            return (int)get32(data);
        }
        write_all(header[0] == 'E' ? 2 : 1, data, length);
    }
    fprintf(stderr, "lab rsh: lost '%s'\n", host);
    return 255;
}
