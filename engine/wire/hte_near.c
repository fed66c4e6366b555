/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_near.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hte_near_map.h"
#include "local/hte_access.h"

struct hte_near {
    struct hte_desc_host   host; /* its text is not ours */
    struct hte_board_page *page;
    struct hte_seat       *seat;
    struct hte_link_ring   maps;
};

/* By number: see hte_access.c. */
static ssize_t vm_call(bool is_write, uint64_t pid, const struct iovec *local, const struct iovec *remote, unsigned n)
{
    return syscall(is_write ? SYS_process_vm_writev : SYS_process_vm_readv, (pid_t)pid, local, (unsigned long)n, remote,
                   (unsigned long)n, 0ul);
}

static uint64_t *secret_at(const struct hte_desc_host *host)
{
    return &((struct hte_guard *)host->guard)->secret;
}

static uint64_t *mark_at(const struct hte_desc_host *host)
{
    return &((struct hte_guard *)host->guard)->mark;
}

/* The process is the one that the descriptor is of: HTE_OK, DEAD_PEER, or ENDPOINT and errno. */
static int look(const struct hte_desc_host *host)
{
    uint64_t     secret = 0;
    struct iovec local  = {.iov_base = &secret, .iov_len = sizeof(secret)};
    struct iovec remote = {.iov_base = secret_at(host), .iov_len = sizeof(secret)};
    ssize_t      done   = vm_call(false, host->pid, &local, &remote, 1);

    if (done == sizeof(secret)) {
        return secret == host->secret ? HTE_OK : HTE_ERR_DEAD_PEER;
    }
    return errno == ESRCH || errno == EFAULT ? HTE_ERR_DEAD_PEER : HTE_ERR_ENDPOINT;
}

/* ---- opening ---- */

/* Both directions: a sandbox may forbid one. */
static int try_moving(const struct hte_desc_host *host)
{
    uint64_t     mark   = 1;
    struct iovec local  = {.iov_base = &mark, .iov_len = sizeof(mark)};
    struct iovec remote = {.iov_base = mark_at(host), .iov_len = sizeof(mark)};
    int          error  = look(host);

    if (error == HTE_OK && vm_call(true, host->pid, &local, &remote, 1) != sizeof(mark)) {
        error = HTE_ERR_ENDPOINT;
    }
    return error;
}

static struct hte_near *fail(struct hte_near *near, char *why, size_t size, const char *what)
{
    int error = errno;

    snprintf(why, size, "%s%s%s", what, error == 0 ? "" : ": ", error == 0 ? "" : strerror(error));
    if (near != NULL && near->page != NULL) {
        hte_near_unmap_board(near->page);
    }
    free(near);
    return NULL;
}

static struct hte_near *open_it(struct hte_near *near, char *why, size_t size)
{
    near->page = hte_near_map_board(&near->host);
    if (near->page == NULL) {
        return fail(near, why, size,
                    errno == EACCES || errno == EPERM
                        ? "its process may not be looked into (another user, not dumpable)"
                        : "its board cannot be mapped");
    }
    if (try_moving(&near->host) != HTE_OK) {
        return fail(near, why, size,
                    errno == EPERM ? "process_vm_readv is not allowed (kernel.yama.ptrace_scope, or a sandbox)"
                                   : "process_vm_readv");
    }
    near->seat = hte_board_sit(near->page);
    if (near->seat == NULL) {
        errno = 0;
        return fail(near, why, size, "too many processes are connected to it so");
    }
    return near;
}

struct hte_near *hte_near_open(const struct hte_view *view, const char *host, bool *is_gone, char *why, size_t size)
{
    const struct hte_desc_host *of = &view->descriptor->host;
    struct hte_near            *near;

    *is_gone = false;
    errno    = 0;
    if (host[0] == '\0' || of->identity == NULL) {
        return fail(NULL, why, size, host[0] == '\0' ? "not wanted here, or not possible" : "not wanted there");
    }
    if (strcmp(host, of->identity) != 0) {
        return fail(NULL, why, size, "another host, or container");
    }
    near = calloc(1, sizeof(*near));
    if (near == NULL) {
        return fail(NULL, why, size, "no memory");
    }
    near->host = *of;
    hte_ring_init(&near->maps);
    near     = open_it(near, why, size);
    *is_gone = near == NULL && look(of) == HTE_ERR_DEAD_PEER;
    return near;
}

void hte_near_close(struct hte_near *near)
{
    if (near == NULL) {
        return;
    }
    while (!hte_ring_is_empty(&near->maps)) {
        hte_near_unmap(HTE_OBJECT_OF(near->maps.next, struct hte_near_map, link));
    }
    hte_board_rise(near->seat);
    hte_near_unmap_board(near->page);
    free(near);
}

static bool is_valid(const struct hte_near *near, uint64_t slot, uint64_t region)
{
    return slot > 0 && slot < HTE_BOARD_SLOTS && atomic_load(&near->page->slots[slot]) == region;
}

void hte_near_sweep(struct hte_near *near)
{
    struct hte_link_ring *link, *next;
    struct hte_near_map  *map;

    for (link = near->maps.next; link != &near->maps; link = next) {
        next = link->next;
        map  = HTE_OBJECT_OF(link, struct hte_near_map, link);
        if (!is_valid(near, map->slot, map->region)) {
            hte_near_unmap(map);
        }
    }
}

char *hte_near_mapped(struct hte_near *near, const struct hte_desc_buffer *buffer)
{
    if (buffer->file_inode == 0 || !is_valid(near, buffer->slot, buffer->id)) {
        return NULL;
    }
    return hte_near_map_find(&near->maps, &near->host, buffer);
}

/* ---- moving ---- */

/* It stopped in this one: whose memory is not mapped? */
static int fault_of(const struct hte_near_span *span)
{
    char     scratch[4096];
    uint64_t at, length;

    for (at = 0; at < span->length; at += length) {
        length = span->length - at < sizeof(scratch) ? span->length - at : sizeof(scratch);
        if (hte_access_copy(scratch, span->local + at, length) != HTE_OK) {
            return HTE_ERR_MEMORY;
        }
    }
    return HTE_ERR_RANGE;
}

/* Spans from `from` on that no mapping has. What came of each; HTE_OK, or what the connection breaks with. */
static int move_by_calls(const struct hte_near *near, struct hte_near_spans *spans, unsigned from)
{
    uint64_t     head = 0;
    struct iovec local[HTE_NEAR_SPANS_MAX + 1], remote[HTE_NEAR_SPANS_MAX + 1];
    unsigned     i, n = 1;
    ssize_t      done;

    local[0]  = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
    remote[0] = (struct iovec){.iov_base = spans->is_write ? mark_at(&near->host) : secret_at(&near->host),
                               .iov_len  = sizeof(head)};
    for (i = from; i < spans->count; ++i) {
        if (spans->span[i].result == HTE_NEAR_NOT_MOVED) {
            local[n]  = (struct iovec){.iov_base = spans->span[i].local, .iov_len = spans->span[i].length};
            remote[n] = (struct iovec){.iov_base = (void *)spans->span[i].remote, .iov_len = spans->span[i].length};
            ++n;
        }
    }
    if (n == 1) {
        return HTE_OK;
    }
    done = vm_call(spans->is_write, near->host.pid, local, remote, n);
    if (done < (ssize_t)sizeof(head)) {
        return done >= 0 || errno == ESRCH || errno == EFAULT ? HTE_ERR_DEAD_PEER : HTE_ERR_ENDPOINT;
    }
    if (!spans->is_write && head != near->host.secret) {
        return HTE_ERR_DEAD_PEER;
    }
    done -= sizeof(head);
    for (i = from; i < spans->count; ++i) {
        if (spans->span[i].result != HTE_NEAR_NOT_MOVED) {
            continue;
        }
        if (done < (ssize_t)spans->span[i].length) {
            spans->span[i].result = fault_of(&spans->span[i]);
            return move_by_calls(near, spans, i + 1); /* those behind it */
        }
        done -= (ssize_t)spans->span[i].length;
        spans->span[i].result = HTE_OK;
    }
    return HTE_OK;
}

static bool move_by_mappings(struct hte_near_spans *spans)
{
    struct hte_near_span *span;
    unsigned              i;
    bool                  is_all = true;

    for (i = 0; i < spans->count; ++i) {
        span = &spans->span[i];
        if (span->result == HTE_NEAR_NOT_MOVED && span->mapped != NULL) {
            memcpy(spans->is_write ? span->mapped : span->local, spans->is_write ? span->local : span->mapped,
                   span->length);
            span->result = HTE_OK;
        }
        is_all &= span->result != HTE_NEAR_NOT_MOVED;
    }
    return is_all;
}

static bool needs_look(const struct hte_near_spans *spans)
{
    unsigned i;
    bool     needs = spans->is_write;

    for (i = 0; i < spans->count; ++i) {
        needs |= spans->span[i].mapped != NULL;
    }
    return needs;
}

/* In the seat. */
static int move_seated(const struct hte_near *near, struct hte_near_spans *spans)
{
    unsigned i;
    int      error = atomic_load(&near->page->is_open) ? HTE_OK : HTE_ERR_DEAD_PEER;

    for (i = 0; i < spans->count; ++i) {
        if (!is_valid(near, spans->span[i].slot, spans->span[i].region)) {
            spans->span[i].result = HTE_ERR_RANGE;
        }
    }
    if (error == HTE_OK && needs_look(spans)) {
        error = look(&near->host);
    }
    if (error != HTE_OK || move_by_mappings(spans)) {
        return error;
    }
    return move_by_calls(near, spans, 0);
}

int hte_near_move(struct hte_near *near, struct hte_near_spans *spans)
{
    int error;

    hte_seat_begin(near->seat);
    error = move_seated(near, spans);
    hte_seat_end(near->seat);
    return error;
}
