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

/* It stopped after so many bytes of this one: whose memory is not mapped there, or, where a READ writes to it, may
 * not be written? */
static int fault_of(const struct hte_near_load *load, const struct hte_near_item *item, uint64_t done)
{
    const struct iovec *local = &load->local[item->first];
    char                scratch[4096];
    uint64_t            at, length;

    for (; done >= local->iov_len; ++local) {
        done -= local->iov_len;
    }
    for (at = 0; at < local->iov_len; at += length) {
        length = local->iov_len - at < sizeof(scratch) ? local->iov_len - at : sizeof(scratch);
        if (hte_access_copy(scratch, (char *)local->iov_base + at, length) != HTE_OK ||
            (!load->is_write && hte_access_copy((char *)local->iov_base + at, scratch, length) != HTE_OK)) {
            return HTE_ERR_MEMORY;
        }
    }
    return HTE_ERR_RANGE;
}

/* One call, from this item on up to the first that failed, or is not to be moved: *next is where to go on. Its ranges
 * come after the guard's, in whose place a range is that is over. HTE_OK, or what the connection breaks with. */
static int move_by_call(const struct hte_near *near, struct hte_near_load *load, unsigned from, unsigned *next)
{
    struct hte_near_item *item  = load->item;
    unsigned              first = item[from].first - 1, end = from;
    uint64_t              head = 0;
    ssize_t               done;

    for (*next = from; *next < load->n_items && item[*next].result == HTE_NEAR_NOT_MOVED; ++*next) {
        end = item[*next].first + item[*next].count;
    }
    load->local[first]  = (struct iovec){.iov_base = &head, .iov_len = sizeof(head)};
    load->remote[first] = (struct iovec){.iov_base = load->is_write ? mark_at(&near->host) : secret_at(&near->host),
                                         .iov_len  = sizeof(head)};

    done = vm_call(load->is_write, near->host.pid, &load->local[first], &load->remote[first], end - first);
    if (done < (ssize_t)sizeof(head)) {
        return done >= 0 || errno == ESRCH || errno == EFAULT ? HTE_ERR_DEAD_PEER : HTE_ERR_ENDPOINT;
    }
    if (!load->is_write && head != near->host.secret) {
        return HTE_ERR_DEAD_PEER;
    }
    done -= sizeof(head);
    for (; from < *next; done -= (ssize_t)item[from++].length) {
        if (done < (ssize_t)item[from].length) {
            item[from].result = fault_of(load, &item[from], (uint64_t)done);
            *next             = from + 1;
            return HTE_OK;
        }
        item[from].result = HTE_OK;
    }
    return HTE_OK;
}

/* What no mapping has. */
static int move_by_calls(const struct hte_near *near, struct hte_near_load *load)
{
    unsigned at    = 0;
    int      error = HTE_OK;

    while (at < load->n_items && error == HTE_OK) {
        if (load->item[at].result == HTE_NEAR_NOT_MOVED) {
            error = move_by_call(near, load, at, &at);
        } else {
            ++at;
        }
    }
    return error;
}

static void move_by_mapping(struct hte_near_load *load, struct hte_near_item *item)
{
    unsigned i;
    char    *remote;

    for (i = item->first; i < item->first + item->count; ++i) {
        remote = item->mapped + ((uint64_t)load->remote[i].iov_base - item->base);
        memcpy(load->is_write ? remote : load->local[i].iov_base, load->is_write ? load->local[i].iov_base : remote,
               load->local[i].iov_len);
    }
    item->result = HTE_OK;
}

static bool has_mapped(const struct hte_near_load *load)
{
    unsigned i;

    for (i = 0; i < load->n_items; ++i) {
        if (load->item[i].mapped != NULL) {
            return true;
        }
    }
    return false;
}

/* In the seat. */
static int move_seated(const struct hte_near *near, struct hte_near_load *load)
{
    struct hte_near_item *item = load->item, *end = item + load->n_items;
    int                   error = atomic_load(&near->page->is_open) ? HTE_OK : HTE_ERR_DEAD_PEER;

    for (; item < end; ++item) {
        if (!is_valid(near, item->slot, item->region)) {
            item->result = HTE_ERR_RANGE;
        }
    }
    if (error == HTE_OK && (load->is_write || has_mapped(load))) {
        error = look(&near->host);
    }
    if (error != HTE_OK) {
        return error;
    }
    for (item = load->item; item < end; ++item) {
        if (item->result == HTE_NEAR_NOT_MOVED && item->mapped != NULL) {
            move_by_mapping(load, item);
        }
    }
    return move_by_calls(near, load);
}

int hte_near_move(struct hte_near *near, struct hte_near_load *load)
{
    int error;

    hte_seat_begin(near->seat);
    error = move_seated(near, load);
    hte_seat_end(near->seat);
    return error;
}
