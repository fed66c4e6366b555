/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ADAPT_H_
#define UCT_HA_ADAPT_H_

/*
 * Whatever of UCX's calls changes its shape from one minor version to the next, in
 * one shape. Nothing above knows versions: it fills in these structures, once, and
 * gets the tables that the UCX of this build wants. None of it is called per message.
 */

#include "uct_ha_abi.h"

/* A memory domain and its keys. */
struct uct_ha_md_face {
    void (*close)(uct_md_h md);
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_t *attr);
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p);
    ucs_status_t (*mem_dereg)(uct_md_h md, const uct_md_mem_dereg_params_t *params);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, void *rkey_buffer);
};

/* One face per process: it has to outlive all domains. */
uct_md_ops_t *uct_ha_adapt_md(const struct uct_ha_md_face *face);

typedef ucs_status_t (*uct_ha_rkey_unpack_func_t)(const void *rkey_buffer, uct_rkey_t *rkey_p, void **handle_p);

/* Fills in what has to do with keys. */
void uct_ha_adapt_keys(uct_component_t *component, uct_ha_rkey_unpack_func_t unpack);

/* Register with UCX, and leave again. */
void uct_ha_component_enter(uct_component_t *component, uct_tl_t *tl);
void uct_ha_component_leave(uct_component_t *component, uct_tl_t *tl);

/* What UCX asks of an interface and its endpoints besides uct_iface_ops_t. */
struct uct_ha_iface_face {
    void (*vfs_refresh)(uct_iface_h iface);
    int (*is_reachable)(const uct_iface_h iface, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr);
    /* does this endpoint lead to that address? */
    int (*ep_leads_to)(uct_ep_h ep, const uct_device_addr_t *dev_addr, const uct_iface_addr_t *iface_addr);
    ucs_status_t (*ep_invalidate)(uct_ep_h ep);
};

/* As uct_ha_adapt_md(). */
uct_iface_internal_ops_t *uct_ha_adapt_iface(const struct uct_ha_iface_face *face);

/* ---- UCX's registration cache ----------------------------------------------- */

/* Fills in what the knobs say; callbacks and sizes are left to the caller. */
void uct_ha_rcache_params(ucs_rcache_params_t *params, const uct_ha_rcache_config_t *config);

/* Seconds that a look-up takes. */
double uct_ha_rcache_overhead(const uct_ha_rcache_config_t *config);

ucs_status_t uct_ha_rcache_look(ucs_rcache_t *cache, void *address, size_t length, int prot, void *arg,
                                ucs_rcache_region_t **region_p);

/* ---- UCX's configuration parser ------------------------------------------------ */

/* Defaults, then what the environment says, UCX_<prefix><name>. To be released with
 * ucs_config_parser_release_opts(). */
ucs_status_t uct_ha_config_fill(void *opts, ucs_config_field_t *table, size_t size, const char *prefix);

#endif
