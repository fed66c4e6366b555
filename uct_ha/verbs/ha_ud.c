/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ha_cq_priv.h"

#define GRH_LEN      40u
#define SLOT_LEN(ud) (GRH_LEN + (ud)->max_len)

struct ha_ud {
    struct ha_rail *rail;
    struct ha_cq   *cq;      /* of receives */
    struct ha_cq   *sent_cq; /* of sends, which wake nobody: who sends looks */
    struct ibv_qp  *qp;
    struct ha_mr   *mr;
    uint8_t        *buffer; /* depth receive slots, then depth send slots */
    unsigned        depth, max_len;
    unsigned        sends; /* send slots in flight */
    unsigned        next_send;
    int             dead;
};

struct ha_ud_ah {
    struct ibv_ah  *ah;
    struct ha_rail *rail;
};

static uint8_t *recv_slot(struct ha_ud *ud, unsigned i)
{
    return ud->buffer + (size_t)i * SLOT_LEN(ud);
}

static uint8_t *send_slot(struct ha_ud *ud, unsigned i)
{
    return ud->buffer + (size_t)(ud->depth + i) * SLOT_LEN(ud);
}

static int post_recv(struct ha_ud *ud, unsigned i)
{
    struct ibv_sge      sge = {.addr = (uintptr_t)recv_slot(ud, i), .length = SLOT_LEN(ud), .lkey = ha_mr_lkey(ud->mr)};
    struct ibv_recv_wr  wr  = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return -ibv_post_recv(ud->qp, &wr, &bad);
}

/* RESET → INIT → RTR → RTS, with a full receive ring. The number stays. */
static int bring_up(struct ha_ud *ud)
{
    struct ibv_qp_attr attr;
    int                status;

    ha_rail_fill_init(ud->rail, &attr);
    attr.qkey = HA_UD_QKEY;
    status    = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    for (unsigned i = 0; status == 0 && i < ud->depth; i++) {
        status = -post_recv(ud, i);
    }
    if (status == 0) {
        attr.qp_state = IBV_QPS_RTR;
        status        = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE);
    }
    if (status == 0) {
        attr.qp_state = IBV_QPS_RTS;
        attr.sq_psn   = 0;
        status        = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    }
    ud->dead  = status != 0;
    ud->sends = 0;
    return -status;
}

static int create_qp(struct ha_ud *ud)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ud->sent_cq->cq,
        .recv_cq = ud->cq->cq,
        .qp_type = IBV_QPT_UD,
        .cap     = {.max_send_wr = ud->depth, .max_recv_wr = ud->depth, .max_send_sge = 1, .max_recv_sge = 1},
    };

    errno  = 0;
    ud->qp = ibv_create_qp(ud->rail->device.pd, &attr);
    if (ud->qp == NULL) {
        return errno != 0 ? -errno : -EOPNOTSUPP;
    }
    return bring_up(ud);
}

int ha_ud_create(struct ha_rail *rail, unsigned depth, unsigned max_len, struct ha_ud **ud_p)
{
    struct ha_ud *ud = calloc(1, sizeof(*ud));
    size_t        bytes;
    int           status;

    if (ud == NULL) {
        return -ENOMEM;
    }
    ud->rail    = rail;
    ud->depth   = depth;
    ud->max_len = max_len;
    bytes       = 2 * (size_t)depth * SLOT_LEN(ud);
    ud->buffer  = calloc(1, bytes);
    status      = ud->buffer == NULL ? -ENOMEM : ha_mr_reg(rail, ud->buffer, bytes, 0, &ud->mr);
    if (status == 0) {
        status = ha_cq_create(rail, depth, 1, &ud->cq);
    }
    if (status == 0) {
        status = ha_cq_create(rail, depth, 0, &ud->sent_cq);
    }
    if (status == 0) {
        status = create_qp(ud);
    }
    if (status != 0) {
        ha_ud_destroy(ud);
        return status;
    }
    *ud_p = ud;
    return 0;
}

void ha_ud_destroy(struct ha_ud *ud)
{
    if (ud->qp != NULL) {
        (void)ibv_destroy_qp(ud->qp);
    }
    if (ud->cq != NULL) {
        ha_cq_destroy(ud->cq);
    }
    if (ud->sent_cq != NULL) {
        ha_cq_destroy(ud->sent_cq);
    }
    if (ud->mr != NULL) {
        ha_mr_dereg(ud->mr);
    }
    free(ud->buffer);
    free(ud);
}

uint32_t ha_ud_qpn(const struct ha_ud *ud)
{
    return ud->qp->qp_num;
}

int ha_ud_fd(const struct ha_ud *ud)
{
    return ha_cq_fd(ud->cq);
}

int ha_ud_arm(struct ha_ud *ud)
{
    (void)ha_cq_drain_fd(ud->cq);
    return ha_cq_arm(ud->cq);
}

int ha_ud_is_dead(const struct ha_ud *ud)
{
    return ud->dead;
}

int ha_ud_recycle(struct ha_ud *ud)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct ha_wc       wc[16];
    int                status;

    status = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE);
    if (status != 0) {
        ud->dead = 1;
        return -status;
    }
    /* Completions of the old life would be taken for the new one's. */
    while (ha_cq_poll(ud->cq, wc, 16) > 0 || ha_cq_poll(ud->sent_cq, wc, 16) > 0) {
    }
    return bring_up(ud);
}

/* A local length error of one datagram looks like the end of the queue pair on some devices as well; bringing it up
 * again cures both. */
static void reap_sends(struct ha_ud *ud)
{
    struct ha_wc wc[16];
    int          count = 16;

    while (ud->sends > 0 && count == 16 && (count = ha_cq_poll(ud->sent_cq, wc, 16)) > 0) {
        for (int i = 0; i < count; i++) {
            ud->dead |= wc[i].status != HA_WC_OK;
        }
        ud->sends -= (unsigned)count;
    }
    if (ud->sends == 0) {
        ud->next_send = 0; /* its memory has been written to already */
    }
}

int ha_ud_send(struct ha_ud *ud, struct ha_ud_ah *ah, uint32_t remote_qpn, const void *data, size_t length)
{
    struct ibv_send_wr wr, *bad;
    struct ibv_sge     sge;
    unsigned           slot;

    reap_sends(ud);
    slot = ud->next_send;
    if (ud->dead) {
        return -EPIPE;
    }
    if (length > ud->max_len) {
        return -EMSGSIZE;
    }
    if (ud->sends == ud->depth) {
        return -EAGAIN;
    }
    memcpy(send_slot(ud, slot), data, length);
    sge.addr   = (uintptr_t)send_slot(ud, slot);
    sge.length = (uint32_t)length;
    sge.lkey   = ha_mr_lkey(ud->mr);
    memset(&wr, 0, sizeof(wr));
    wr.wr_id             = slot;
    wr.sg_list           = &sge;
    wr.num_sge           = 1;
    wr.opcode            = IBV_WR_SEND;
    wr.send_flags        = IBV_SEND_SIGNALED;
    wr.wr.ud.ah          = ah->ah;
    wr.wr.ud.remote_qpn  = remote_qpn;
    wr.wr.ud.remote_qkey = HA_UD_QKEY;
    if (ibv_post_send(ud->qp, &wr, &bad) != 0) {
        return -EAGAIN;
    }
    ud->sends++;
    ud->next_send = (slot + 1) % ud->depth;
    return 0;
}

int ha_ud_recv(struct ha_ud *ud, void *data, size_t max)
{
    struct ha_wc wc;
    size_t       length;

    reap_sends(ud);
    while (!ud->dead && ha_cq_poll(ud->cq, &wc, 1) == 1) {
        if (wc.status != HA_WC_OK) {
            ud->dead = 1;
        } else {
            length = wc.byte_len < GRH_LEN ? 0 : wc.byte_len - GRH_LEN;
            length = length < max ? length : max;
            memcpy(data, recv_slot(ud, (unsigned)wc.wr_id) + GRH_LEN, length);
            if (post_recv(ud, (unsigned)wc.wr_id) != 0) {
                ud->dead = 1;
            }
            if (length > 0) {
                return (int)length;
            }
        }
    }
    return ud->dead ? -EPIPE : 0;
}

int ha_ud_ah_create(struct ha_rail *rail, const struct ha_rail_addr *remote, struct ha_ud_ah **ah_p)
{
    struct ibv_ah_attr attr;
    struct ha_ud_ah   *ah     = calloc(1, sizeof(*ah));
    int                status = ah == NULL ? -ENOMEM : ha_device_use(&rail->device);

    if (status != 0) {
        free(ah);
        return status;
    }
    ha_rail_fill_ah(rail, remote, &attr);
    errno    = 0;
    ah->rail = rail;
    ah->ah   = ibv_create_ah(rail->device.pd, &attr);
    if (ah->ah == NULL) {
        status = errno != 0 ? -errno : -EIO;
        ha_device_leave(&rail->device);
        free(ah);
        return status;
    }
    *ah_p = ah;
    return 0;
}

void ha_ud_ah_destroy(struct ha_ud_ah *ah)
{
    (void)ibv_destroy_ah(ah->ah);
    ha_device_leave(&ah->rail->device);
    free(ah);
}
