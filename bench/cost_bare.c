/* SPDX-License-Identifier: BSD-3-Clause */

/* The least that a transport over verbs can do: fill a work request, post it, look at its completion. */

#include "cost_bare.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 256
#define BYTES (1u << 20)
#define SLOT  8192u /* of a receive; they begin in the middle of the memory */

static struct {
    struct ibv_cq  *cq[2];
    struct ibv_srq *srq;
    struct ibv_qp **qp[2];
    unsigned        eps, next; /* of the next operation */
    struct ibv_mr  *mr;
    char           *memory;
} bare;

static void die(const char *what)
{
    fprintf(stderr, "cost_driver: bare: %s\n", what);
    exit(1);
}

static int can(enum cost_op op)
{
    return op == COST_AM_SHORT || op == COST_PUT_SHORT || op == COST_PUT_ZCOPY || op == COST_GET_ZCOPY;
}

static void post_recv(uint64_t slot)
{
    struct ibv_sge     sge = {(uintptr_t)bare.memory + BYTES / 2 + slot % 16 * SLOT, SLOT, bare.mr->lkey};
    struct ibv_recv_wr wr  = {slot, NULL, &sge, 1}, *bad;

    if (ibv_post_srq_recv(bare.srq, &wr, &bad) != 0) {
        die("receive");
    }
}

static void post(enum cost_op op, unsigned count)
{
    static const enum ibv_wr_opcode opcodes[COST_OPS] = {
        [COST_AM_SHORT]  = IBV_WR_SEND_WITH_IMM,
        [COST_PUT_SHORT] = IBV_WR_RDMA_WRITE,
        [COST_PUT_ZCOPY] = IBV_WR_RDMA_WRITE,
        [COST_GET_ZCOPY] = IBV_WR_RDMA_READ,
    };
    int             small = op == COST_AM_SHORT || op == COST_PUT_SHORT;
    struct ibv_qp **qps   = bare.qp[0];
    unsigned        next = bare.next, eps = bare.eps;

    for (unsigned i = 0; i < count; i++) {
        struct ibv_sge     sge;
        struct ibv_send_wr wr, *bad;

        sge.addr   = (uintptr_t)bare.memory;
        sge.length = small ? 16 : 4096;
        sge.lkey   = bare.mr->lkey;

        wr.wr_id               = i;
        wr.next                = NULL;
        wr.sg_list             = &sge;
        wr.num_sge             = 1;
        wr.opcode              = opcodes[op];
        wr.send_flags          = IBV_SEND_SIGNALED | (small ? IBV_SEND_INLINE : 0);
        wr.imm_data            = i;
        wr.wr.rdma.remote_addr = (uintptr_t)bare.memory + 4096;
        wr.wr.rdma.rkey        = bare.mr->rkey;
        if (ibv_post_send(qps[next], &wr, &bad) != 0) {
            die("send");
        }
        next = next + 1 == eps ? 0 : next + 1;
    }
    bare.next = next;
}

static void progress(int receiver)
{
    struct ibv_wc wc[COST_BATCH];
    int           count = ibv_poll_cq(bare.cq[receiver], COST_BATCH, wc);

    for (int i = 0; i < count; i++) {
        if (wc[i].status != IBV_WC_SUCCESS) {
            die(ibv_wc_status_str(wc[i].status));
        }
        if (receiver) {
            post_recv(wc[i].wr_id);
        }
    }
}

static void make_side(struct ibv_context *context, struct ibv_pd *pd, int side)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 0, 1, 1, 64}, .srq = bare.srq};

    bare.cq[side] = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
    bare.qp[side] = calloc(bare.eps, sizeof(*bare.qp[side]));
    if (bare.cq[side] == NULL || bare.qp[side] == NULL) {
        die("completion queue");
    }
    attr.send_cq = attr.recv_cq = bare.cq[side];
    for (unsigned i = 0; i < bare.eps; i++) {
        bare.qp[side][i] = ibv_create_qp(pd, &attr);
        if (bare.qp[side][i] == NULL) {
            die("queue pair");
        }
    }
}

static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer, uint16_t lid)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    int status = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);

    attr = (struct ibv_qp_attr){.qp_state           = IBV_QPS_RTR,
                                .path_mtu           = IBV_MTU_4096,
                                .min_rnr_timer      = 12,
                                .dest_qp_num        = peer->qp_num,
                                .max_dest_rd_atomic = 16,
                                .ah_attr            = {.dlid = lid, .port_num = 1}};
    status |= ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 16};
    status |= ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC);
    if (status != 0) {
        die("connecting");
    }
}

void cost_bare(struct cost_carrier *carrier, unsigned eps)
{
    struct ibv_srq_init_attr srq     = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
    struct ibv_device      **list    = ibv_get_device_list(NULL);
    struct ibv_context      *context = list == NULL || list[0] == NULL ? NULL : ibv_open_device(list[0]);
    struct ibv_pd           *pd      = context == NULL ? NULL : ibv_alloc_pd(context);
    struct ibv_port_attr     port;

    bare.memory = aligned_alloc(4096, BYTES);
    if (pd == NULL || bare.memory == NULL || ibv_query_port(context, 1, &port) != 0) {
        die("no device");
    }
    memset(bare.memory, 1, BYTES);
    bare.mr = ibv_reg_mr(pd, bare.memory, BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (bare.mr == NULL) {
        die("memory");
    }
    bare.eps = eps;
    bare.srq = ibv_create_srq(pd, &srq);
    if (bare.srq == NULL) {
        die("shared receive queue");
    }
    for (int side = 0; side < 2; side++) {
        make_side(context, pd, side);
    }
    for (unsigned i = 0; i < eps; i++) {
        connect_qp(bare.qp[0][i], bare.qp[1][i], port.lid);
        connect_qp(bare.qp[1][i], bare.qp[0][i], port.lid);
    }
    for (unsigned i = 0; i < DEPTH / 2; i++) {
        post_recv(i);
    }
    ibv_free_device_list(list);
    *carrier = (struct cost_carrier){can, post, progress, NULL};
}
