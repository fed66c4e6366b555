/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_trial.h"

#include <errno.h>
#include <string.h>

static int is_unsupported(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT;
}

static int to_init(struct ibv_qp *qp, uint8_t port, uint16_t pkey_index)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state   = IBV_QPS_INIT;
    attr.port_num   = port;
    attr.pkey_index = pkey_index;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const struct ibv_ah_attr *itself)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = IBV_MTU_256;
    attr.dest_qp_num        = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer      = 12;
    attr.ah_attr            = *itself;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = 14;
    attr.retry_cnt     = 1;
    attr.rnr_retry     = 1;
    attr.max_rd_atomic = 1;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

/* With so little asked for, "invalid" can only be the kind of queue pair. Of its way to itself that is not so sure:
 * what is wrong there shows in connections, and their errors. */
static int refuses(struct ibv_qp *qp, uint8_t port, uint16_t pkey_index, const struct ibv_ah_attr *itself)
{
    int error = to_init(qp, port, pkey_index);

    if (error != 0 || itself == NULL) {
        return error == EINVAL || is_unsupported(error);
    }
    error = to_rtr(qp, itself);
    return is_unsupported(error != 0 ? error : to_rts(qp));
}

int ha_trial(struct ibv_pd *pd, uint8_t port, uint16_t pkey_index, const struct ibv_ah_attr *itself)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *qp;
    int            status = 0;

    if (pd->context->device->transport_type != IBV_TRANSPORT_IB) {
        return -EPROTONOSUPPORT;
    }
    init.send_cq = init.recv_cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    if (init.send_cq == NULL) {
        return 0;
    }
    errno = 0;
    qp    = ibv_create_qp(pd, &init);
    if (qp == NULL) {
        status = errno == EINVAL || is_unsupported(errno) ? -EOPNOTSUPP : 0;
    } else {
        status = refuses(qp, port, pkey_index, itself) ? -EOPNOTSUPP : 0;
        (void)ibv_destroy_qp(qp);
    }
    (void)ibv_destroy_cq(init.send_cq);
    return status;
}
