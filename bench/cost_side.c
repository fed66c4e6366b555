/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cost_die(const char *what, ucs_status_t status)
{
    fprintf(stderr, "cost_driver: %s: %s\n", what, ucs_status_string(status));
    exit(1);
}

static void check(const char *what, ucs_status_t status)
{
    if (status != UCS_OK) {
        cost_die(what, status);
    }
}

static ucs_status_t take_am(void *arg, void *data, size_t length, unsigned flags)
{
    (void)data, (void)length, (void)flags;
    ((struct cost_side *)arg)->got++;
    return UCS_OK;
}

static ucs_status_t take_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)arg, (void)ep;
    cost_die("endpoint", status);
}

/* rc_verbs lives in UCX's component "ib", ha_rc in one of its own. */
static void find_component(struct cost_side *side, const char *tl)
{
    const char          *wanted = strcmp(tl, "ha_rc") == 0 ? "ha" : "ib";
    uct_component_h     *list;
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
    unsigned             count;

    check("components", uct_query_components(&list, &count));
    for (unsigned i = 0; i < count; i++) {
        check("component", uct_component_query(list[i], &attr));
        if (strncmp(attr.name, wanted, strlen(wanted)) == 0) {
            side->component = list[i];
        }
    }
    uct_release_component_list(list);
    if (side->component == NULL) {
        cost_die(wanted, UCS_ERR_NO_DEVICE);
    }
}

static void open_md(struct cost_side *side, const char *tl, const char *device)
{
    uct_md_config_t *config;
    char             name[64];

    snprintf(name, sizeof(name), "%s", device);
    if (strcmp(tl, "ha_rc") != 0) {
        name[strcspn(name, ":")] = '\0'; /* UCX's is one for each device */
    }
    check("md config", uct_md_config_read(side->component, NULL, NULL, &config));
    check("md", uct_md_open(side->component, name, config, &side->md));
    uct_config_release(config);
}

static void open_iface(struct cost_side *side, const char *tl, const char *device)
{
    uct_iface_config_t *config;
    uct_iface_params_t  params = {
         .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                       UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                       UCT_IFACE_PARAM_FIELD_FEATURES,
         .open_mode   = UCT_IFACE_OPEN_MODE_DEVICE,
         .mode.device = {.tl_name = tl, .dev_name = device},
         .err_handler = take_error,
         .features    = (uint64_t)-1,
    };

    check("iface config", uct_md_iface_config_read(side->md, tl, NULL, NULL, &config));
    check("iface", uct_iface_open(side->md, side->worker, &params, config, &side->iface));
    uct_config_release(config);
    uct_iface_progress_enable(side->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    check("handler", uct_iface_set_am_handler(side->iface, COST_AM_ID, take_am, side, 0));
    check("iface query", uct_iface_query(side->iface, &side->attr));
}

void cost_open(struct cost_side *side, const char *tl, const char *device)
{
    memset(side, 0, sizeof(*side));
    find_component(side, tl);
    check("async", ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &side->async));
    check("worker", uct_worker_create(side->async, UCS_THREAD_MODE_SINGLE, &side->worker));
    open_md(side, tl, device);
    open_iface(side, tl, device);
    side->memory = aligned_alloc(4096, COST_MEMORY);
    if (side->memory == NULL) {
        cost_die("memory", UCS_ERR_NO_MEMORY);
    }
    memset(side->memory, 1, COST_MEMORY);
    check("registration", uct_md_mem_reg(side->md, side->memory, COST_MEMORY, UCT_MD_MEM_ACCESS_ALL, &side->memh));
}

static void give_rkey(struct cost_side *from, struct cost_side *to)
{
    char packed[256];

    check("rkey", uct_md_mkey_pack(from->md, from->memh, packed));
    check("rkey", uct_rkey_unpack(to->component, packed, &to->rkey));
}

static void create_ep(struct cost_side *side, unsigned i, const struct cost_side *to_iface)
{
    char            device[256], address[256];
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = side->iface};

    if (to_iface != NULL) {
        check("device address", uct_iface_get_device_address(to_iface->iface, (void *)device));
        check("iface address", uct_iface_get_address(to_iface->iface, (void *)address));
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr   = (void *)device;
        params.iface_addr = (void *)address;
    }
    check("ep", uct_ep_create(&params, &side->eps[i]));
}

static void connect_ep(struct cost_side *side, unsigned i, struct cost_side *peer)
{
    char device[256], address[256];

    check("device address", uct_iface_get_device_address(peer->iface, (void *)device));
    check("ep address", uct_ep_get_address(peer->eps[i], (void *)address));
    check("connect", uct_ep_connect_to_ep(side->eps[i], (void *)device, (void *)address));
}

void cost_connect(struct cost_side *a, struct cost_side *b, unsigned eps)
{
    int to_iface = (a->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) != 0;

    give_rkey(a, b);
    give_rkey(b, a);
    a->eps = calloc(eps, sizeof(*a->eps));
    b->eps = calloc(eps, sizeof(*b->eps));
    if (a->eps == NULL || b->eps == NULL) {
        cost_die("endpoints", UCS_ERR_NO_MEMORY);
    }
    for (unsigned i = 0; i < eps; i++) {
        create_ep(a, i, to_iface ? b : NULL);
        create_ep(b, i, to_iface ? a : NULL);
        if (!to_iface) {
            connect_ep(a, i, b);
            connect_ep(b, i, a);
        }
    }
}
