/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem/rcache.h"

#include "abi/adapt.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>

struct uct_ha_region {
    ucs_rcache_region_t super;
    struct uct_ha_mem   mem;
};

/* What a look-up that finds nothing has to make. */
struct uct_ha_wanted {
    const struct uct_ha_duo *duo;
    unsigned                 flags;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards users, and its life */
static unsigned        users;
static ucs_rcache_t   *cache;

/* The cache compares protection bits: a region serves every request whose bits
 * it has. Read stands for local use and write for access by peers, so memory
 * that was only ever sent from is never open to the network, and a region that
 * is too weak is replaced by a stronger one. */
static int prot_of_flags(unsigned flags)
{
    return (flags & (UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_GET | UCT_MD_MEM_ACCESS_REMOTE_ATOMIC))
               ? PROT_READ | PROT_WRITE
               : PROT_READ;
}

static unsigned flags_of_prot(int prot)
{
    return (prot & PROT_WRITE) ? UCT_MD_MEM_ACCESS_ALL : UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE;
}

static struct uct_ha_region *region_of_super(ucs_rcache_region_t *super)
{
    return ucs_container_of(super, struct uct_ha_region, super);
}

static ucs_status_t region_reg(void *context, ucs_rcache_t *rcache, void *arg, ucs_rcache_region_t *super,
                               uint16_t rcache_flags)
{
    struct uct_ha_mem          *mem    = &region_of_super(super)->mem;
    const struct uct_ha_wanted *wanted = arg;
    unsigned     hide = (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) ? UCT_MD_MEM_FLAG_HIDE_ERRORS : 0;
    ucs_status_t status;

    (void)context;
    (void)rcache;
    uct_ha_reg_init(mem, (void *)super->super.start, super->super.end - super->super.start,
                    uct_ha_duo_access(flags_of_prot(super->prot)));
    status = uct_ha_duo_reg_own(wanted->duo, mem, wanted->flags | hide);
    if (status != UCS_OK) {
        uct_ha_reg_cleanup(mem);
    }
    return status;
}

static void region_dereg(void *context, ucs_rcache_t *rcache, ucs_rcache_region_t *super)
{
    (void)context;
    (void)rcache;
    uct_ha_reg_cleanup(&region_of_super(super)->mem);
}

static void region_dump(void *context, ucs_rcache_t *rcache, ucs_rcache_region_t *super, char *buf, size_t max)
{
    (void)context;
    (void)rcache;
    snprintf(buf, max, "rails 0x%x", region_of_super(super)->mem.rails);
}

static const ucs_rcache_ops_t region_ops = {
    .mem_reg = region_reg, .mem_dereg = region_dereg, .dump_region = region_dump};

static ucs_status_t create(const struct uct_ha_md_config *config)
{
    ucs_rcache_params_t params = {
        .region_struct_size = sizeof(struct uct_ha_region), .ucm_events = UCM_EVENT_VM_UNMAPPED, .ops = &region_ops};

    uct_ha_rcache_params(&params, &config->rcache);
    return ucs_rcache_create(&params, "ha", NULL, &cache);
}

ucs_status_t uct_ha_rcache_open(const struct uct_ha_md_config *config, const char *rail, int *cached_p)
{
    ucs_status_t status;

    *cached_p = 0;
    if (config->rcache_mode == UCS_NO) {
        return UCS_OK;
    }
    pthread_mutex_lock(&lock);
    status = (users == 0) ? create(config) : UCS_OK;
    users += (status == UCS_OK);
    pthread_mutex_unlock(&lock);
    if (status == UCS_OK) {
        *cached_p = 1;
        return UCS_OK;
    }

    if (config->rcache_mode == UCS_YES) {
        ucs_error("ha_rc [HA-326]: no registration cache for %s: %s. UCX_" UCT_HA_CONFIG_PREFIX
                  "RCACHE=try goes on without it",
                  rail, ucs_status_string(status));
        return status;
    }
    ucs_debug("ha_rc: no registration cache for %s: %s", rail, ucs_status_string(status));
    return UCS_OK;
}

void uct_ha_rcache_close(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        ucs_rcache_destroy(cache);
    }
    pthread_mutex_unlock(&lock);
}

ucs_status_t uct_ha_rcache_get(const struct uct_ha_duo *duo, void *address, size_t length, unsigned flags,
                               struct uct_ha_mem **mem_p)
{
    struct uct_ha_wanted wanted = {.duo = duo, .flags = flags};
    ucs_rcache_region_t *super;
    ucs_status_t         status;

    status = uct_ha_rcache_look(cache, address, length, prot_of_flags(flags), &wanted, &super);
    if (status != UCS_OK) {
        return status;
    }
    *mem_p = &region_of_super(super)->mem;
    status = uct_ha_duo_reg_own(duo, *mem_p, flags); /* another domain may have made it */
    if (status != UCS_OK) {
        uct_ha_rcache_put(*mem_p);
    }
    return status;
}

void uct_ha_rcache_put(struct uct_ha_mem *mem)
{
    ucs_rcache_region_put(cache, &ucs_container_of(mem, struct uct_ha_region, mem)->super);
}
