/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What UCX sees first: the component "ha" with its one transport "ha_rc",
 * registered when the library is loaded and taken out when it is unloaded.
 */

#include "abi/adapt.h"
#include "abi/uct_ha_guard.h"
#include "base/config.h"
#include "uct/iface_ops.h"
#include "uct/md.h"
#include "uct/md_mem.h"
#include "uct_ha.h"

static ucs_status_t cm_open(uct_component_t *component, uct_worker_h worker, const uct_cm_config_t *config,
                            uct_cm_h *cm_p)
{
    (void)component;
    (void)worker;
    (void)config;
    (void)cm_p;
    return UCS_ERR_UNSUPPORTED;
}

static void md_vfs_init(uct_md_h md)
{
    (void)md;
}

static uct_component_t uct_ha_component = {
    .name               = "ha",
    .query_md_resources = uct_ha_md_query_resources,
    .md_open            = uct_ha_md_open,
    .cm_open            = cm_open,
    .md_config          = {.name   = "HA memory domain",
                           .prefix = UCT_HA_CONFIG_PREFIX,
                           .table  = uct_ha_md_config_table,
                           .size   = sizeof(struct uct_ha_md_config)},
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCS_LIST_INITIALIZER(&uct_ha_component.tl_list, &uct_ha_component.tl_list),
    .md_vfs_init        = md_vfs_init};

static uct_tl_t uct_ha_rc_tl = {.name          = "ha_rc",
                                .query_devices = uct_ha_query_devices,
                                .iface_open    = uct_ha_iface_open,
                                .config        = {.name   = "ha_rc transport",
                                                  .prefix = UCT_HA_CONFIG_PREFIX,
                                                  .table  = uct_ha_iface_config_table,
                                                  .size   = sizeof(struct uct_ha_iface_config)}};

static int uct_ha_registered;

__attribute__((visibility("default"))) const char *uct_ha_refusal(void)
{
    return uct_ha_guard_refusal();
}

static void __attribute__((constructor)) uct_ha_register(void)
{
    if (!uct_ha_guard_pass(uct_ha_component.name)) {
        return;
    }
    uct_ha_adapt_keys(&uct_ha_component, uct_ha_rkey_unpack);
    uct_ha_component_enter(&uct_ha_component, &uct_ha_rc_tl);
    uct_ha_registered = 1;
}

static void __attribute__((destructor)) uct_ha_unregister(void)
{
    if (!uct_ha_registered) {
        return;
    }
    uct_ha_component_leave(&uct_ha_component, &uct_ha_rc_tl);
    uct_ha_registered = 0;
}
