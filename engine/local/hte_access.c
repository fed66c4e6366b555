/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_access.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t length_of(const struct iovec *ranges, unsigned count)
{
    uint64_t length = 0;
    unsigned i;

    for (i = 0; i < count; ++i) {
        length += ranges[i].iov_len;
    }
    return length;
}

/* Between this process's memory and itself. A sandbox that forbids the call leaves memcpy(3): false. By its number: a
 * program's threads are not ordered with what peers do, and a thread sanitizer would look at the function of that name.
 */
static bool move(const struct iovec *to, unsigned n_to, const struct iovec *from, unsigned n_from, int *error)
{
    long done = syscall(SYS_process_vm_readv, getpid(), to, (unsigned long)n_to, from, (unsigned long)n_from, 0ul);

    *error = done >= 0 && (uint64_t)done == length_of(to, n_to) ? HTE_OK : HTE_ERR_RANGE;
    return done >= 0 || errno == EFAULT;
}

int hte_access_scatter(const struct iovec *to, unsigned count, const void *from)
{
    struct iovec all = {.iov_base = (void *)from, .iov_len = length_of(to, count)};
    const char  *at  = from;
    unsigned     i;
    int          error;

    if (move(to, count, &all, 1, &error)) {
        return error;
    }
    for (i = 0; i < count; at += to[i++].iov_len) {
        memcpy(to[i].iov_base, at, to[i].iov_len);
    }
    return HTE_OK;
}

int hte_access_gather(void *to, const struct iovec *from, unsigned count)
{
    struct iovec all = {.iov_base = to, .iov_len = length_of(from, count)};
    char        *at  = to;
    unsigned     i;
    int          error;

    if (move(&all, 1, from, count, &error)) {
        return error;
    }
    for (i = 0; i < count; at += from[i++].iov_len) {
        memcpy(at, from[i].iov_base, from[i].iov_len);
    }
    return HTE_OK;
}

int hte_access_copy(void *to, const void *from, size_t length)
{
    struct iovec range = {.iov_base = to, .iov_len = length};

    return hte_access_scatter(&range, 1, from);
}

/* With the lock held. */
static int check(const struct hte_regions *regions, uint64_t id, const struct iovec *ranges, unsigned count,
                 bool is_write)
{
    const struct hte_region *region = hte_regions_find(regions, (uint64_t)ranges[0].iov_base);
    unsigned                 i;

    if (region == NULL || region->id != id || region->is_gpu) { /* who sends letters for that does not know better */
        return HTE_ERR_RANGE;
    }
    for (i = 0; i < count; ++i) {
        if (!hte_region_has(region, (uint64_t)ranges[i].iov_base, ranges[i].iov_len)) {
            return HTE_ERR_RANGE;
        }
    }
    if (region->permission == HTE_PERM_GLOBAL_RW || (!is_write && region->permission == HTE_PERM_GLOBAL_RO)) {
        return HTE_OK;
    }
    return HTE_ERR_PERMISSION;
}

int hte_access_write(struct hte_regions *regions, uint64_t region, const struct iovec *to, unsigned count,
                     const void *bytes)
{
    int error;

    pthread_rwlock_rdlock(&regions->lock);
    error = check(regions, region, to, count, true);
    error = error == HTE_OK ? hte_access_scatter(to, count, bytes) : error;
    pthread_rwlock_unlock(&regions->lock);
    return error;
}

int hte_access_read(struct hte_regions *regions, uint64_t region, const struct iovec *from, unsigned count, void *bytes)
{
    int error;

    pthread_rwlock_rdlock(&regions->lock);
    error = check(regions, region, from, count, false);
    error = error == HTE_OK ? hte_access_gather(bytes, from, count) : error;
    pthread_rwlock_unlock(&regions->lock);
    return error;
}
