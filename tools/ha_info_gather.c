/* SPDX-License-Identifier: BSD-3-Clause */

/* Asks devices, sysfs, hwloc, the kernel and UCX's configuration. */

#include "ha_info_gather.h"

#include "abi/adapt.h"
#include "base/config.h"
#include "mem/rails.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* What the design notes' formula assumes. */
#define SEED_WR       64
#define SEED_CHANNELS 16
#define SEED_RECVS    8

static void take_config(struct info_config *to, const struct uct_ha_md_config *md,
                        const struct uct_ha_iface_config *iface)
{
    static const char *const proofs[]   = {"auto", "psn", "count", "ledger"};
    static const char *const controls[] = {"auto", "ud", "tcp"};

    to->backup             = md->enable_backup;
    to->gid_index          = md->gid_index;
    to->allow_unknown_zone = iface->allow_unknown_zone;
    to->timeout            = iface->timeout;
    to->retry_count        = iface->retry_count;
    to->rnr_retry_count    = iface->rnr_retry_count;
    to->heartbeat_misses   = iface->heartbeat_misses;
    to->rto                = iface->rto;
    to->rto_max            = iface->rto_max;
    to->heartbeat          = iface->heartbeat;
    to->tx_queue_len       = iface->tx_queue_len;
    to->rx_queue_len       = iface->rx_queue_len;
    to->rx_queue_init      = iface->rx_queue_init;
    to->seg_size           = iface->seg_size;
    to->proof              = iface->proof < 4 ? proofs[iface->proof] : "?";
    to->control            = iface->control < 3 ? controls[iface->control] : "?";
    snprintf(to->rails, sizeof(to->rails), "%s", md->rails);
    snprintf(to->zones_text, sizeof(to->zones_text), "%s", iface->zones);
}

void info_derive(struct info *info, int i)
{
    struct info_rail         *rail    = &info->rail[i];
    const struct info_config *config  = &info->config;
    unsigned                  retries = config->retry_count;
    struct ha_budget_need     need;

    if (retries == 7 && rail->limits.retry7_forever) {
        retries = 6; /* as the transport does */
    }
    need         = ha_budget_need(config->tx_queue_len, config->rx_queue_len, config->rx_queue_init, config->seg_size,
                          info->choice[i].standby >= 0 ? 2 : 1);
    rail->device = (struct ha_budget_device){.max_qp    = rail->limits.max_qp,
                                             .max_qp_wr = rail->limits.max_qp_wr,
                                             .max_cqe   = rail->limits.max_cqe,
                                             .max_mr    = (uint64_t)rail->facts.max_mr,
                                             .memlock   = info->memlock};
    rail->budget = ha_budget(&rail->device, &need);
    rail->seed_budget = ha_budget_seed(rail->limits.max_qp, rail->limits.max_cqe, SEED_WR, SEED_CHANNELS, SEED_RECVS);
    rail->window_ns   = rail->facts.mlx5 ? ha_window_mlx5(config->timeout, retries)
                                         : ha_window_nominal(config->timeout, retries);
}

/* As the transport chooses. */
static const char *proof_of(const struct info *info, int i)
{
    if (strcmp(info->config.proof, "auto") != 0) {
        return info->config.proof;
    }
    return info->rail[i].selftest.verdict == UCT_HA_SELFTEST_PASSED ? "psn" : "count";
}

static void ask_rail(struct info *info, int i, const struct ha_rail_opts *opts)
{
    struct info_rail *to = &info->rail[i];
    struct ha_rail   *rail;
    const char       *zone;

    to->error = ha_rail_open(info->topo[i].name, opts, &rail);
    if (to->error != 0) {
        return;
    }
    to->error  = ha_rail_facts(rail, &to->facts);
    to->addr   = ha_rail_addr(rail);
    to->limits = *ha_rail_limits(rail);
    ha_rail_netdev(rail, to->netdev);
    zone = ha_zone_name(&info->zones, info->topo[i].name, to->netdev, to->addr.gid);
    snprintf(to->zone, sizeof(to->zone), "%s", zone == NULL ? "" : zone);
    to->selftest = uct_ha_selftest(rail);
    to->proof    = proof_of(info, i);
    ha_rail_close(rail);
}

static int ask_host(struct info *info, const struct uct_ha_md_config *md)
{
    struct ha_rail_opts opts = uct_ha_rail_opts(md);
    struct uct_ha_rails rails;
    struct rlimit       limit;
    char                error[256];

    uct_ha_rails_list(&rails);
    uct_ha_rails_learn(&rails, &opts);
    if (uct_ha_rails_pair(&rails, md->rails, error, sizeof(error)) != 0) {
        fprintf(stderr, "ha_info: UCX_HA_RC_RAILS='%s': %s\n", md->rails, error);
        return -EINVAL;
    }
    info->num = rails.num;
    memcpy(info->topo, rails.rail, sizeof(info->topo));
    memcpy(info->choice, rails.choice, sizeof(info->choice));
    info->memlock = getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
                        ? HA_BUDGET_UNLIMITED
                        : (uint64_t)limit.rlim_cur;
    for (int i = 0; i < info->num; i++) {
        ask_rail(info, i, &opts);
        info_derive(info, i);
    }
    return 0;
}

/* UCX itself says what is wrong with a value. */
static int with_iface_config(struct info *info, const struct uct_ha_md_config *md)
{
    struct uct_ha_iface_config iface;
    char                       error[160];
    int                        ret = -EINVAL;

    if (uct_ha_config_fill(&iface, uct_ha_iface_config_table, sizeof(iface), UCT_HA_CONFIG_PREFIX) != UCS_OK) {
        return -EINVAL;
    }
    if (uct_ha_md_config_check(md) == UCS_OK && uct_ha_iface_config_check(&iface) == UCS_OK &&
        ha_zones_parse(iface.zones, &info->zones, error, sizeof(error)) == 0) {
        take_config(&info->config, md, &iface);
        ret = ask_host(info, md);
    }
    ucs_config_parser_release_opts(&iface, uct_ha_iface_config_table);
    return ret;
}

int info_gather(struct info *info)
{
    struct uct_ha_md_config md;
    int                     ret;

    memset(info, 0, sizeof(*info));
    if (uct_ha_config_fill(&md, uct_ha_md_config_table, sizeof(md), UCT_HA_CONFIG_PREFIX) != UCS_OK) {
        return -EINVAL;
    }
    ret = with_iface_config(info, &md);
    ucs_config_parser_release_opts(&md, uct_ha_md_config_table);
    return ret;
}
