/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "ha_rail_priv.h"

/* struct ha_mr is ibv_mr under a name of our own: nothing is added. */
static struct ibv_mr *to_verbs(const struct ha_mr *mr)
{
    return (struct ibv_mr *)(uintptr_t)mr;
}

int ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access, struct ha_mr **mr_p)
{
    int            flags = IBV_ACCESS_LOCAL_WRITE;
    struct ibv_mr *mr;

    flags |= (access & HA_ACCESS_REMOTE_PUT) ? IBV_ACCESS_REMOTE_WRITE : 0;
    flags |= (access & HA_ACCESS_REMOTE_GET) ? IBV_ACCESS_REMOTE_READ : 0;
    flags |= (access & HA_ACCESS_REMOTE_ATOMIC) ? IBV_ACCESS_REMOTE_ATOMIC : 0;

    mr = ibv_reg_mr(rail->pd, addr, length, flags);
    if (mr == NULL && (flags & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) == 0) {
        /* A read-only mapping can still be sent from and read from afar. */
        mr = ibv_reg_mr(rail->pd, addr, length, flags & IBV_ACCESS_REMOTE_READ);
    }
    if (mr == NULL) {
        return errno != 0 ? -errno : -EIO;
    }
    *mr_p = (struct ha_mr *)mr;
    return 0;
}

void ha_mr_dereg(struct ha_mr *mr)
{
    (void)ibv_dereg_mr(to_verbs(mr));
}

uint32_t ha_mr_lkey(const struct ha_mr *mr)
{
    return to_verbs(mr)->lkey;
}

uint32_t ha_mr_rkey(const struct ha_mr *mr)
{
    return to_verbs(mr)->rkey;
}
