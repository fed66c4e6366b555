/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

#include "ha_cq_priv.h"

#define SAME_PLACE(_ha, _ibv) (offsetof(struct ha_wc, _ha) == offsetof(struct ibv_wc, _ibv))

_Static_assert(sizeof(struct ha_wc) == sizeof(struct ibv_wc) && SAME_PLACE(wr_id, wr_id) &&
                   SAME_PLACE(status, status) && SAME_PLACE(raw, opcode) && SAME_PLACE(vendor, vendor_err) &&
                   SAME_PLACE(byte_len, byte_len) && SAME_PLACE(imm, imm_data) && SAME_PLACE(qpn, qp_num) &&
                   SAME_PLACE(src_qpn, src_qp),
               "the device writes its completions into struct ha_wc");

static enum ha_wc_status translate_status(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
        return HA_WC_FLUSHED;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return HA_WC_NOT_READY;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
        return HA_WC_PROGRAM;
    case IBV_WC_LOC_QP_OP_ERR: /* Soft-RoCE: also when its net device refuses a packet */
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_REM_OP_ERR:
        return HA_WC_OP_FAILED;
    default: /* RETRY_EXC, RESP_TIMEOUT, FATAL, GENERAL */
        return HA_WC_DEAD;
    }
}

static void set_nonblock(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int create(struct ha_cq *cq, unsigned depth, int with_fd)
{
    struct ibv_context *ctx = cq->rail->device.ctx;

    if (with_fd) {
        cq->channel = ibv_create_comp_channel(ctx);
        if (cq->channel == NULL) {
            return -ENOMEM;
        }
        set_nonblock(cq->channel->fd);
    }
    if (depth > cq->rail->limits.max_cqe) {
        depth = cq->rail->limits.max_cqe;
    }
    errno  = 0;
    cq->cq = ibv_create_cq(ctx, (int)depth, NULL, cq->channel, 0);
    if (cq->cq == NULL) {
        int status = errno != 0 ? -errno : -ENOMEM;

        if (cq->channel != NULL) {
            ibv_destroy_comp_channel(cq->channel);
        }
        return status;
    }
    return 0;
}

int ha_cq_create(struct ha_rail *rail, unsigned depth, int with_fd, struct ha_cq **cq_p)
{
    struct ha_cq *cq     = calloc(1, sizeof(*cq));
    int           status = cq == NULL ? -ENOMEM : ha_device_use(&rail->device);

    if (status != 0) {
        free(cq);
        return status;
    }
    cq->rail = rail;
    status   = create(cq, depth, with_fd);
    if (status != 0) {
        ha_device_leave(&rail->device);
        free(cq);
        return status;
    }
    pthread_mutex_init(&cq->resizing, NULL);
    *cq_p = cq;
    return 0;
}

void ha_cq_destroy(struct ha_cq *cq)
{
    (void)ha_cq_drain_fd(cq);
    ibv_destroy_cq(cq->cq);
    pthread_mutex_destroy(&cq->resizing);
    if (cq->channel != NULL) {
        ibv_destroy_comp_channel(cq->channel);
    }
    ha_device_leave(&cq->rail->device);
    free(cq);
}

int ha_cq_resize(struct ha_cq *cq, unsigned depth)
{
    int status = 0;

    pthread_mutex_lock(&cq->resizing);
    if (depth > (unsigned)cq->cq->cqe) {
        status = ibv_resize_cq(cq->cq, (int)depth);
    }
    pthread_mutex_unlock(&cq->resizing);
    return status > 0 ? -status : status;
}

int ha_cq_poll(struct ha_cq *cq, struct ha_wc *wc, int max)
{
    int count = ibv_poll_cq(cq->cq, max, (struct ibv_wc *)(void *)wc);

    for (int i = 0; i < count; i++) {
        wc[i].imm = ntohl(wc[i].imm);
        if (__builtin_expect(wc[i].status != (uint32_t)IBV_WC_SUCCESS, 0)) {
            wc[i].raw    = wc[i].status;
            wc[i].status = translate_status((enum ibv_wc_status)wc[i].raw);
        }
    }
    return count;
}

int ha_cq_fd(const struct ha_cq *cq)
{
    return cq->channel->fd;
}

int ha_cq_arm(struct ha_cq *cq)
{
    int status = ibv_req_notify_cq(cq->cq, 0);

    cq->awaited += status == 0;
    return -status;
}

int ha_cq_drain_fd(struct ha_cq *cq)
{
    struct ibv_cq *event_cq;
    void          *event_ctx;
    unsigned       events = 0; /* no more than are awaited: each attempt is a system call */

    while (cq->channel != NULL && events < cq->awaited && ibv_get_cq_event(cq->channel, &event_cq, &event_ctx) == 0) {
        events++;
    }
    cq->awaited = events < cq->awaited; /* none has come: armed more than once, it gives one all the same */
    if (events > 0) {
        ibv_ack_cq_events(cq->cq, events);
    }
    return (int)events;
}

const char *ha_wc_raw_name(uint32_t raw)
{
    return ibv_wc_status_str((enum ibv_wc_status)raw);
}
