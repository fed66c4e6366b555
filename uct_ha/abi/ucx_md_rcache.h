/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_UCX_MD_RCACHE_H_
#define UCT_HA_UCX_MD_RCACHE_H_

/*
 * Knobs of UCX's registration cache (RCACHE_*) as libuct has them, until 1.15; the cache
 * itself is declared by the installed ucs/memory/rcache.h. Included by ucx_1_<minor>.h only.
 */

typedef struct uct_md_rcache_config {
    size_t        alignment;
    unsigned      event_prio;
    ucs_time_t    overhead;
    unsigned long max_regions;
    size_t        max_size;
    size_t        max_unreleased;
    int           purge_on_fork;
} uct_ha_rcache_config_t;

extern ucs_config_field_t uct_md_config_rcache_table[];
#define UCT_HA_RCACHE_TABLE uct_md_config_rcache_table

/* Fills everything that the knobs say; callbacks and sizes are left to us. */
void   uct_md_set_rcache_params(ucs_rcache_params_t *params, const uct_ha_rcache_config_t *config);
double uct_md_rcache_overhead(const uct_ha_rcache_config_t *config);

#endif
