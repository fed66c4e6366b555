/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "ha_cq_priv.h"

static int create(struct ha_srq *srq, unsigned depth)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = depth, .max_sge = 1}};

    errno    = 0;
    srq->srq = ibv_create_srq(srq->rail->device.pd, &attr);
    return srq->srq != NULL ? 0 : errno != 0 ? -errno : -ENOMEM;
}

int ha_srq_create(struct ha_rail *rail, unsigned depth, struct ha_srq **srq_p)
{
    struct ha_srq *srq;
    int            status;

    if (depth > rail->limits.max_srq_wr) {
        return -ENOTSUP;
    }
    srq    = calloc(1, sizeof(*srq));
    status = srq == NULL ? -ENOMEM : ha_device_use(&rail->device);
    if (status != 0) {
        free(srq);
        return status;
    }
    srq->rail = rail;
    status    = create(srq, depth);
    if (status != 0) {
        ha_device_leave(&rail->device);
        free(srq);
        return status;
    }
    *srq_p = srq;
    return 0;
}

void ha_srq_destroy(struct ha_srq *srq)
{
    (void)ibv_destroy_srq(srq->srq);
    ha_device_leave(&srq->rail->device);
    free(srq);
}

struct ha_recv *ha_srq_post(struct ha_srq *srq, struct ha_recv *first)
{
    struct ibv_recv_wr *bad = NULL;

    if (ibv_post_srq_recv(srq->srq, (struct ibv_recv_wr *)(void *)first, &bad) == 0) {
        return NULL;
    }
    return (struct ha_recv *)(void *)bad;
}

int ha_srq_watch(struct ha_srq *srq, unsigned limit)
{
    struct ibv_srq_attr attr   = {.srq_limit = limit};
    int                 status = ibv_modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT);

    return status > 0 ? -status : status;
}
