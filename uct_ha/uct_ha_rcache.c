/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct_ha_rcache.h"

#include "uct_ha_mem.h"

#include <stdio.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

struct uct_ha_region {
    ucs_rcache_region_t super;
    struct uct_ha_mem   mem;
};

/* The cache compares protection bits: a region serves every request whose bits
 * it has. Read stands for local use and write for access by peers, so memory
 * that was only ever sent from is never open to the network, and a region that
 * is too weak is replaced by a stronger one. */
static int prot_of_flags(unsigned flags)
{
    return (flags & (UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_GET |
                     UCT_MD_MEM_ACCESS_REMOTE_ATOMIC)) ? PROT_READ | PROT_WRITE :
                                                         PROT_READ;
}

static unsigned flags_of_prot(int prot)
{
    return (prot & PROT_WRITE) ? UCT_MD_MEM_ACCESS_ALL :
                                 UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE;
}

static struct uct_ha_region *region_of_super(ucs_rcache_region_t *super)
{
    return ucs_container_of(super, struct uct_ha_region, super);
}

static ucs_status_t region_reg(void *context, ucs_rcache_t *rcache, void *arg,
                               ucs_rcache_region_t *super, uint16_t rcache_flags)
{
    struct uct_ha_region *region = region_of_super(super);
    unsigned wanted              = *(unsigned*)arg;
    unsigned flags               = flags_of_prot(super->prot);

    (void)rcache;
    if ((rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) ||
        (wanted & UCT_MD_MEM_FLAG_HIDE_ERRORS)) {
        flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    }
    return uct_ha_mem_init(context, &region->mem, (void*)super->super.start,
                           super->super.end - super->super.start, flags);
}

static void region_dereg(void *context, ucs_rcache_t *rcache, ucs_rcache_region_t *super)
{
    (void)context;
    (void)rcache;
    uct_ha_mem_cleanup(&region_of_super(super)->mem);
}

static void region_dump(void *context, ucs_rcache_t *rcache, ucs_rcache_region_t *super,
                        char *buf, size_t max)
{
    const struct uct_ha_mem *mem = &region_of_super(super)->mem;

    (void)context;
    (void)rcache;
    snprintf(buf, max, "lkey 0x%x/0x%x", mem->lkey[0], mem->lkey[1]);
}

static const ucs_rcache_ops_t region_ops = {
    .mem_reg     = region_reg,
    .mem_dereg   = region_dereg,
    .dump_region = region_dump
};

ucs_status_t uct_ha_rcache_open(struct uct_ha_md *md, const struct uct_ha_md_config *config)
{
    ucs_rcache_params_t params = {
        .region_struct_size = sizeof(struct uct_ha_region),
        .max_alignment      = (size_t)sysconf(_SC_PAGESIZE),
        .ucm_events         = UCM_EVENT_VM_UNMAPPED,
        .ops                = &region_ops,
        .context            = md
    };
    ucs_status_t status;

    if (config->rcache_mode == UCS_NO) {
        return UCS_OK;
    }
    uct_md_set_rcache_params(&params, &config->rcache);
    status = ucs_rcache_create(&params, ha_rail_name(md->rail[0]), NULL, &md->rcache);
    if (status == UCS_OK) {
        md->rcache_overhead = uct_md_rcache_overhead(&config->rcache);
        return UCS_OK;
    }

    md->rcache = NULL;
    if (config->rcache_mode == UCS_YES) {
        ucs_error("ha: no registration cache for %s: %s. UCX_" UCT_HA_CONFIG_PREFIX
                  "RCACHE=try goes on without it", ha_rail_name(md->rail[0]),
                  ucs_status_string(status));
        return status;
    }
    ucs_debug("ha: no registration cache for %s: %s", ha_rail_name(md->rail[0]),
              ucs_status_string(status));
    return UCS_OK;
}

void uct_ha_rcache_close(struct uct_ha_md *md)
{
    if (md->rcache != NULL) {
        ucs_rcache_destroy(md->rcache);
    }
}

ucs_status_t uct_ha_rcache_get(struct uct_ha_md *md, void *address, size_t length,
                               unsigned flags, struct uct_ha_mem **mem_p)
{
    ucs_rcache_region_t *super;
    ucs_status_t status;

    status = ucs_rcache_get(md->rcache, address, length, prot_of_flags(flags), &flags,
                            &super);
    if (status == UCS_OK) {
        *mem_p = &region_of_super(super)->mem;
    }
    return status;
}

void uct_ha_rcache_put(struct uct_ha_md *md, struct uct_ha_mem *mem)
{
    ucs_rcache_region_put(md->rcache,
                          &ucs_container_of(mem, struct uct_ha_region, mem)->super);
}
