/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_rail_priv.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ha_gid.h"
#include "ha_link.h"
#include "ha_provider.h"
#include "ha_trial.h"

/* Rails that are open now, and their reference counts. */
static pthread_mutex_t rails_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ha_rail *rails;

static int link_layer_of(const struct ibv_port_attr *port)
{
    switch (port->link_layer) {
    case IBV_LINK_LAYER_ETHERNET:
        return HA_LINK_ETHERNET;
    case IBV_LINK_LAYER_INFINIBAND:
    case IBV_LINK_LAYER_UNSPECIFIED: /* says "InfiniBand" in old drivers */
        return HA_LINK_IB;
    default:
        return HA_LINK_NONE;
    }
}

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

enum ibv_mtu ha_mtu_to_verbs(unsigned bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && mtu_bytes(mtu + 1) <= bytes) {
        mtu++;
    }
    return mtu;
}

static int device_numa_node(struct ibv_device *device)
{
    char  path[IBV_SYSFS_PATH_MAX + 32];
    FILE *file;
    int   node = -1;

    snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &node) != 1) {
            node = -1;
        }
        fclose(file);
    }
    return node;
}

static void list_ports(struct ibv_device *device, char (*names)[HA_RAIL_NAME_MAX], int *count, int max)
{
    struct ibv_context    *ctx = ibv_open_device(device);
    struct ibv_device_attr dev;
    struct ibv_port_attr   port;
    int                    len;

    if (ctx == NULL) {
        return;
    }
    if (ibv_query_device(ctx, &dev) == 0) {
        for (unsigned p = 1; p <= dev.phys_port_cnt && *count < max; p++) {
            if (ibv_query_port(ctx, (uint8_t)p, &port) != 0 || link_layer_of(&port) == HA_LINK_NONE) {
                continue;
            }
            len = snprintf(names[*count], HA_RAIL_NAME_MAX, "%s:%u", ibv_get_device_name(device), p);
            *count += len < HA_RAIL_NAME_MAX;
        }
    }
    ibv_close_device(ctx);
}

int ha_rail_list(char (*names)[HA_RAIL_NAME_MAX], int max)
{
    struct ibv_device **list;
    int                 num, count = 0;

    list = ibv_get_device_list(&num);
    if (list == NULL) {
        return 0;
    }
    for (int i = 0; i < num; i++) {
        list_ports(list[i], names, &count, max);
    }
    ibv_free_device_list(list);
    return count;
}

/* "rxe_a:1" → device name and port. */
static int split_name(const char *name, char *device, uint8_t *port)
{
    const char *colon = strrchr(name, ':');
    char       *end;
    long        value;

    if (colon == NULL || colon == name || colon - name >= HA_RAIL_NAME_MAX) {
        return -ENODEV;
    }
    value = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || value < 1 || value > 255) {
        return -ENODEV;
    }
    memcpy(device, name, (size_t)(colon - name));
    device[colon - name] = '\0';
    *port                = (uint8_t)value;
    return 0;
}

static struct ibv_context *open_device(const char *name, int *numa_node)
{
    struct ibv_context *ctx = NULL;
    struct ibv_device **list;
    int                 num;

    list = ibv_get_device_list(&num);
    for (int i = 0; list != NULL && i < num; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            ctx        = ibv_open_device(list[i]);
            *numa_node = device_numa_node(list[i]);
            break;
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return ctx;
}

static enum ha_provider provider_of(const struct ha_rail *rail, const struct ibv_device_attr *dev)
{
    char driver[32];

    ha_provider_driver(rail->device.ctx->device->ibdev_path, driver, sizeof(driver));
    return ha_provider(driver, dev->vendor_id, dev->vendor_part_id);
}

static int fill_limits(struct ha_rail *rail, int numa_node)
{
    struct ha_rail_limits *lim = &rail->limits;
    struct ibv_device_attr dev;
    struct ibv_port_attr   port;
    enum ha_provider       provider;
    struct ha_link         link;

    if (ibv_query_device(rail->device.ctx, &dev) != 0 || ibv_query_port(rail->device.ctx, rail->port, &port) != 0) {
        return -ENODEV;
    }
    link = (struct ha_link){
        .width = port.active_width, .speed = port.active_speed, .ethernet = link_layer_of(&port) == HA_LINK_ETHERNET};
    provider            = provider_of(rail, &dev);
    lim->max_qp         = (uint32_t)dev.max_qp;
    lim->max_qp_wr      = (uint32_t)dev.max_qp_wr;
    lim->max_sge        = (uint32_t)dev.max_sge;
    lim->max_cqe        = (uint32_t)dev.max_cqe;
    lim->max_srq_wr     = dev.max_srq > 0 && dev.max_srq_sge > 0 && dev.max_srq_wr > 0 ? (uint32_t)dev.max_srq_wr : 0;
    lim->max_rd_init    = (uint32_t)dev.max_qp_init_rd_atom;
    lim->max_rd_resp    = (uint32_t)dev.max_qp_rd_atom;
    lim->max_msg_size   = port.max_msg_sz;
    lim->max_mr_size    = dev.max_mr_size;
    lim->bandwidth      = ha_link_wire_speed(&link);
    lim->slot_rate      = ha_link_slot_rate(rail->device.ctx->device->ibdev_path);
    lim->packet_extra   = ha_link_packet_extra(link.ethernet);
    lim->latency        = ha_link_latency(&link);
    lim->numa_node      = numa_node;
    lim->node_guid      = dev.node_guid;
    lim->image_guid     = dev.sys_image_guid;
    lim->retry7_forever = provider == HA_PROVIDER_RXE;
    lim->mlx5           = provider == HA_PROVIDER_MLX5;
    lim->has_ud         = 1; /* refused at creation where it is not */
    lim->atomics        = dev.atomic_cap == IBV_ATOMIC_GLOB  ? HA_ATOMICS_ALL
                          : dev.atomic_cap == IBV_ATOMIC_HCA ? HA_ATOMICS_CARD
                                                             : HA_ATOMICS_NONE;
    snprintf(lim->model, sizeof(lim->model), "%x:%x %.30s", dev.vendor_id, dev.vendor_part_id, dev.fw_ver);
    return 0;
}

/* 0: the table is shorter, the entry is empty, or the driver does not say. */
static uint16_t query_pkey(const struct ha_rail *rail)
{
    __be16 pkey = 0;

    if (ibv_query_pkey(rail->device.ctx, rail->port, (int)rail->opts.pkey_index, &pkey) != 0 ||
        (be16toh(pkey) & HA_PKEY_PARTITION) == 0) {
        return 0;
    }
    return be16toh(pkey);
}

static int refresh(struct ha_rail *rail)
{
    struct ha_rail_addr  addr = {0}, present;
    struct ibv_port_attr port;
    char                 netdev[HA_NETDEV_MAX];
    int                  gid_index, up;

    if (ibv_query_port(rail->device.ctx, rail->port, &port) != 0) {
        rail->up = 0;
        return -ENODEV;
    }
    addr.link_layer = (uint8_t)link_layer_of(&port);
    addr.pkey       = query_pkey(rail);
    addr.lid        = port.lid;
    addr.mtu        = (uint16_t)mtu_bytes(port.active_mtu);
    if (rail->opts.mtu != 0 && rail->opts.mtu < addr.mtu) {
        addr.mtu = (uint16_t)mtu_bytes(ha_mtu_to_verbs(rail->opts.mtu));
    }
    pthread_mutex_lock(&rail->lock);
    present   = rail->addr;
    gid_index = rail->gid_index;
    pthread_mutex_unlock(&rail->lock);
    gid_index = ha_gid_choose(rail->device.ctx, rail->port, addr.link_layer, rail->opts.gid_index,
                              gid_index >= 0 ? present.gid : NULL, &addr, netdev);
    up        = port.state == IBV_PORT_ACTIVE && (gid_index >= 0 || addr.link_layer == HA_LINK_IB);

    pthread_mutex_lock(&rail->lock);
    if (gid_index >= 0) {
        rail->addr      = addr;
        rail->gid_index = gid_index;
        memcpy(rail->netdev, netdev, sizeof(rail->netdev));
    }
    rail->grh_required = (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
    rail->up           = up && !rail->gone;
    pthread_mutex_unlock(&rail->lock);
    return up;
}

int ha_rail_refresh(struct ha_rail *rail)
{
    int status = ha_device_use(&rail->device);

    if (status == 0) {
        status = refresh(rail);
        ha_device_leave(&rail->device);
    }
    return status;
}

int ha_rail_is_gone(const struct ha_rail *rail)
{
    return __atomic_load_n(&rail->gone, __ATOMIC_RELAXED);
}

static int try_connection(struct ha_rail *rail)
{
    struct ha_rail_addr own = ha_rail_addr(rail);
    struct ibv_ah_attr  itself;

    ha_rail_fill_ah(rail, &own, &itself);
    return ha_trial(rail->device.pd, rail->port, (uint16_t)rail->opts.pkey_index, rail->up ? &itself : NULL);
}

static int set_up(struct ha_rail *rail, int numa_node)
{
    int fl     = fcntl(rail->device.ctx->async_fd, F_GETFL);
    int status = fill_limits(rail, numa_node);

    if (status == 0 && (fl < 0 || fcntl(rail->device.ctx->async_fd, F_SETFL, fl | O_NONBLOCK) != 0)) {
        status = -errno;
    }
    if (status == 0) {
        status = ha_rail_refresh(rail);
        /* A forced index that is not there is a mistake to be told, not a rail
         * that is down. */
        status = status < 0 ? status : 0;
    }
    if (status == 0 && rail->opts.gid_index >= 0 && rail->gid_index < 0) {
        status = -EADDRNOTAVAIL;
    } else if (status == 0 && rail->opts.pkey_index > 0 && rail->up && rail->addr.pkey == 0) {
        status = -ENOKEY; /* its queue pairs would fail, or reach nobody */
    } else if (status == 0) {
        status = try_connection(rail);
    }
    return status;
}

static int construct(struct ha_rail *rail)
{
    char                name[HA_RAIL_NAME_MAX];
    struct ibv_context *ctx;
    struct ibv_pd      *pd;
    int                 numa_node = -1, status;

    status = split_name(rail->name, name, &rail->port);
    if (status != 0) {
        return status;
    }
    ctx = open_device(name, &numa_node);
    if (ctx == NULL) {
        return -ENODEV;
    }
    pd = ibv_alloc_pd(ctx);
    if (pd == NULL) {
        ibv_close_device(ctx);
        return -ENOMEM;
    }
    ha_device_init(&rail->device, ctx, pd);
    status = set_up(rail, numa_node);
    if (status != 0) {
        ha_device_end(&rail->device);
    }
    return status;
}

int ha_rail_open(const char *name, const struct ha_rail_opts *opts, struct ha_rail **rail_p)
{
    struct ha_rail *rail;
    int             status = 0;

    pthread_mutex_lock(&rails_lock);
    for (rail = rails; rail != NULL; rail = rail->next) {
        if (strcmp(rail->name, name) == 0 && !ha_rail_is_gone(rail)) {
            rail->refs++;
            break;
        }
    }
    if (rail == NULL) {
        rail = calloc(1, sizeof(*rail));
        if (rail == NULL) {
            status = -ENOMEM;
        } else {
            snprintf(rail->name, sizeof(rail->name), "%s", name);
            rail->opts      = *opts;
            rail->refs      = 1;
            rail->gid_index = -1;
            pthread_mutex_init(&rail->lock, NULL);
            status = construct(rail);
            if (status == 0) {
                rail->next = rails;
                rails      = rail;
            } else {
                pthread_mutex_destroy(&rail->lock);
                free(rail);
            }
        }
    }
    pthread_mutex_unlock(&rails_lock);
    if (status == 0) {
        *rail_p = rail;
    }
    return status;
}

void ha_rail_hold(struct ha_rail *rail)
{
    pthread_mutex_lock(&rails_lock);
    rail->refs++;
    pthread_mutex_unlock(&rails_lock);
}

void ha_rail_close(struct ha_rail *rail)
{
    struct ha_rail **link;

    pthread_mutex_lock(&rails_lock);
    if (--rail->refs == 0) {
        for (link = &rails; *link != rail; link = &(*link)->next) {
        }
        *link = rail->next;
        ha_device_end(&rail->device);
        pthread_mutex_destroy(&rail->lock);
        free(rail);
    }
    pthread_mutex_unlock(&rails_lock);
}

const char *ha_rail_name(const struct ha_rail *rail)
{
    return rail->name;
}

const struct ha_rail_limits *ha_rail_limits(const struct ha_rail *rail)
{
    return &rail->limits;
}

const struct ha_rail_opts *ha_rail_opts(const struct ha_rail *rail)
{
    return &rail->opts;
}

struct ha_rail_addr ha_rail_addr(struct ha_rail *rail)
{
    struct ha_rail_addr addr;

    pthread_mutex_lock(&rail->lock);
    addr = rail->addr;
    pthread_mutex_unlock(&rail->lock);
    return addr;
}

int ha_rail_has_addr(struct ha_rail *rail, const struct ha_rail_addr *addr)
{
    int has = 0;

    if (addr->link_layer == HA_LINK_IB && ha_rail_addr(rail).lid != addr->lid) {
        return 0;
    }
    if (ha_device_use(&rail->device) == 0) {
        has = ha_gid_exists(rail->device.ctx, rail->port, addr->gid);
        ha_device_leave(&rail->device);
    }
    return has;
}

void ha_rail_netdev(struct ha_rail *rail, char netdev[HA_NETDEV_MAX])
{
    pthread_mutex_lock(&rail->lock);
    memcpy(netdev, rail->netdev, HA_NETDEV_MAX);
    pthread_mutex_unlock(&rail->lock);
}

int ha_rail_up(const struct ha_rail *rail)
{
    return __atomic_load_n(&rail->up, __ATOMIC_RELAXED);
}

void ha_rail_fill_ah(struct ha_rail *rail, const struct ha_rail_addr *remote, struct ibv_ah_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->port_num = rail->port;
    attr->sl       = (uint8_t)rail->opts.sl;
    attr->dlid     = remote->lid;
    pthread_mutex_lock(&rail->lock);
    attr->is_global      = (uint8_t)ha_needs_grh(&rail->addr, rail->grh_required, remote);
    attr->grh.sgid_index = (uint8_t)(rail->gid_index < 0 ? 0 : rail->gid_index);
    pthread_mutex_unlock(&rail->lock);
    memcpy(attr->grh.dgid.raw, remote->gid, sizeof(remote->gid));
    attr->grh.hop_limit     = (uint8_t)rail->opts.hop_limit;
    attr->grh.traffic_class = (uint8_t)rail->opts.traffic_class;
}

void ha_rail_fill_init(const struct ha_rail *rail, struct ibv_qp_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_state   = IBV_QPS_INIT;
    attr->port_num   = rail->port;
    attr->pkey_index = (uint16_t)rail->opts.pkey_index;
}
