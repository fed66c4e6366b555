/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hte_error.h"

struct hte_shared {
    struct hte_link_ring link;
    uint64_t             addr, length;
    uint64_t             inode;
    int                  fd;
};

void hte_shareds_init(struct hte_shareds *shareds)
{
    hte_ring_init(&shareds->list);
    pthread_mutex_init(&shareds->lock, NULL);
}

static void destroy(struct hte_shared *shared)
{
    hte_ring_remove(&shared->link);
    munmap((void *)shared->addr, shared->length);
    close(shared->fd);
    free(shared);
}

void hte_shareds_cleanup(struct hte_shareds *shareds)
{
    while (!hte_ring_is_empty(&shareds->list)) {
        destroy(HTE_OBJECT_OF(shareds->list.next, struct hte_shared, link));
    }
    pthread_mutex_destroy(&shareds->lock);
}

/* Sealed, and all there: who maps it need not fear that it shrinks, or that there is no memory for it. */
static int make_file(size_t length)
{
    int fd = memfd_create("hte_memory", MFD_CLOEXEC | MFD_ALLOW_SEALING), error;

    if (fd < 0) {
        return -1;
    }
    if (fallocate(fd, 0, 0, (off_t)length) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool map(struct hte_shared *shared)
{
    struct stat stat;
    void       *addr;

    shared->fd = make_file(shared->length);
    if (shared->fd < 0) {
        return false;
    }
    addr = mmap(NULL, shared->length, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    if (addr == MAP_FAILED || fstat(shared->fd, &stat) != 0) {
        close(shared->fd);
        return false;
    }
    shared->addr  = (uint64_t)addr;
    shared->inode = stat.st_ino;
    return true;
}

int hte_shared_alloc(struct hte_shareds *shareds, size_t length, void **addr)
{
    size_t             page   = (size_t)sysconf(_SC_PAGESIZE);
    struct hte_shared *shared = calloc(1, sizeof(*shared));

    if (shared == NULL || length > SIZE_MAX / 2) {
        free(shared);
        return hte_fail(HTE_ERR_MEMORY, "no memory of %zu bytes", length);
    }
    shared->length = (length + page - 1) / page * page;
    if (!map(shared)) {
        free(shared);
        return hte_fail(HTE_ERR_MEMORY, "no shared memory of %zu bytes: %s", length, strerror(errno));
    }
    pthread_mutex_lock(&shareds->lock);
    hte_ring_append(&shareds->list, &shared->link);
    pthread_mutex_unlock(&shareds->lock);
    *addr = (void *)shared->addr;
    return HTE_OK;
}

/* With the lock held: the one that the range is inside of. */
static struct hte_shared *find(struct hte_shareds *shareds, uint64_t addr, uint64_t length)
{
    struct hte_link_ring *link;
    struct hte_shared    *shared;

    for (link = shareds->list.next; link != &shareds->list; link = link->next) {
        shared = HTE_OBJECT_OF(link, struct hte_shared, link);
        if (addr >= shared->addr && addr - shared->addr < shared->length &&
            length <= shared->length - (addr - shared->addr)) {
            return shared;
        }
    }
    return NULL;
}

size_t hte_shared_length(struct hte_shareds *shareds, const void *addr)
{
    struct hte_shared *shared;
    size_t             length;

    pthread_mutex_lock(&shareds->lock);
    shared = find(shareds, (uint64_t)addr, 1);
    length = shared != NULL && shared->addr == (uint64_t)addr ? shared->length : 0;
    pthread_mutex_unlock(&shareds->lock);
    return length;
}

void hte_shared_free(struct hte_shareds *shareds, void *addr)
{
    struct hte_shared *shared;

    pthread_mutex_lock(&shareds->lock);
    shared = find(shareds, (uint64_t)addr, 1);
    if (shared != NULL && shared->addr == (uint64_t)addr) {
        destroy(shared);
    }
    pthread_mutex_unlock(&shareds->lock);
}

void hte_shared_note(struct hte_shareds *shareds, struct hte_region *region)
{
    const struct hte_shared *shared;

    pthread_mutex_lock(&shareds->lock);
    shared = find(shareds, region->addr, region->length);
    if (shared != NULL) {
        region->file        = shared->fd;
        region->file_inode  = shared->inode;
        region->file_offset = region->addr - shared->addr;
    }
    pthread_mutex_unlock(&shareds->lock);
}
