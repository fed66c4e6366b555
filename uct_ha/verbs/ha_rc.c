/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ha_cq_priv.h"

/* What others hold is the driver's queue pair itself: to post, nothing of ours is looked at. */
struct ha_rc {
    struct ibv_qp qp;
};

/* The rest, at the queue pair's context. */
struct rest {
    struct ibv_send_wr *bad; /* what was refused, which nobody asks */
    struct ha_rail     *rail;
    const void         *owner;
    int                 rtr; /* it can receive: a connect that failed later goes on from there */
};

static struct rest *rest_of(const struct ha_rc *rc)
{
    return rc->qp.qp_context;
}

_Static_assert(sizeof(struct ha_sge) == sizeof(struct ibv_sge) &&
                   offsetof(struct ha_sge, addr) == offsetof(struct ibv_sge, addr) &&
                   offsetof(struct ha_sge, length) == offsetof(struct ibv_sge, length) &&
                   offsetof(struct ha_sge, lkey) == offsetof(struct ibv_sge, lkey),
               "struct ha_sge is handed to the device as it is");

_Static_assert(sizeof(struct ha_recv) == sizeof(struct ibv_recv_wr) &&
                   offsetof(struct ha_recv, wr_id) == offsetof(struct ibv_recv_wr, wr_id) &&
                   offsetof(struct ha_recv, next) == offsetof(struct ibv_recv_wr, next) &&
                   offsetof(struct ha_recv, sge) == offsetof(struct ibv_recv_wr, sg_list) &&
                   offsetof(struct ha_recv, num_sge) == offsetof(struct ibv_recv_wr, num_sge),
               "struct ha_recv is handed to the device as it is");

#define SAME_PLACE(_ha, _ibv) (offsetof(struct ha_send, _ha) == offsetof(struct ibv_send_wr, _ibv))

_Static_assert(sizeof(struct ha_send) == sizeof(struct ibv_send_wr) && SAME_PLACE(wr_id, wr_id) &&
                   SAME_PLACE(next, next) && SAME_PLACE(sge, sg_list) && SAME_PLACE(num_sge, num_sge) &&
                   SAME_PLACE(op, opcode) && SAME_PLACE(flags, send_flags) && SAME_PLACE(imm, imm_data),
               "struct ha_send is handed to the device as it is");

_Static_assert(SAME_PLACE(remote_addr, wr.rdma.remote_addr) && SAME_PLACE(rkey, wr.rdma.rkey) &&
                   SAME_PLACE(remote_addr, wr.atomic.remote_addr) &&
                   SAME_PLACE(atomic.compare_add, wr.atomic.compare_add) && SAME_PLACE(atomic.swap, wr.atomic.swap) &&
                   SAME_PLACE(atomic.rkey, wr.atomic.rkey),
               "the same");

_Static_assert(HA_WRITE == (int)IBV_WR_RDMA_WRITE && HA_WRITE_IMM == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
                   HA_SEND_IMM == (int)IBV_WR_SEND_WITH_IMM && HA_READ == (int)IBV_WR_RDMA_READ &&
                   HA_COMPARE_SWAP == (int)IBV_WR_ATOMIC_CMP_AND_SWP &&
                   HA_FETCH_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD,
               "so is its operation");

_Static_assert(HA_SEND_FENCE == (unsigned)IBV_SEND_FENCE && HA_SEND_TELL == (unsigned)IBV_SEND_SIGNALED &&
                   HA_SEND_INLINE == (unsigned)IBV_SEND_INLINE,
               "so are its flags");

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int status = ibv_modify_qp(qp, attr, mask);

    return status > 0 ? -status : status;
}

static int to_init(struct ha_rc *rc)
{
    struct ibv_qp_attr attr;

    ha_rail_fill_init(rest_of(rc)->rail, &attr);
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC;
    return modify(&rc->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* Some devices refuse an inline size they cannot do instead of lowering it. */
static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp;

    for (;;) {
        qp = ibv_create_qp(pd, attr);
        if (qp != NULL || attr->cap.max_inline_data == 0) {
            return qp;
        }
        attr->cap.max_inline_data /= 2;
    }
}

const void *ha_rc_owner(const struct ibv_qp *qp)
{
    const struct rest *rest = qp->qp_context; /* none: a control port's */

    return rest == NULL ? NULL : rest->owner;
}

int ha_rc_create(struct ha_rail *rail, struct ha_cq *cq, struct ha_srq *srq, const void *owner, struct ha_rc_caps *caps,
                 struct ha_rc **rc_p)
{
    struct ibv_qp_init_attr attr = {
        .send_cq    = cq->cq,
        .recv_cq    = cq->cq,
        .srq        = srq != NULL ? srq->srq : NULL,
        .qp_type    = IBV_QPT_RC,
        .sq_sig_all = 0,
        .cap        = {.max_send_wr     = caps->send_depth,
                       .max_recv_wr     = srq != NULL ? 0 : caps->recv_depth,
                       .max_send_sge    = caps->max_sge,
                       .max_recv_sge    = srq == NULL,
                       .max_inline_data = caps->max_inline},
    };
    struct rest  *rest = calloc(1, sizeof(*rest));
    struct ha_rc *rc;
    int           status;

    if (rest == NULL) {
        return -ENOMEM;
    }
    status = ha_device_use(&rail->device);
    if (status != 0) {
        free(rest);
        return status;
    }
    rest->rail      = rail;
    rest->owner     = owner;
    attr.qp_context = rest;
    errno           = 0;
    rc              = (struct ha_rc *)create_qp(rail->device.pd, &attr);
    if (rc == NULL) {
        status = errno != 0 ? -errno : -ENOMEM;
        ha_device_leave(&rail->device);
        free(rest);
        return status;
    }
    caps->max_inline = attr.cap.max_inline_data;
    status           = to_init(rc);
    if (status != 0) {
        ha_rc_destroy(rc);
        return status;
    }
    *rc_p = rc;
    return 0;
}

static int to_rtr(struct ha_rc *rc, const struct ha_rc_path *path)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = ha_mtu_to_verbs(path->mtu);
    attr.dest_qp_num        = path->qpn;
    attr.rq_psn             = path->recv_psn;
    attr.max_dest_rd_atomic = (uint8_t)path->rd_resp;
    attr.min_rnr_timer      = (uint8_t)path->min_rnr_timer;
    ha_rail_fill_ah(rest_of(rc)->rail, &path->remote, &attr.ah_attr);
    attr.ah_attr.sl                = (uint8_t)path->sl;
    attr.ah_attr.grh.traffic_class = (uint8_t)path->traffic_class;
    return modify(&rc->qp, &attr,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ha_rc *rc, const struct ha_rc_path *path)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = (uint8_t)path->timeout;
    attr.retry_cnt     = (uint8_t)path->retry_count;
    attr.rnr_retry     = (uint8_t)path->rnr_retry;
    attr.sq_psn        = path->send_psn;
    attr.max_rd_atomic = (uint8_t)path->rd_init;
    return modify(&rc->qp, &attr,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC);
}

int ha_rc_connect(struct ha_rc *rc, const struct ha_rc_path *path)
{
    int status = rest_of(rc)->rtr ? 0 : to_rtr(rc, path);

    if (status != 0) {
        return status;
    }
    rest_of(rc)->rtr = 1;
    return to_rts(rc, path);
}

static int query(struct ha_rc *rc, struct ibv_qp_attr *attr)
{
    struct ibv_qp_init_attr init;
    int                     status;

    memset(attr, 0, sizeof(*attr));
    status = ibv_query_qp(&rc->qp, attr, IBV_QP_STATE | IBV_QP_RQ_PSN, &init);
    return status > 0 ? -status : status;
}

int ha_rc_fence(struct ha_rc *rc)
{
    struct ibv_qp_attr attr   = {.qp_state = IBV_QPS_ERR};
    int                status = modify(&rc->qp, &attr, IBV_QP_STATE);

    if (status != 0 && query(rc, &attr) == 0 && attr.qp_state == IBV_QPS_ERR) {
        return 0; /* the device has stopped it by itself */
    }
    return status;
}

void ha_rc_destroy(struct ha_rc *rc)
{
    struct rest    *rest = rest_of(rc);
    struct ha_rail *rail = rest->rail;

    if (ibv_destroy_qp(&rc->qp) == 0) {
        free(rest);
    } /* else it lives on, and its events name that */
    ha_device_leave(&rail->device);
}

uint32_t ha_rc_qpn(const struct ha_rc *rc)
{
    return rc->qp.qp_num;
}

int ha_rc_expected_psn(struct ha_rc *rc, uint32_t *psn)
{
    struct ibv_qp_attr attr;
    int                status = query(rc, &attr);

    *psn = attr.rq_psn & 0xffffff;
    return status;
}

int ha_rc_final_psn(struct ha_rc *rc, uint32_t *psn)
{
    struct ibv_qp_attr attr;
    int                status = query(rc, &attr);

    *psn = attr.rq_psn & 0xffffff;
    return status == 0 && attr.qp_state != IBV_QPS_ERR ? -EBUSY : status;
}

int ha_rc_post_send(struct ha_rc *rc, struct ha_send *send)
{
    /* Nothing is left to be done when the driver returns: that makes its call a jump. */
    return ibv_post_send(&rc->qp, (struct ibv_send_wr *)(void *)send, &rest_of(rc)->bad);
}

int ha_rc_post_recv(struct ha_rc *rc, struct ha_recv *first)
{
    struct ibv_recv_wr *bad;
    int                 status = ibv_post_recv(&rc->qp, (struct ibv_recv_wr *)(void *)first, &bad);

    return status > 0 ? -status : status;
}
