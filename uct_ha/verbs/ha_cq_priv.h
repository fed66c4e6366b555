/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_CQ_PRIV_H_
#define HA_CQ_PRIV_H_

#include "ha_qp.h"
#include "ha_rail_priv.h"

struct ha_cq {
    struct ha_rail          *rail;
    struct ibv_cq           *cq;
    struct ibv_comp_channel *channel; /* NULL when events were not wanted */
    pthread_mutex_t          resizing;
    unsigned                 awaited; /* events that may have come: at most one each time it was armed */
};

struct ha_srq {
    struct ha_rail *rail;
    struct ibv_srq *srq;
};

#endif
