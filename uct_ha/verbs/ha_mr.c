/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_rail_priv.h"

int ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access, struct ha_mr **mr_p)
{
    int flags = IBV_ACCESS_LOCAL_WRITE, status;

    flags |= (access & HA_ACCESS_REMOTE_PUT) ? IBV_ACCESS_REMOTE_WRITE : 0;
    flags |= (access & HA_ACCESS_REMOTE_GET) ? IBV_ACCESS_REMOTE_READ : 0;
    flags |= (access & HA_ACCESS_REMOTE_ATOMIC) ? IBV_ACCESS_REMOTE_ATOMIC : 0;

    status = ha_device_reg(&rail->device, addr, length, flags, mr_p);
    if (status != 0 && (flags & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) == 0) {
        /* A read-only mapping can still be sent from and read from afar. */
        status = ha_device_reg(&rail->device, addr, length, flags & IBV_ACCESS_REMOTE_READ, mr_p);
    }
    return status;
}

void ha_mr_dereg(struct ha_mr *mr)
{
    ha_device_dereg(mr);
}

uint32_t ha_mr_lkey(const struct ha_mr *mr)
{
    return mr->lkey;
}

uint32_t ha_mr_rkey(const struct ha_mr *mr)
{
    return mr->rkey;
}
