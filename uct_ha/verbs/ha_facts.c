/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ha_rail_priv.h"

const char *ha_gid_kind_name(enum ha_gid_kind kind)
{
    switch (kind) {
    case HA_GID_NONE:
        return "none";
    case HA_GID_IB:
        return "InfiniBand";
    case HA_GID_ROCE_V1:
        return "RoCE v1";
    case HA_GID_LINK_LOCAL:
        return "RoCE v2 link-local";
    case HA_GID_IPV6:
        return "RoCE v2 IPv6";
    case HA_GID_IPV4:
        return "RoCE v2 IPv4";
    }
    return "?";
}

static enum ha_gid_kind gid_kind(struct ha_rail *rail, int index)
{
    struct ibv_gid_entry entry;
    const uint8_t       *raw = entry.gid.raw;

    if (index < 0 || ibv_query_gid_ex(rail->device.ctx, rail->port, (uint32_t)index, &entry, 0) != 0) {
        return HA_GID_NONE;
    }
    switch (entry.gid_type) {
    case IBV_GID_TYPE_IB:
        return HA_GID_IB;
    case IBV_GID_TYPE_ROCE_V1:
        return HA_GID_ROCE_V1;
    default:
        break;
    }
    if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80) {
        return HA_GID_LINK_LOCAL;
    }
    return raw[10] == 0xff && raw[11] == 0xff && raw[0] == 0 ? HA_GID_IPV4 : HA_GID_IPV6;
}

/* Path migration is a matter of each queue pair; no file in sysfs tells. */
static int apm_armed(struct ha_rail *rail)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
    struct ibv_qp_attr      attr;
    struct ibv_cq          *cq    = ibv_create_cq(rail->device.ctx, 1, NULL, NULL, 0);
    struct ibv_qp          *qp    = NULL;
    int                     armed = -1;

    if (cq == NULL) {
        return -1;
    }
    init.send_cq = init.recv_cq = cq;
    init.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    qp       = ibv_create_qp(rail->device.pd, &init);
    if (qp != NULL) {
        memset(&attr, 0, sizeof(attr));
        if (ibv_query_qp(qp, &attr, IBV_QP_PATH_MIG_STATE, &init) == 0) {
            armed = attr.path_mig_state == IBV_MIG_ARMED;
        }
        ibv_destroy_qp(qp);
    }
    ibv_destroy_cq(cq);
    return armed;
}

static int ask(struct ha_rail *rail, struct ha_rail_facts *facts)
{
    struct ibv_device_attr device;
    struct ibv_port_attr   port;

    memset(facts, 0, sizeof(*facts));
    if (ibv_query_device(rail->device.ctx, &device) != 0 || ibv_query_port(rail->device.ctx, rail->port, &port) != 0) {
        return -EIO;
    }
    pthread_mutex_lock(&rail->lock);
    facts->gid_index = rail->gid_index;
    pthread_mutex_unlock(&rail->lock);
    snprintf(facts->state, sizeof(facts->state), "%s", ibv_port_state_str(port.state));
    if (strncmp(facts->state, "PORT_", 5) == 0) {
        memmove(facts->state, facts->state + 5, strlen(facts->state) - 4);
    }
    facts->active   = port.state == IBV_PORT_ACTIVE;
    facts->gid_kind = gid_kind(rail, facts->gid_index);
    facts->max_mtu  = 128u << port.max_mtu;
    snprintf(facts->firmware, sizeof(facts->firmware), "%s", device.fw_ver);
    facts->vendor_id      = (int)device.vendor_id;
    facts->vendor_part_id = (int)device.vendor_part_id;
    facts->max_cq         = device.max_cq;
    facts->max_mr         = device.max_mr;
    facts->max_srq        = device.max_srq;
    facts->max_srq_wr     = device.max_srq_wr;
    facts->apm_capable    = (device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) != 0;
    facts->apm_armed      = facts->apm_capable ? apm_armed(rail) : 0;
    facts->mlx5           = ha_rail_limits(rail)->mlx5;
    return 0;
}

int ha_rail_facts(struct ha_rail *rail, struct ha_rail_facts *facts)
{
    int status = ha_device_use(&rail->device);

    if (status == 0) {
        status = ask(rail, facts);
        ha_device_leave(&rail->device);
    }
    return status;
}
