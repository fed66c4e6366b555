/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "hte_access.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Between this process's memory and itself. A sandbox that forbids the call leaves memcpy(3). By its number: a
 * program's threads are not ordered with what peers do, and a thread sanitizer would look at the function of that name.
 */
int hte_access_copy(void *to, const void *from, size_t length)
{
    struct iovec local = {.iov_base = to, .iov_len = length}, remote = {.iov_base = (void *)from, .iov_len = length};
    long         done = syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);

    if (done == (long)length) {
        return HTE_OK;
    }
    if (done < 0 && errno != EFAULT) {
        memcpy(to, from, length);
        return HTE_OK;
    }
    return HTE_ERR_RANGE;
}

/* With the lock held. */
static int check(const struct hte_regions *regions, uint64_t id, uint64_t addr, size_t length, bool is_write)
{
    const struct hte_region *region = hte_regions_find(regions, addr);

    if (region == NULL || region->id != id || length > region->length - (addr - region->addr)) {
        return HTE_ERR_RANGE;
    }
    if (region->permission == HTE_PERM_GLOBAL_RW || (!is_write && region->permission == HTE_PERM_GLOBAL_RO)) {
        return HTE_OK;
    }
    return HTE_ERR_PERMISSION;
}

int hte_access_write(struct hte_regions *regions, uint64_t region, uint64_t addr, const void *bytes, size_t length)
{
    int error;

    pthread_rwlock_rdlock(&regions->lock);
    error = check(regions, region, addr, length, true);
    error = error == HTE_OK ? hte_access_copy((void *)addr, bytes, length) : error;
    pthread_rwlock_unlock(&regions->lock);
    return error;
}

int hte_access_read(struct hte_regions *regions, uint64_t region, uint64_t addr, void *bytes, size_t length)
{
    int error;

    pthread_rwlock_rdlock(&regions->lock);
    error = check(regions, region, addr, length, false);
    error = error == HTE_OK ? hte_access_copy(bytes, (const void *)addr, length) : error;
    pthread_rwlock_unlock(&regions->lock);
    return error;
}
