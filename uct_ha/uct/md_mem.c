/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/md_mem.h"

#include "mem/rcache.h"
#include "mem/rkey.h"
#include "topo/ha_near.h"
#include "uct/domain.h"

#include <stdio.h>
#include <string.h>

/* Pinning costs a system call and a walk over the pages, on two rails. */
#define REG_COST_BASE     32e-6
#define REG_COST_PER_BYTE 0.12e-9

/* All CPUs when the device does not say where it sits. */
static void local_cpus(int numa_node, ucs_cpu_set_t *cpus)
{
    struct ha_near_cpus near;

    UCS_CPU_ZERO(cpus);
    if (ha_near_of_node("/sys", numa_node, &near) == 0) {
        memset(cpus, 0xff, sizeof(*cpus));
        return;
    }
    for (unsigned cpu = 0; cpu < HA_NEAR_CPUS && cpu < UCS_CPU_SETSIZE; ++cpu) {
        if (ha_near_has(&near, cpu)) {
            UCS_CPU_SET(cpu, cpus);
        }
    }
}

ucs_status_t uct_ha_md_query(uct_md_h tl_md, uct_md_attr_t *attr)
{
    struct uct_ha_md            *md     = uct_ha_md(tl_md);
    const struct ha_rail_limits *limits = ha_rail_limits(md->duo.rail[0]);

    memset(attr, 0, sizeof(*attr));
    attr->cap.flags            = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY;
    attr->cap.max_reg          = (limits->max_mr_size != 0) ? limits->max_mr_size : SIZE_MAX;
    attr->cap.reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->rkey_packed_size     = sizeof(struct uct_ha_packed_rkey);
    attr->reg_cost             = md->cached ? ucs_linear_func_make(md->rcache_overhead, 0)
                                            : ucs_linear_func_make(REG_COST_BASE, REG_COST_PER_BYTE);
    local_cpus(limits->numa_node, &attr->local_cpus);
    return UCS_OK;
}

ucs_status_t uct_ha_mem_reg(uct_md_h tl_md, void *address, size_t length, unsigned flags, uct_mem_h *memh_p)
{
    struct uct_ha_md  *md  = uct_ha_md(tl_md);
    struct uct_ha_mem *mem = NULL;
    ucs_status_t       status;

    if (md->cached) {
        status = uct_ha_rcache_get(&md->duo, address, length, flags, &mem);
        if (status == UCS_OK) {
            *memh_p = mem;
        }
        return status;
    }

    mem = ucs_calloc(1, sizeof(*mem), "ha_mem");
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    uct_ha_reg_init(mem, address, length, uct_ha_duo_access(flags));
    status = uct_ha_duo_reg_own(&md->duo, mem, flags);
    if (status != UCS_OK) {
        uct_ha_reg_cleanup(mem);
        ucs_free(mem);
        return status;
    }
    *memh_p = mem;
    return UCS_OK;
}

ucs_status_t uct_ha_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    struct uct_ha_md  *md = uct_ha_md(tl_md);
    struct uct_ha_mem *mem;

    if (!(params->field_mask & UCT_MD_MEM_DEREG_FIELD_MEMH) || (params->memh == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((params->field_mask & UCT_MD_MEM_DEREG_FIELD_FLAGS) && (params->flags & UCT_MD_MEM_DEREG_FLAG_INVALIDATE)) {
        return UCS_ERR_UNSUPPORTED;
    }

    mem = params->memh;
    if (md->cached) {
        uct_ha_rcache_put(mem);
        return UCS_OK;
    }
    uct_ha_reg_cleanup(mem);
    ucs_free(mem);
    return UCS_OK;
}

static void put_be32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

static uint32_t get_be32(const uint8_t *from)
{
    return ((uint32_t)from[0] << 24) | ((uint32_t)from[1] << 16) | ((uint32_t)from[2] << 8) | from[3];
}

/* A peer that has the key may use it at any time from now on, also right after
 * a failover: so the standby has to know the memory before. */
ucs_status_t uct_ha_mkey_pack(uct_md_h tl_md, uct_mem_h memh, void *rkey_buffer)
{
    struct uct_ha_packed_rkey *packed = rkey_buffer;
    const struct uct_ha_md    *md     = uct_ha_md(tl_md);
    struct uct_ha_mem         *mem    = uct_ha_mem(memh);
    uint32_t                   key[UCT_HA_RAILS];

    if (mem->access != 0) {
        uct_ha_duo_reg_standby(&md->duo, mem);
    }
    key[0] = uct_ha_reg_rkey(mem, md->duo.rail_no[0]);
    key[1] = (md->duo.rail[1] != NULL) ? uct_ha_reg_rkey(mem, md->duo.rail_no[1]) : 0;
    /* Atomics by message name the first; it is good for nothing else when that rail is gone. */
    put_be32(packed->key[0], key[0] != 0 ? key[0] : key[1]);
    put_be32(packed->key[1], key[1]);
    return UCS_OK;
}

ucs_status_t uct_ha_rkey_unpack(const void *rkey_buffer, uct_rkey_t *rkey_p, void **handle_p)
{
    const struct uct_ha_packed_rkey *packed = rkey_buffer;

    *rkey_p   = uct_ha_rkey_make(get_be32(packed->key[0]), get_be32(packed->key[1]));
    *handle_p = NULL;
    return UCS_OK;
}
