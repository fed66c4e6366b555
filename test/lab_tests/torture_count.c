/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "torture.h"

/*
 * What the process holds, to find leaks: file descriptors, memory, address
 * handles. Nobody but libibverbs knows of the latter, so its two functions are
 * wrapped here, ahead of it in the order of symbol lookup. (Queue pairs and
 * regions are counted outside, by `rdma resource`.)
 */

struct ibv_pd;
struct ibv_ah;
struct ibv_ah_attr;

/* exported by the linker's option -rdynamic */
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int            ibv_destroy_ah(struct ibv_ah *ah);

static int ahs;

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ibv_ah *(*real)(struct ibv_pd *,
                           struct ibv_ah_attr *) = (struct ibv_ah * (*)(struct ibv_pd *, struct ibv_ah_attr *))
        dlvsym(RTLD_NEXT, "ibv_create_ah", "IBVERBS_1.1");
    struct ibv_ah *ah = real(pd, attr);

    if (ah != NULL) {
        __atomic_fetch_add(&ahs, 1, __ATOMIC_RELAXED);
    }
    return ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    int (*real)(struct ibv_ah *) = (int (*)(struct ibv_ah *))dlvsym(RTLD_NEXT, "ibv_destroy_ah", "IBVERBS_1.1");
    int status                   = real(ah);

    if (status == 0) {
        __atomic_fetch_sub(&ahs, 1, __ATOMIC_RELAXED);
    }
    return status;
}

/* A connection by TCP: the library makes and keeps one to a peer when for a moment no rail can carry its packets. */
static int is_connection(int fd)
{
    struct sockaddr_storage peer;
    socklen_t               len = sizeof(peer);

    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

static void count_fds(struct held_counts *held)
{
    DIR           *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    held->fds = held->connections = 0;
    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] == '.' || fd == dirfd(dir)) {
            continue;
        }
        if (is_connection(fd)) {
            held->connections++;
        } else {
            held->fds++;
        }
    }
    closedir(dir);
}

static unsigned rss_kib(void)
{
    FILE         *file = fopen("/proc/self/statm", "r");
    unsigned long size, resident = 0;

    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%lu %lu", &size, &resident) != 2) {
        resident = 0;
    }
    fclose(file);
    return (unsigned)(resident * (unsigned long)sysconf(_SC_PAGESIZE) / 1024);
}

/* What was allocated and not freed: without what the allocator keeps. */
static unsigned heap_kib(void)
{
    struct mallinfo2 info = mallinfo2();

    return (unsigned)((info.uordblks + info.hblkhd) / 1024);
}

void held_count(struct held_counts *held)
{
    count_fds(held);
    held->rss_kib  = rss_kib();
    held->heap_kib = heap_kib();
    held->ahs      = __atomic_load_n(&ahs, __ATOMIC_RELAXED);
}
