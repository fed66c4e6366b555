/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MD_MEM_H_
#define UCT_HA_MD_MEM_H_

/* Registered memory: methods of the memory domain (uct_md_ops_t) and, for its keys, of the component. */

#include "abi/uct_ha_abi.h"
#include "mem/reg.h"

static inline struct uct_ha_mem *uct_ha_mem(uct_mem_h memh)
{
    return (struct uct_ha_mem *)memh;
}

ucs_status_t uct_ha_md_query(uct_md_h md, uct_md_attr_t *attr);
ucs_status_t uct_ha_mem_reg(uct_md_h md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p);
ucs_status_t uct_ha_mem_dereg(uct_md_h md, const uct_md_mem_dereg_params_t *params);
ucs_status_t uct_ha_mkey_pack(uct_md_h md, uct_mem_h memh, const uct_md_mkey_pack_params_t *params, void *rkey_buffer);
int uct_ha_is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *sockaddr, uct_sockaddr_accessibility_t mode);
ucs_status_t uct_ha_detect_memory_type(uct_md_h md, const void *addr, size_t length, ucs_memory_type_t *mem_type_p);

ucs_status_t uct_ha_rkey_unpack(uct_component_t *component, const void *rkey_buffer, uct_rkey_t *rkey_p,
                                void **handle_p);
ucs_status_t uct_ha_rkey_release(uct_component_t *component, uct_rkey_t rkey, void *handle);

#endif
