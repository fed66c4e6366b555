/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MD_MEM_H_
#define UCT_HA_MD_MEM_H_

/* Registered memory: the face of the memory domain (struct uct_ha_md_face) and, for its keys, of the component. */

#include "abi/uct_ha_abi.h"
#include "mem/reg.h"

static inline struct uct_ha_mem *uct_ha_mem(uct_mem_h memh)
{
    return (struct uct_ha_mem *)memh;
}

ucs_status_t uct_ha_md_query(uct_md_h md, uct_md_attr_t *attr);
ucs_status_t uct_ha_mem_reg(uct_md_h md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p);
ucs_status_t uct_ha_mem_dereg(uct_md_h md, const uct_md_mem_dereg_params_t *params);
ucs_status_t uct_ha_mkey_pack(uct_md_h md, uct_mem_h memh, void *rkey_buffer);
ucs_status_t uct_ha_rkey_unpack(const void *rkey_buffer, uct_rkey_t *rkey_p, void **handle_p);

#endif
