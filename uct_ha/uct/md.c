/* SPDX-License-Identifier: BSD-3-Clause */
#include "uct/md.h"

#include "abi/adapt.h"
#include "base/config.h"
#include "mem/rails.h"
#include "mem/rcache.h"
#include "uct/domain.h"
#include "uct/md_mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* UCX cuts a memory domain's name at 15 characters. A rail whose name is
 * longer is named by its place in the list behind the first part of its name. */
static void md_name_of_rail(const struct uct_ha_rails *table, int i, char *md_name)
{
    const char *name = table->rail[i].name;

    if (strlen(name) < UCT_MD_NAME_MAX) {
        snprintf(md_name, UCT_MD_NAME_MAX, "%s", name);
    } else {
        snprintf(md_name, UCT_MD_NAME_MAX, "%.*s~%02u", UCT_MD_NAME_MAX - 4, name, (unsigned)i % 100u);
    }
}

static int rail_of_md_name(const struct uct_ha_rails *table, const char *md_name)
{
    char name[UCT_MD_NAME_MAX];
    int  i;

    for (i = 0; i < table->num; ++i) {
        md_name_of_rail(table, i, name);
        if (strcmp(name, md_name) == 0) {
            return i;
        }
    }
    return -1;
}

/* A bad value is reported once: UCX asks for the domains several times. */
static ucs_status_t pair_rails(struct uct_ha_rails *table, const char *groups)
{
    static int      reported;
    ucs_log_level_t level;
    char            error[256];

    if (uct_ha_rails_pair(table, groups, error, sizeof(error)) == 0) {
        return UCS_OK;
    }
    level = __atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED) ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR;
    ucs_log(level,
            "ha_rc [HA-302]: UCX_" UCT_HA_CONFIG_PREFIX "RAILS='%s': %s. Name rails as "
            "device:port, '+' between those that back each other, ',' between groups; "
            "or leave it empty",
            groups, error);
    return UCS_ERR_INVALID_PARAM;
}

/* Domains are asked for before they are configured: read the knobs by hand. */
static ucs_status_t query_groups(uct_component_t *component, struct uct_ha_rails *table)
{
    uct_md_config_t *config;
    ucs_status_t     status = UCS_OK;

    uct_ha_iface_config_touch();
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (table->num > 0) {
        status = pair_rails(table, ((struct uct_ha_md_config *)config)->rails);
    }
    uct_config_release(config);
    return status;
}

/* No RDMA device, and a bad RAILS (already reported), give no domains rather
 * than an error: UCX must go on with its other transports. */
ucs_status_t uct_ha_md_query_resources(uct_component_t *component, uct_md_resource_desc_t **resources_p,
                                       unsigned *num_resources_p)
{
    uct_md_resource_desc_t *resources;
    struct uct_ha_rails     table;
    unsigned                count = 0;
    int                     i;

    *resources_p     = NULL;
    *num_resources_p = 0;

    uct_ha_rails_list(&table);
    if ((query_groups(component, &table) != UCS_OK) || (table.num == 0)) {
        return UCS_OK;
    }

    resources = ucs_calloc((size_t)table.num, sizeof(*resources), "ha_md_resources");
    if (resources == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; i < table.num; ++i) {
        if (table.choice[i].standby != HA_TOPO_UNUSED) {
            md_name_of_rail(&table, i, resources[count++].md_name);
        }
    }

    *resources_p     = resources;
    *num_resources_p = count;
    return UCS_OK;
}

ucs_status_t uct_ha_query_devices(uct_md_h md, uct_tl_device_resource_t **devices_p, unsigned *num_devices_p)
{
    if (uct_ha_md(md)->hopeless) {
        ucs_diag("ha_rc [HA-307]: %s is not used: its port is down, and that of its standby, while others are up",
                 ha_rail_name(uct_ha_md(md)->duo.rail[0]));
        return UCS_ERR_NO_DEVICE;
    }
    return uct_single_device_resource(md, ha_rail_name(uct_ha_md(md)->duo.rail[0]), UCT_DEVICE_TYPE_NET,
                                      UCS_SYS_DEVICE_ID_UNKNOWN, devices_p, num_devices_p);
}

static ucs_status_t status_of_errno(int ret)
{
    switch (-ret) {
    case ENODEV:
    case ENOENT:
    case EADDRNOTAVAIL:
    case ENOKEY:
    case EPROTONOSUPPORT:
    case EOPNOTSUPP:
        return UCS_ERR_NO_DEVICE;
    case ENOMEM:
        return UCS_ERR_NO_MEMORY;
    case EINVAL:
        return UCS_ERR_INVALID_PARAM;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

static ucs_status_t open_rail(const char *name, const struct uct_ha_md_config *config, struct ha_rail **rail_p)
{
    struct ha_rail_opts opts = uct_ha_rail_opts(config);
    int                 ret  = ha_rail_open(name, &opts, rail_p);

    if (ret == 0) {
        return UCS_OK;
    }
    *rail_p = NULL;
    if ((ret == -EADDRNOTAVAIL) && (config->gid_index >= 0)) {
        ucs_error("ha_rc [HA-303]: UCX_" UCT_HA_CONFIG_PREFIX "GID_INDEX=%d: rail %s has no usable GID "
                  "there. Choose another index, or -1 to have one chosen",
                  config->gid_index, name);
    } else if (ret == -EADDRNOTAVAIL) {
        ucs_diag("ha_rc [HA-304]: rail %s has no usable GID. Give its network interface an address", name);
    } else if (ret == -ENOKEY) {
        ucs_error("ha_rc [HA-305]: UCX_" UCT_HA_CONFIG_PREFIX "PKEY_INDEX=%u: rail %s has no partition key there. "
                  "Choose another index, or ask for one in the subnet manager",
                  config->pkey_index, name);
    } else if (ha_rail_why_not(ret) != NULL) {
        ucs_diag("ha_rc [HA-332]: %s is no rail: %s", name, ha_rail_why_not(ret));
    } else {
        ucs_diag("ha_rc [HA-306]: cannot open rail %s: %s", name, strerror(-ret));
    }
    return status_of_errno(ret);
}

static int is_active(const struct uct_ha_rails *table, int i)
{
    return i >= 0 && table->rail[i].active;
}

/* Neither a rail nor its standby works now, while others do: who took this domain for a
 * connection would wait in vain. */
static int is_hopeless(const struct uct_ha_rails *table, int i)
{
    int others = 0;

    for (int j = 0; j < table->num; ++j) {
        others |= is_active(table, j);
    }
    return others && !is_active(table, i) && !is_active(table, table->choice[i].standby);
}

/* Never fails: a rail without standby works, it only is not safe. */
static void open_standby(struct uct_ha_md *md, struct uct_ha_rails *table, int rail,
                         const struct uct_ha_md_config *config)
{
    struct ha_rail_opts opts = uct_ha_rail_opts(config);
    char                reason[160];
    const char         *name;

    if (!config->enable_backup) {
        md->duo.alone = 1;
        return;
    }
    if (!ha_topo_groups_given(config->rails)) {
        uct_ha_rails_learn(table, &opts);
        if (pair_rails(table, NULL) != UCS_OK) {
            return;
        }
        md->hopeless = is_hopeless(table, rail);
    }
    ha_topo_reason(table->rail, table->choice, rail, reason, sizeof(reason));
    if (table->choice[rail].standby < 0) {
        ucs_debug("ha: no standby for %s: %s", table->rail[rail].name, reason);
        return;
    }
    name = table->rail[table->choice[rail].standby].name;
    if (open_rail(name, config, &md->duo.rail[1]) == UCS_OK) {
        ucs_debug("ha: standby of %s is %s: %s", table->rail[rail].name, name, reason);
    }
}

static ucs_status_t number_rails(struct uct_ha_md *md)
{
    int number[UCT_HA_RAILS];

    number[0] = uct_ha_reg_join(md->duo.rail[0]);
    if (number[0] < 0) {
        ucs_error("ha_rc [HA-308]: more than %d rails are in use, no place for %s", HA_RAILS_MAX,
                  ha_rail_name(md->duo.rail[0]));
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    number[1] = (md->duo.rail[1] != NULL) ? uct_ha_reg_join(md->duo.rail[1]) : number[0];
    if (number[1] < 0) {
        ucs_diag("ha_rc [HA-308]: more than %d rails are in use, %s goes without its standby", HA_RAILS_MAX,
                 ha_rail_name(md->duo.rail[0]));
        ha_rail_close(md->duo.rail[1]);
        md->duo.rail[1] = NULL;
        number[1]       = number[0];
    }
    md->duo.rail_no[0] = (unsigned)number[0];
    md->duo.rail_no[1] = (unsigned)number[1];
    return UCS_OK;
}

static void close_rails(struct uct_ha_md *md)
{
    if (md->duo.rail[1] != NULL) {
        ha_rail_close(md->duo.rail[1]);
    }
    ha_rail_close(md->duo.rail[0]);
}

static void md_close(uct_md_h tl_md)
{
    struct uct_ha_md *md = uct_ha_md(tl_md);

    if (md->cached) {
        uct_ha_rcache_close(); /* its registrations are on the rails */
    }
    uct_ha_reg_leave(md->duo.rail_no[0]);
    if (md->duo.rail[1] != NULL) {
        uct_ha_reg_leave(md->duo.rail_no[1]);
    }
    close_rails(md);
    ucs_free(md);
}

static const struct uct_ha_md_face md_face = {.close     = md_close,
                                              .query     = uct_ha_md_query,
                                              .mem_reg   = uct_ha_mem_reg,
                                              .mem_dereg = uct_ha_mem_dereg,
                                              .mkey_pack = uct_ha_mkey_pack};

ucs_status_t uct_ha_md_open(uct_component_t *component, const char *md_name, const uct_md_config_t *tl_config,
                            uct_md_h *md_p)
{
    const struct uct_ha_md_config *config = (const struct uct_ha_md_config *)tl_config;
    struct uct_ha_rails            table;
    struct uct_ha_md              *md;
    ucs_status_t                   status;
    int                            rail;

    uct_ha_rails_list(&table);
    rail = rail_of_md_name(&table, md_name);
    if (rail < 0) {
        ucs_debug("ha: no rail belongs to memory domain '%s'", md_name);
        return UCS_ERR_NO_DEVICE;
    }
    status = uct_ha_md_config_check(config);
    if (status != UCS_OK) {
        return status;
    }
    status = pair_rails(&table, config->rails);
    if (status != UCS_OK) {
        return status;
    }

    md = ucs_calloc(1, sizeof(*md), "ha_md");
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = open_rail(table.rail[rail].name, config, &md->duo.rail[0]);
    if (status != UCS_OK) {
        ucs_free(md);
        return status;
    }
    open_standby(md, &table, rail, config);

    md->super.ops       = uct_ha_adapt_md(&md_face);
    md->super.component = component;
    status              = number_rails(md);
    if (status != UCS_OK) {
        close_rails(md);
        ucs_free(md);
        return status;
    }
    status = uct_ha_rcache_open(config, ha_rail_name(md->duo.rail[0]), &md->cached);
    if (md->cached) {
        md->rcache_overhead = uct_ha_rcache_overhead(&config->rcache);
    }
    if (status != UCS_OK) {
        md_close(&md->super);
        return status;
    }
    *md_p = &md->super;
    return UCS_OK;
}
