/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UCX_1_13_H_
#define UCT_HA_UCX_1_13_H_

/*
 * What UCX 1.13 (Debian 12: 1.13.1) has of its own, besides ucx_common.h.
 * Order and types of the fields are facts of that binary. Included by
 * uct_ha_abi.h only.
 */

#include "ucx_common.h"

#define UCT_HA_ABI_COMPONENT_SIZE    208
#define UCT_HA_ABI_TL_SIZE           96
#define UCT_HA_ABI_MD_OPS_SIZE       88
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 32

/* ---- component --------------------------------------------------------- */

struct uct_component {
    char name[UCT_COMPONENT_NAME_MAX];

    /* The array is released by the caller with ucs_free(). */
    ucs_status_t (*query_md_resources)(uct_component_t *component, uct_md_resource_desc_t **resources_p,
                                       unsigned *num_resources_p);
    ucs_status_t (*md_open)(uct_component_t *component, const char *md_name, const uct_md_config_t *config,
                            uct_md_h *md_p);
    ucs_status_t (*cm_open)(uct_component_t *component, uct_worker_h worker, const uct_cm_config_t *config,
                            uct_cm_h *cm_p);
    ucs_status_t (*rkey_unpack)(uct_component_t *component, const void *rkey_buffer, uct_rkey_t *rkey_p,
                                void **handle_p);
    ucs_status_t (*rkey_ptr)(uct_component_t *component, uct_rkey_t rkey, void *handle, uint64_t remote_addr,
                             void **local_addr_p);
    ucs_status_t (*rkey_release)(uct_component_t *component, uct_rkey_t rkey, void *handle);

    ucs_config_global_list_entry_t md_config;
    ucs_config_global_list_entry_t cm_config;
    ucs_list_link_t                tl_list; /* head of uct_tl_t::list */
    ucs_list_link_t                list;    /* in uct_components_list */
    uint64_t                       flags;
    void (*md_vfs_init)(uct_md_h md);
};

/* ---- memory domain ----------------------------------------------------- */

struct uct_md_ops {
    void (*close)(uct_md_h md);
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_t *attr);
    ucs_status_t (*mem_alloc)(uct_md_h md, size_t *length_p, void **address_p, ucs_memory_type_t mem_type,
                              unsigned flags, const char *name, uct_mem_h *memh_p);
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
    ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void *addr, size_t length, unsigned advice);
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p);
    ucs_status_t (*mem_dereg)(uct_md_h md, const uct_md_mem_dereg_params_t *params);
    ucs_status_t (*mem_query)(uct_md_h md, const void *address, size_t length, uct_md_mem_attr_t *mem_attr);
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh, const uct_md_mkey_pack_params_t *params, void *rkey_buffer);
    int (*is_sockaddr_accessible)(uct_md_h md, const ucs_sock_addr_t *sockaddr, uct_sockaddr_accessibility_t mode);
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void *addr, size_t length, ucs_memory_type_t *mem_type_p);
};

/* ---- registration cache and configuration ------------------------------- */

#include "ucx_md_rcache.h"

/* A parser of ours has no help for its parts. */
#define UCT_HA_CONFIG_NO_DOC

/* ---- interface --------------------------------------------------------- */

#define UCT_HA_IFACE_FLAGS_NET 0

struct uct_iface_internal_ops {
    ucs_status_t (*iface_estimate_perf)(uct_iface_h iface, uct_perf_attr_t *perf_attr);
    void (*iface_vfs_refresh)(uct_iface_h iface);
    ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t *ep_attr);
    /* simulate a transport error on this endpoint (UCX tests use it) */
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
};

#endif
