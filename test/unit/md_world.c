/* SPDX-License-Identifier: BSD-3-Clause */
#include "md_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ha_mr {
    struct ha_rail *rail;
    uint32_t        key;
};

struct ha_rail      rails[HA_RAILS_MAX];
struct ha_rail_opts last_opts;
static int          num_rails;

int ha_rail_list(char (*names)[HA_RAIL_NAME_MAX], int max)
{
    int i;

    for (i = 0; (i < num_rails) && (i < max); ++i) {
        memcpy(names[i], rails[i].name, HA_RAIL_NAME_MAX);
    }
    return i;
}

int ha_rail_open(const char *name, const struct ha_rail_opts *opts, struct ha_rail **rail_p)
{
    int i;

    for (i = 0; i < num_rails; ++i) {
        if (strcmp(rails[i].name, name) == 0) {
            if (rails[i].open_error != 0) {
                return rails[i].open_error;
            }
            __atomic_fetch_add(&rails[i].opened, 1, __ATOMIC_RELAXED);
            last_opts = *opts;
            *rail_p   = &rails[i];
            return 0;
        }
    }
    return -ENODEV;
}

void ha_rail_hold(struct ha_rail *rail)
{
    __atomic_fetch_add(&rail->opened, 1, __ATOMIC_RELAXED);
}

int ha_rail_is_gone(const struct ha_rail *rail)
{
    (void)rail;
    return 0;
}

void ha_rail_close(struct ha_rail *rail)
{
    __atomic_fetch_sub(&rail->opened, 1, __ATOMIC_RELAXED);
}

const char *ha_rail_name(const struct ha_rail *rail)
{
    return rail->name;
}

const struct ha_rail_limits *ha_rail_limits(const struct ha_rail *rail)
{
    return &rail->limits;
}

struct ha_rail_addr ha_rail_addr(struct ha_rail *rail)
{
    struct ha_rail_addr addr = {.link_layer = HA_LINK_ETHERNET};

    if (rail->link_layer != 0) {
        addr.link_layer = rail->link_layer;
    }
    return addr;
}

int ha_rail_up(const struct ha_rail *rail)
{
    return !rail->down;
}

int ha_mr_reg(struct ha_rail *rail, void *addr, size_t length, unsigned access, struct ha_mr **mr_p)
{
    (void)addr;
    (void)length;
    if (rail->reg_error != 0) {
        return rail->reg_error;
    }
    *mr_p             = calloc(1, sizeof(**mr_p));
    (*mr_p)->rail     = rail;
    (*mr_p)->key      = (uint32_t)(0xa0b0c0d0u + (unsigned)(rail - rails));
    rail->last_access = access;
    __atomic_fetch_add(&rail->registered, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rail->total, 1, __ATOMIC_RELAXED);
    return 0;
}

void ha_mr_dereg(struct ha_mr *mr)
{
    __atomic_fetch_sub(&mr->rail->registered, 1, __ATOMIC_RELAXED);
    free(mr);
}

uint32_t ha_mr_lkey(const struct ha_mr *mr)
{
    return mr->key ^ 0xffu;
}

uint32_t ha_mr_rkey(const struct ha_mr *mr)
{
    return mr->key;
}

/* ---- the domain's side --------------------------------------------------- */

uct_component_t component = {.name      = "ha",
                             .md_config = {.name   = "HA memory domain",
                                           .prefix = UCT_HA_CONFIG_PREFIX,
                                           .table  = uct_ha_md_config_table,
                                           .size   = sizeof(struct uct_ha_md_config)}};

void add_rail(const char *name)
{
    struct ha_rail *rail = &rails[num_rails];

    memset(rail, 0, sizeof(*rail));
    snprintf(rail->name, sizeof(rail->name), "%s", name);
    rail->limits.numa_node = -1;
    rail->limits.node_guid = 100u + (unsigned)num_rails;
    ++num_rails;
}

int md_setup(void **state)
{
    (void)state;
    num_rails = 0;
    unsetenv("UCX_HA_RC_RAILS");
    unsetenv("UCX_HA_RC_ENABLE_BACKUP");
    unsetenv("UCX_HA_RC_SL");
    unsetenv("UCX_HA_RC_PKEY_INDEX");
    unsetenv("UCX_HA_RC_PATH_MTU");
    setenv("UCX_HA_RC_RCACHE", "n", 1);
    return 0;
}

unsigned query(uct_md_resource_desc_t *found)
{
    uct_md_resource_desc_t *resources;
    unsigned                num;

    assert_int_equal(uct_ha_md_query_resources(&component, &resources, &num), UCS_OK);
    if (resources != NULL) {
        memcpy(found, resources, num * sizeof(*found));
    }
    ucs_free(resources);
    return num;
}

ucs_status_t open_md(const char *name, uct_md_h *md_p)
{
    uct_md_config_t *config;
    ucs_status_t     status;

    assert_int_equal(uct_md_config_read(&component, NULL, NULL, &config), UCS_OK);
    status = uct_ha_md_open(&component, name, config, md_p);
    uct_config_release(config);
    return status;
}

void close_md(uct_md_h md)
{
    int i;

    md->ops->close(md);
    for (i = 0; i < num_rails; ++i) {
        assert_int_equal(rails[i].opened, 0);
        assert_int_equal(rails[i].registered, 0);
    }
}

void dereg(uct_md_h md, uct_mem_h memh)
{
    uct_md_mem_dereg_params_t params = {.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH, .memh = memh};

    assert_int_equal(md->ops->mem_dereg(md, &params), UCS_OK);
}
