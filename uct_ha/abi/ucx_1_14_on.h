/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UCX_1_14_ON_H_
#define UCT_HA_UCX_1_14_ON_H_

/*
 * What UCX 1.14 to 1.23 have of their own, besides ucx_common.h and ucx_v2.h. Order and
 * types of the fields are facts of those binaries; SINCE(n) tells from which minor on.
 * Included by uct_ha_abi.h only.
 */

#include "ucx_common.h"
#include "ucx_v2.h"

/* Sizes that those binaries have. */
#if SINCE(16)
#define UCT_HA_ABI_COMPONENT_SIZE 232
#elif SINCE(15)
#define UCT_HA_ABI_COMPONENT_SIZE 224
#else
#define UCT_HA_ABI_COMPONENT_SIZE 208
#endif

#if SINCE(15)
#define UCT_HA_ABI_TL_SIZE 104
#else
#define UCT_HA_ABI_TL_SIZE 96
#endif

#if SINCE(23)
#define UCT_HA_ABI_MD_OPS_SIZE 104
#elif SINCE(21) || !SINCE(16)
#define UCT_HA_ABI_MD_OPS_SIZE 96
#else
#define UCT_HA_ABI_MD_OPS_SIZE 88
#endif

#if SINCE(23)
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 96
#elif SINCE(22) || UCT_VERNO_MINOR == 20
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 80
#elif SINCE(21)
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 64
#elif SINCE(16)
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 56
#elif SINCE(15)
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 48
#else
#define UCT_HA_ABI_INTERNAL_OPS_SIZE 40
#endif

/* What only one of them has: in 1.20 and again since 1.22. */
#define HAS_IFACE_QUERY_V2 (SINCE(22) || UCT_VERNO_MINOR == 20)

/* Known only by pointer here. */
typedef struct uct_rkey_unpack_params          uct_rkey_unpack_params_t;
typedef struct uct_md_mem_attr_v2              uct_md_mem_attr_v2_t;
typedef struct uct_ep_invalidate_params        uct_ep_invalidate_params_t;
typedef struct uct_iface_attr_v2               uct_iface_attr_v2_t;
typedef struct uct_ep_outstanding_purge_params uct_ep_outstanding_purge_params_t;

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
    ucs_status_t (*rkey_unpack)(uct_component_t *component, const void *rkey_buffer,
#if SINCE(19)
                                const uct_rkey_unpack_params_t *params,
#endif
                                uct_rkey_t *rkey_p, void **handle_p);
    ucs_status_t (*rkey_ptr)(uct_component_t *component, uct_rkey_t rkey, void *handle, uint64_t remote_addr,
                             void **local_addr_p);
    ucs_status_t (*rkey_release)(uct_component_t *component, uct_rkey_t rkey, void *handle);
#if SINCE(16)
    ucs_status_t (*rkey_compare)(uct_component_t *component, uct_rkey_t rkey1, uct_rkey_t rkey2,
                                 const uct_rkey_compare_params_t *params, int *result);
#endif

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
    ucs_status_t (*query)(uct_md_h md, uct_md_attr_v2_t *attr);
    ucs_status_t (*mem_alloc)(uct_md_h md, size_t *length_p, void **address_p, ucs_memory_type_t mem_type,
#if SINCE(19)
                              ucs_sys_device_t sys_dev,
#endif
                              unsigned flags, const char *name, uct_mem_h *memh_p);
    ucs_status_t (*mem_free)(uct_md_h md, uct_mem_h memh);
    ucs_status_t (*mem_advise)(uct_md_h md, uct_mem_h memh, void *addr, size_t length, unsigned advice);
    ucs_status_t (*mem_reg)(uct_md_h md, void *address, size_t length, const uct_md_mem_reg_params_t *params,
                            uct_mem_h *memh_p);
    ucs_status_t (*mem_dereg)(uct_md_h md, const uct_md_mem_dereg_params_t *params);
#if SINCE(22)
    ucs_status_t (*mem_query)(uct_md_h md, const void *address, size_t length, uct_md_mem_attr_v2_t *mem_attr);
#else
    ucs_status_t (*mem_query)(uct_md_h md, const void *address, size_t length, uct_md_mem_attr_t *mem_attr);
#endif
    ucs_status_t (*mkey_pack)(uct_md_h md, uct_mem_h memh,
#if SINCE(16)
                              void *address, size_t length,
#endif
                              const uct_md_mkey_pack_params_t *params, void *rkey_buffer);
    ucs_status_t (*mem_attach)(uct_md_h md, const void *mkey_buffer, uct_md_mem_attach_params_t *params,
                               uct_mem_h *memh_p);
#if !SINCE(16)
    int (*is_sockaddr_accessible)(uct_md_h md, const ucs_sock_addr_t *sockaddr, uct_sockaddr_accessibility_t mode);
#endif
    ucs_status_t (*detect_memory_type)(uct_md_h md, const void *addr, size_t length, ucs_memory_type_t *mem_type_p);
#if SINCE(23)
    ucs_status_t (*mem_elem_pack)(uct_md_h md, uct_mem_h memh, uct_rkey_t rkey, void *mem_elem,
                                  void **release_handle_p);
    void (*mem_elem_release)(uct_md_h md, void *release_handle);
#elif SINCE(21)
    ucs_status_t (*mem_elem_pack)(uct_md_h md, uct_mem_h memh, uct_rkey_t rkey, void *mem_elem);
#endif
};

/* ---- registration cache and configuration ------------------------------- */

#if SINCE(16)
/* Both are declared by the installed ucs/memory/rcache.h and ucs/config/parser.h. */
typedef ucs_rcache_config_t uct_ha_rcache_config_t;
#define UCT_HA_RCACHE_TABLE ucs_config_rcache_table
#else
#include "ucx_md_rcache.h"
#endif

/* A parser of ours has no help for its parts. */
#if SINCE(17)
#define UCT_HA_CONFIG_NO_DOC .doc = ucs_config_doc_nop,
#else
#define UCT_HA_CONFIG_NO_DOC
#endif

/* ---- interface --------------------------------------------------------- */

/* Without it UCX gives peers on other hosts no address of ours. */
#if SINCE(18)
#define UCT_HA_IFACE_FLAGS_NET UCT_IFACE_FLAG_INTER_NODE
#else
#define UCT_HA_IFACE_FLAGS_NET 0
#endif

#if HAS_IFACE_QUERY_V2
/* Says that there is nothing of what it asks for. */
ucs_status_t uct_iface_base_query_v2(uct_iface_h iface, uct_iface_attr_v2_t *attr);
#endif

typedef ucs_status_t (*uct_ha_ep_sgl_func_t)(uct_ep_h ep, void *const *buffers, const size_t *lengths,
                                             uct_mem_h const *memhs, const uint64_t *remote_addrs,
                                             uct_rkey_t const *rkeys, const size_t *counts, const size_t *strides,
                                             size_t count, uct_completion_t *comp);

struct uct_iface_internal_ops {
#if HAS_IFACE_QUERY_V2
    ucs_status_t (*iface_query_v2)(uct_iface_h iface, uct_iface_attr_v2_t *attr);
#endif
    ucs_status_t (*iface_estimate_perf)(uct_iface_h iface, uct_perf_attr_t *perf_attr);
    void (*iface_vfs_refresh)(uct_iface_h iface);
#if UCT_VERNO_MINOR == 20
    ucs_status_t (*iface_mem_element_pack)(const uct_iface_h iface, uct_mem_h memh, uct_rkey_t rkey, void *mem_element);
#endif
    ucs_status_t (*ep_query)(uct_ep_h ep, uct_ep_attr_t *ep_attr);
    /* simulate a transport error on this endpoint (UCX tests use it) */
#if SINCE(21)
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, const uct_ep_invalidate_params_t *params);
#else
    ucs_status_t (*ep_invalidate)(uct_ep_h ep, unsigned flags);
#endif
    ucs_status_t (*ep_connect_to_ep_v2)(uct_ep_h ep, const uct_device_addr_t *device_addr, const uct_ep_addr_t *ep_addr,
                                        const uct_ep_connect_to_ep_params_t *params);
#if SINCE(15)
    int (*iface_is_reachable_v2)(const uct_iface_h iface, const uct_iface_is_reachable_params_t *params);
#endif
#if SINCE(16)
    int (*ep_is_connected)(uct_ep_h ep, const uct_ep_is_connected_params_t *params);
#endif
#if SINCE(20)
    ucs_status_t (*ep_get_device_ep)(uct_ep_h ep, void **device_ep_p);
#endif
    /* only called when iface_query_v2 announces them */
#if SINCE(22)
    uct_ha_ep_sgl_func_t ep_put_sgl_zcopy;
#endif
#if SINCE(23)
    uct_ha_ep_sgl_func_t ep_get_sgl_zcopy;
    ucs_status_t (*ep_outstanding_purge)(uct_ep_h ep, const uct_ep_outstanding_purge_params_t *params);
#endif
};

#endif
