/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_MEM_H_
#define UCT_HA_MEM_H_

/* Registered memory: methods of the memory domain (uct_md_ops_t). */

#include "uct/md.h"

/* HA_ACCESS_* of UCT_MD_MEM_ACCESS_*. */
unsigned     uct_ha_mem_access(unsigned flags);

/* Register the region on the domain's own rail; says what went wrong, unless
 * `flags` has UCT_MD_MEM_FLAG_HIDE_ERRORS. */
ucs_status_t uct_ha_mem_reg_own(const struct uct_ha_md *md, struct uct_ha_mem *mem,
                                unsigned flags);

/* ... on its standby, if there is one. Without it the memory works until the
 * rail is lost: a warning, once per process. */
void         uct_ha_mem_reg_standby(const struct uct_ha_md *md, struct uct_ha_mem *mem);

ucs_status_t uct_ha_md_query(uct_md_h md, uct_md_attr_t *attr);
ucs_status_t uct_ha_mem_reg(uct_md_h md, void *address, size_t length, unsigned flags,
                            uct_mem_h *memh_p);
ucs_status_t uct_ha_mem_dereg(uct_md_h md, const uct_md_mem_dereg_params_t *params);
ucs_status_t uct_ha_mkey_pack(uct_md_h md, uct_mem_h memh,
                              const uct_md_mkey_pack_params_t *params,
                              void *rkey_buffer);
int          uct_ha_is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *sockaddr,
                                           uct_sockaddr_accessibility_t mode);
ucs_status_t uct_ha_detect_memory_type(uct_md_h md, const void *addr, size_t length,
                                       ucs_memory_type_t *mem_type_p);

#endif
