/* SPDX-License-Identifier: BSD-3-Clause */
#include "contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct world world;

static void stop(const char *what, ucs_status_t status)
{
    fprintf(stderr, "%s: %s: %s\n", settings.transport, what, ucs_status_string(status));
    exit(1);
}

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        stop(what, status);
    }
}

/* ---- time ---------------------------------------------------------------------------------- */

uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

struct patience patience(const char *what)
{
    uint64_t seconds = settings.plant == NULL ? PATIENCE_S : 1; /* a fault that was planted is a hang soon enough */

    return (struct patience){.until = now_ns() + seconds * 1000000000ull, .what = what};
}

/* Made-up hardware has a lock, and a lock is not fair: who polls without a pause keeps others out. */
void progress(void)
{
    static uint64_t last;

    if (now_ns() - last > 1000000) {
        usleep(20);
        last = now_ns();
    }
    (void)uct_worker_progress(world.tx->worker);
    if (world.rx != world.tx && world.rx->worker != NULL) {
        (void)uct_worker_progress(world.rx->worker);
    }
}

void progress_ms(unsigned ms)
{
    uint64_t until = now_ns() + ms * 1000000ull;

    while (now_ns() < until) {
        progress();
    }
}

void progress_wait(struct patience *patience)
{
    progress();
    if (now_ns() > patience->until) {
        (void)expect(0, "waited in vain for %s", patience->what);
        _exit(1);
    }
}

/* ---- opening ---------------------------------------------------------------------------------- */

static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
{
    struct side *side = arg;

    (void)ep;
    side->errors++;
    side->error = status;
    return UCS_OK;
}

/* Newer UCX wants the transport's prefix before a name. One that the table does not know belongs to the other
 * table. */
static void configure_one(void *config, const char *name, const char *value)
{
    char full[80];

    if (uct_config_modify(config, name, value) != UCS_OK) {
        snprintf(full, sizeof(full), "HA_RC_%s", name);
        (void)uct_config_modify(config, full, value);
    }
}

static void configure(void *config)
{
    char  name[64];
    char *value;

    for (unsigned i = 0; i < settings.settings; i++) {
        snprintf(name, sizeof(name), "%s", settings.setting[i]);
        value = strchr(name, '=');
        if (value != NULL) {
            *value = '\0';
            configure_one(config, name, strchr(settings.setting[i], '=') + 1);
        }
    }
}

/* Does this domain have the transport on the device that is wanted? */
static int find_resource(struct side *side, const char *device)
{
    uct_tl_resource_desc_t *resources;
    unsigned                num;
    int                     found = 0;

    must(uct_md_query_tl_resources(side->md, &resources, &num), "resources of a domain");
    for (unsigned i = 0; i < num && !found; i++) {
        found = strcmp(resources[i].tl_name, settings.transport) == 0 &&
                (device == NULL || strcmp(resources[i].dev_name, device) == 0);
        if (found) {
            snprintf(side->device, sizeof(side->device), "%s", resources[i].dev_name);
        }
    }
    uct_release_tl_resource_list(resources);
    return found;
}

static int open_domain(struct side *side, uct_component_h component, const char *name, const char *device)
{
    uct_md_config_t *config;
    ucs_status_t     status;

    must(uct_md_config_read(component, NULL, NULL, &config), "options of a domain");
    configure(config);
    status = uct_md_open(component, name, config, &side->md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return 0;
    }
    if (!find_resource(side, device)) {
        uct_md_close(side->md);
        side->md = NULL;
        return 0;
    }
    side->component = component;
    snprintf(side->md_name, sizeof(side->md_name), "%s", name);
    return 1;
}

static int find_in_component(struct side *side, uct_component_h component, const char *device)
{
    uct_component_attr_t attr  = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    int                  found = 0;

    must(uct_component_query(component, &attr), "count of domains");
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count + 1, sizeof(*attr.md_resources));
    if (attr.md_resources == NULL) {
        stop("memory", UCS_ERR_NO_MEMORY);
    }
    must(uct_component_query(component, &attr), "names of domains");
    for (unsigned i = 0; i < attr.md_resource_count && !found; i++) {
        found = open_domain(side, component, attr.md_resources[i].md_name, device);
    }
    free(attr.md_resources);
    return found;
}

static int find_domain(struct side *side, const char *device)
{
    uct_component_h *components;
    unsigned         num;
    int              found = 0;

    must(uct_query_components(&components, &num), "components");
    for (unsigned i = 0; i < num && !found; i++) {
        found = find_in_component(side, components[i], device);
    }
    uct_release_component_list(components);
    return found;
}

static void open_iface(struct side *side)
{
    uct_iface_params_t  params;
    uct_iface_config_t *config;

    must(uct_md_iface_config_read(side->md, settings.transport, NULL, NULL, &config), "options of an interface");
    configure(config);
    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS | UCT_IFACE_PARAM_FIELD_RX_HEADROOM |
                        UCT_IFACE_PARAM_FIELD_FEATURES;
    params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name  = settings.transport;
    params.mode.device.dev_name = side->device;
    params.err_handler          = on_error;
    params.err_handler_arg      = side;
    params.rx_headroom          = 40;
    params.features = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT | UCT_IFACE_FEATURE_GET | UCT_IFACE_FEATURE_AMO32 |
                      UCT_IFACE_FEATURE_AMO64;
    must(uct_iface_open(side->md, side->worker, &params, config, &side->iface), "opening an interface");
    uct_config_release(config);
}

void side_open(int s)
{
    struct side *side = &world.sides[s];

    memset(side, 0, sizeof(*side));
    must(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &side->async), "async context");
    must(uct_worker_create(side->async, UCS_THREAD_MODE_SINGLE, &side->worker), "worker");
    if (!find_domain(side, settings.device[s])) {
        fprintf(stderr, "%s: not here%s%s\n", settings.transport, settings.device[s] == NULL ? "" : ": ",
                settings.device[s] == NULL ? "" : settings.device[s]);
        exit(77);
    }
    must(uct_md_query(side->md, &side->md_attr), "attributes of a domain");
    open_iface(side);
    must(uct_iface_query(side->iface, &side->attr), "attributes of an interface");
    uct_iface_progress_enable(side->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    if (side->attr.device_addr_len + 16 > sizeof(side->dev_addr) ||
        side->attr.iface_addr_len + 16 > sizeof(side->iface_addr)) {
        stop("addresses are too long for this program", UCS_ERR_BUFFER_TOO_SMALL);
    }
    must(uct_iface_get_device_address(side->iface, (void *)side->dev_addr), "device address");
    if (has(UCT_IFACE_FLAG_CONNECT_TO_IFACE) || side->attr.iface_addr_len > 0) {
        must(uct_iface_get_address(side->iface, (void *)side->iface_addr), "interface address");
    }
}

void side_close(struct side *side)
{
    if (side->ep != NULL) {
        uct_ep_destroy(side->ep);
    }
    if (side->iface != NULL) {
        uct_iface_close(side->iface);
    }
    if (side->md != NULL) {
        uct_md_close(side->md);
    }
    if (side->worker != NULL) {
        uct_worker_destroy(side->worker);
        ucs_async_context_destroy(side->async);
    }
    memset(side, 0, sizeof(*side));
}

int has(uint64_t flags)
{
    return (world.sides[0].attr.cap.flags & flags) == flags;
}

/* ---- endpoints ---------------------------------------------------------------------------------- */

static int addressed(struct side *from)
{
    return (from->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) != 0;
}

uct_ep_h ep_open(struct side *from, struct side *to)
{
    uct_ep_params_t params;
    uct_ep_h        ep;

    memset(&params, 0, sizeof(params));
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface      = from->iface;
    if (addressed(from)) {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr   = (const void *)to->dev_addr;
        params.iface_addr = (const void *)to->iface_addr;
    }
    must(uct_ep_create(&params, &ep), "creating an endpoint");
    return ep;
}

void ep_open_pair(uct_ep_h ep[2])
{
    uint8_t addr[2][256];

    ep[0] = ep_open(world.tx, world.rx);
    ep[1] = world.tx == world.rx ? ep[0] : ep_open(world.rx, world.tx);
    if (addressed(world.tx)) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        must(uct_ep_get_address(ep[i], (void *)addr[i]), "address of an endpoint");
    }
    must(uct_ep_connect_to_ep(ep[0], (const void *)world.rx->dev_addr, (const void *)addr[1]), "connecting");
    must(uct_ep_connect_to_ep(ep[1], (const void *)world.tx->dev_addr, (const void *)addr[0]), "connecting");
}

void ep_close_pair(uct_ep_h ep[2])
{
    uct_ep_destroy(ep[0]);
    if (ep[1] != ep[0]) {
        uct_ep_destroy(ep[1]);
    }
}

/* A transport that reaches nobody else talks to itself. */
void world_open(void)
{
    uct_ep_h ep[2];

    world.tx = &world.sides[0];
    side_open(0);
    world.rx = &world.sides[1];
    side_open(1);
    if (!uct_iface_is_reachable(world.tx->iface, (const void *)world.rx->dev_addr,
                                addressed(world.tx) ? (const void *)world.rx->iface_addr : NULL)) {
        side_close(world.rx);
        world.rx = world.tx;
    }
    ep_open_pair(ep);
    world.tx->ep = ep[0];
    world.rx->ep = ep[1];
}

void world_close(void)
{
    struct patience wait = patience("the last work");

    for (int s = 0; s < 2; s++) {
        uct_iface_h iface = world.sides[s].iface; /* unless it was closed before */

        while (iface != NULL && uct_iface_flush(iface, 0, NULL) == UCS_INPROGRESS) {
            progress_wait(&wait);
        }
    }
    side_close(&world.sides[0]);
    side_close(&world.sides[1]);
}
