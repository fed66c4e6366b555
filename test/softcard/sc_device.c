/* SPDX-License-Identifier: BSD-3-Clause */

/* Devices, their ports and addresses. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sc_card.h"
#include "sc_device.h"

static struct sc_device devices[SC_DEVICES_MAX];
static unsigned         num_devices, num_ports;
static pthread_mutex_t  making = PTHREAD_MUTEX_INITIALIZER;

static unsigned env_number(const char *name, unsigned normal, unsigned max)
{
    const char *text  = getenv(name);
    unsigned    value = text == NULL ? normal : (unsigned)strtoul(text, NULL, 10);

    return value > max ? max : value;
}

static void make_devices(void)
{
    unsigned host = env_number("SOFTCARD_HOST", 0, SC_HOSTS_MAX - 1);

    num_devices = env_number("SOFTCARD_DEVICES", 2, SC_DEVICES_MAX);
    num_ports   = env_number("SOFTCARD_PORTS", 1, SC_PORTS_MAX);
    if (sc.host != host) { /* the card's thread reads it, and devices may be made anew */
        sc.host = host;
    }
    for (unsigned i = 0; i < num_devices; i++) {
        struct ibv_device *device = &devices[i].base;

        devices[i].index       = i;
        devices[i].kind        = sc_personality_of(i);
        device->node_type      = IBV_NODE_CA;
        device->transport_type = IBV_TRANSPORT_IB;
        snprintf(device->name, sizeof(device->name), "sc%u", i);
        snprintf(device->dev_name, sizeof(device->dev_name), "uverbs%u", i);
        snprintf(device->dev_path, sizeof(device->dev_path), "/sys/class/infiniband_verbs/uverbs%u", i);
        snprintf(device->ibdev_path, sizeof(device->ibdev_path), "/sys/class/infiniband/sc%u", i);
    }
}

void sc_device_forget(void)
{
    num_devices = 0;
}

struct sc_context *sc_context_of(struct ibv_context *context)
{
    return (struct sc_context *)((uint8_t *)context - offsetof(struct sc_context, base.context));
}

unsigned sc_context_port(const struct sc_context *context, unsigned port)
{
    return port < 1 || port > num_ports ? SC_NO_PORT : sc_port_place(sc.host, context->device->index, port);
}

struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list;

    pthread_mutex_lock(&making);
    if (num_devices == 0) {
        make_devices();
    }
    pthread_mutex_unlock(&making);
    list = calloc(num_devices + 1, sizeof(*list));
    for (unsigned i = 0; list != NULL && i < num_devices; i++) {
        list[i] = &devices[i].base;
    }
    if (num != NULL) {
        *num = list == NULL ? 0 : (int)num_devices;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return (int)((struct sc_device *)device)->index;
}

static uint64_t guid_of(const struct sc_device *device)
{
    return 0x0200000000000100ull | (uint64_t)sc.host << 16 | device->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(guid_of((struct sc_device *)device));
}

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    struct sc_context   *mine  = sc_context_of(context);
    unsigned             place = sc_context_port(mine, port);
    struct ibv_port_attr full  = {
         .max_mtu      = IBV_MTU_4096,
         .active_mtu   = IBV_MTU_4096,
         .gid_tbl_len  = 1,
         .max_msg_sz   = 1u << 31,
         .pkey_tbl_len = 1,
         .sm_lid       = 1,
         .active_width = 2,
         .active_speed = 64,
         .max_vl_num   = 1,
         .link_layer   = IBV_LINK_LAYER_INFINIBAND,
    };
    uint32_t trouble;

    if (place == SC_NO_PORT) {
        return EINVAL;
    }
    trouble = __atomic_load_n(&sc.fabric->port[place].trouble, __ATOMIC_RELAXED);
    if (trouble & SC_PORT_FATAL) {
        return EIO;
    }
    full.state      = trouble & SC_PORT_DOWN ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    full.phys_state = trouble & SC_PORT_DOWN ? 3 : 5;
    full.lid        = (uint16_t)(place + 1);
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct sc_device *device = sc_context_of(context)->device;

    *attr = (struct ibv_device_attr){
        .node_guid           = htobe64(guid_of(device)),
        .sys_image_guid      = htobe64(guid_of(device)),
        .vendor_id           = device->kind->vendor_id,
        .vendor_part_id      = device->kind->part_id,
        .hw_ver              = 1,
        .max_mr_size         = ~0ull,
        .page_size_cap       = 4096,
        .max_qp              = SC_QP_MAX - 2,
        .max_qp_wr           = 32768,
        .max_sge             = SC_SGE_MAX,
        .max_sge_rd          = SC_SGE_MAX,
        .max_cq              = 1 << 20,
        .max_cqe             = SC_CQE_MAX,
        .max_mr              = SC_MR_MAX - 1,
        .max_pd              = 1 << 16,
        .max_qp_rd_atom      = SC_RD_MAX,
        .max_res_rd_atom     = 1 << 20,
        .max_qp_init_rd_atom = SC_RD_MAX,
        .atomic_cap          = IBV_ATOMIC_HCA,
        .max_ah              = 1 << 20,
        .max_srq             = 1 << 16,
        .max_srq_wr          = 32768,
        .max_srq_sge         = SC_SGE_MAX,
        .max_pkeys           = 1,
        .local_ca_ack_delay  = 4,
        .phys_port_cnt       = (uint8_t)num_ports,
    };
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "1.0");
    return 0;
}

static void fill_gid(struct sc_context *context, unsigned port, union ibv_gid *gid)
{
    memset(gid, 0, sizeof(*gid));
    gid->raw[0]  = 0xfe;
    gid->raw[1]  = 0x80;
    gid->raw[7]  = (uint8_t)(context->device->index * SC_PORTS_MAX + port - 1); /* a subnet for each rail */
    gid->raw[8]  = 2;
    gid->raw[15] = (uint8_t)(sc_context_port(context, port) + 1);
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct sc_context *mine = sc_context_of(context);

    if (index != 0 || sc_context_port(mine, port) == SC_NO_PORT) {
        errno = EINVAL;
        return -1;
    }
    fill_gid(mine, port, gid);
    return 0;
}

static void fill_entry(struct sc_context *context, unsigned port, struct ibv_gid_entry *entry)
{
    memset(entry, 0, sizeof(*entry));
    fill_gid(context, port, &entry->gid);
    entry->port_num = port;
    entry->gid_type = IBV_GID_TYPE_IB;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t size)
{
    struct sc_context *mine = sc_context_of(context);

    (void)size;
    if (flags != 0 || sc_context_port(mine, port) == SC_NO_PORT) {
        return EINVAL;
    }
    if (index != 0) {
        return ENODATA;
    }
    fill_entry(mine, port, entry);
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                             size_t size)
{
    size_t count = 0;

    (void)size;
    if (flags != 0) {
        return -EINVAL;
    }
    for (; count < num_ports && count < max; count++) {
        fill_entry(sc_context_of(context), (unsigned)count + 1, &entries[count]);
    }
    return (ssize_t)count;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    if (index != 0 || sc_context_port(sc_context_of(context), port) == SC_NO_PORT) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff;
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    return pkey == 0xffff && sc_context_port(sc_context_of(context), port) != SC_NO_PORT ? 0 : -1;
}

static void fill_ops(struct verbs_context *verbs)
{
    verbs->sz           = sizeof(*verbs);
    verbs->query_port   = query_port;
    verbs->create_qp_ex = sc_qp_create_ex;

    verbs->context.abi_compat        = __VERBS_ABI_IS_EXTENDED;
    verbs->context.ops.poll_cq       = sc_cq_poll;
    verbs->context.ops.req_notify_cq = sc_cq_notify;
    verbs->context.ops.post_send     = sc_post_send;
    verbs->context.ops.post_recv     = sc_rq_post;
    verbs->context.ops.post_srq_recv = sc_srq_post;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct sc_context *context;

    if (((struct sc_device *)device)->kind == NULL) {
        errno = ENOTSUP; /* $SOFTCARD_PERSONALITY names one that does not exist */
        return NULL;
    }
    if (sc_nic_start() != 0 || (errno = sc_fault_verb(SC_VERB_OPEN)) != 0) {
        return NULL;
    }
    context = calloc(1, sizeof(*context));
    if (context == NULL) {
        return NULL;
    }
    context->device = (struct sc_device *)device;
    if (sc_pipe(&context->base.context.async_fd, &context->events_in) != 0) {
        free(context);
        return NULL;
    }
    fill_ops(&context->base);
    context->base.context.device           = device;
    context->base.context.cmd_fd           = dup(context->base.context.async_fd);
    context->base.context.num_comp_vectors = 1;
    pthread_mutex_init(&context->base.context.mutex, NULL);
    sc_lock(&sc.lock);
    context->next = sc.contexts;
    sc.contexts   = context;
    sc_unlock(&sc.lock);
    return &context->base.context;
}

int ibv_close_device(struct ibv_context *base)
{
    struct sc_context *context = sc_context_of(base), **link;

    sc_lock(&sc.lock);
    for (link = &sc.contexts; *link != context; link = &(*link)->next) {
    }
    *link = context->next;
    sc_unlock(&sc.lock);
    pthread_mutex_destroy(&base->mutex);
    close(base->async_fd);
    close(base->cmd_fd);
    close(context->events_in);
    free(context);
    return 0;
}
