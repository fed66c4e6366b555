/* SPDX-License-Identifier: BSD-3-Clause */
#include "adapt.h"

#include <unistd.h>

/* "auto", the last but one time there is, and what UCX itself takes for it. */
#define IS_AUTO(_time) ((_time) == (ucs_time_t)-2)
#define OVERHEAD_AUTO  50e-9

/* ---- registration cache -------------------------------------------------------------- */

#if SINCE(18)

/* Called for each region that a new one takes in; nothing to do. */
static void merge(void *context, ucs_rcache_t *cache, void *arg, ucs_rcache_region_t *region)
{
    (void)context;
    (void)cache;
    (void)arg;
    (void)region;
}

/* Of the one cache of this process. */
static const ucs_rcache_ops_t *whole(const ucs_rcache_ops_t *ours)
{
    static ucs_rcache_ops_t ops;

    ops       = *ours;
    ops.merge = merge;
    return &ops;
}

#elif SINCE(16)

static const ucs_rcache_ops_t *whole(const ucs_rcache_ops_t *ours)
{
    return ours;
}

#endif

void uct_ha_rcache_params(ucs_rcache_params_t *params, const uct_ha_rcache_config_t *config)
{
#if SINCE(16)
    ucs_rcache_params_t wanted = *params;

    ucs_rcache_set_params(params, config); /* sets all of it */
    params->region_struct_size = wanted.region_struct_size;
    params->ucm_events         = wanted.ucm_events;
    params->ops                = whole(wanted.ops);
#else
    params->max_alignment = (size_t)sysconf(_SC_PAGESIZE);
    uct_md_set_rcache_params(params, config);
#endif
}

double uct_ha_rcache_overhead(const uct_ha_rcache_config_t *config)
{
#if SINCE(16)
    return IS_AUTO(config->overhead) ? OVERHEAD_AUTO : (double)config->overhead / ucs_get_cpu_clocks_per_sec();
#else
    return uct_md_rcache_overhead(config);
#endif
}

ucs_status_t uct_ha_rcache_look(ucs_rcache_t *cache, void *address, size_t length, int prot, void *arg,
                                ucs_rcache_region_t **region_p)
{
#if SINCE(17)
    return ucs_rcache_get(cache, address, length, UCS_PGT_ADDR_ALIGN, prot, arg, region_p);
#else
    return ucs_rcache_get(cache, address, length, prot, arg, region_p);
#endif
}

/* ---- configuration ---------------------------------------------------------------------- */

ucs_status_t uct_ha_config_fill(void *opts, ucs_config_field_t *table, size_t size, const char *prefix)
{
#if SINCE(15)
    ucs_config_global_list_entry_t entry = {.name = "ha", .prefix = prefix, .table = table, .size = size};

    return ucs_config_parser_fill_opts(opts, &entry, UCS_DEFAULT_ENV_PREFIX, 0);
#else
    (void)size;
    return ucs_config_parser_fill_opts(opts, table, UCS_DEFAULT_ENV_PREFIX, prefix, 0);
#endif
}
