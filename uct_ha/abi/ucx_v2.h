/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UCX_V2_H_
#define UCT_HA_UCX_V2_H_

/*
 * Arguments of the calls that UCX calls "v2" and does not install a header for, as
 * 1.14 to 1.23 have them. Some append fields to some, which we neither read nor
 * write: UCX makes all of these, we only get pointers. Included by ucx_1_14_on.h only.
 */

#include <uct/api/uct.h>

/* ---- memory domain ----------------------------------------------------- */

typedef struct uct_ha_md_attr_v2 {
    uint64_t field_mask;
    uint64_t max_alloc;
    size_t   max_reg;
    uint64_t flags;
    uint64_t reg_mem_types;
#if SINCE(15)
    uint64_t reg_nonblock_mem_types;
#endif
    uint64_t cache_mem_types;
#if SINCE(18)
    uint64_t gva_mem_types;
#endif
    uint64_t          detect_mem_types;
    uint64_t          alloc_mem_types;
    uint64_t          access_mem_types;
    uint64_t          dmabuf_mem_types;
    ucs_linear_func_t reg_cost;
    char              component_name[UCT_COMPONENT_NAME_MAX];
    size_t            rkey_packed_size;
    ucs_cpu_set_t     local_cpus;
    size_t            exported_mkey_packed_size;
    char              global_id[UCT_MD_GLOBAL_ID_MAX];
#if SINCE(16)
    size_t reg_alignment;
#endif
} uct_md_attr_v2_t;

/* Fills in what a domain that can do nothing says; all of it, whatever the field mask. Since 1.17. */
void uct_md_base_md_query(uct_md_attr_v2_t *attr);

enum { UCT_MD_MEM_REG_FIELD_FLAGS = 1 << 0 };

typedef struct uct_md_mem_reg_params {
    uint64_t field_mask;
    uint64_t flags;
    int      dmabuf_fd;
    size_t   dmabuf_offset;
} uct_md_mem_reg_params_t;

/* Known only by pointer here. */
typedef struct uct_md_mem_attach_params    uct_md_mem_attach_params_t;
typedef struct uct_rkey_compare_params     uct_rkey_compare_params_t;
typedef struct uct_ep_connect_to_ep_params uct_ep_connect_to_ep_params_t;

ucs_status_t uct_base_rkey_compare(uct_component_t *component, uct_rkey_t rkey1, uct_rkey_t rkey2,
                                   const uct_rkey_compare_params_t *params, int *result);

/* ---- interface and endpoint --------------------------------------------- */

enum {
    UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR        = 1 << 0,
    UCT_IFACE_IS_REACHABLE_FIELD_IFACE_ADDR         = 1 << 1,
    UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING        = 1 << 2,
    UCT_IFACE_IS_REACHABLE_FIELD_INFO_STRING_LENGTH = 1 << 3,
    UCT_IFACE_IS_REACHABLE_FIELD_SCOPE              = 1 << 4
};

typedef enum { UCT_IFACE_REACHABILITY_SCOPE_DEVICE, UCT_IFACE_REACHABILITY_SCOPE_NETWORK } uct_ha_reach_scope_t;

typedef struct uct_iface_is_reachable_params {
    uint64_t                 field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t  *iface_addr;
    char                    *info_string;
    size_t                   info_string_length;
    uct_ha_reach_scope_t     scope;
    size_t                   device_addr_length;
    size_t                   iface_addr_length;
} uct_iface_is_reachable_params_t;

enum {
    UCT_EP_IS_CONNECTED_FIELD_DEVICE_ADDR = 1 << 0,
    UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR  = 1 << 1,
    UCT_EP_IS_CONNECTED_FIELD_EP_ADDR     = 1 << 2
};

typedef struct uct_ep_is_connected_params {
    uint64_t                 field_mask;
    const uct_device_addr_t *device_addr;
    const uct_iface_addr_t  *iface_addr;
    const uct_ep_addr_t     *ep_addr;
} uct_ep_is_connected_params_t;

#endif
