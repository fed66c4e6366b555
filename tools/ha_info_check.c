/* SPDX-License-Identifier: BSD-3-Clause */

/* What is wrong with a host. Each function looks for one thing; every finding says
 * what to do. */

#include "ha_info_check.h"

#include "topo/ha_match.h"
#include "base/config.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Fewer connections than this within the locked-memory limit: too few to be meant. */
#define MEMLOCK_CONNECTIONS 32

struct list {
    struct info_finding *finding;
    int                  num, max;
};

static struct info_finding *add(struct list *list, enum info_level level, const char *id, const char *subject)
{
    static struct info_finding dropped;
    struct info_finding       *finding = list->num < list->max ? &list->finding[list->num++] : &dropped;

    finding->level = level;
    finding->id    = id;
    snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
    return finding;
}

__attribute__((format(printf, 2, 3))) static void say(struct info_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->text, sizeof(finding->text), format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void advise(struct info_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->remedy, sizeof(finding->remedy), format, args);
    va_end(args);
}

static int is_used(const struct info *info, int i)
{
    return info->choice[i].standby != HA_TOPO_UNUSED;
}

static int num_used(const struct info *info)
{
    int count = 0;

    for (int i = 0; i < info->num; i++) {
        count += is_used(info, i) && info->rail[i].error == 0;
    }
    return count;
}

static void check_rails(const struct info *info, struct list *list)
{
    struct info_finding *finding;

    if (num_used(info) == 0) {
        finding = add(list, INFO_PROBLEM, "no-rail", "host");
        say(finding, "no RDMA port that can be used");
        advise(finding, "load the driver of the card, see ibv_devices and rdma link; programs go on without ha_rc");
    } else if (num_used(info) == 1) {
        finding = add(list, INFO_PROBLEM, "single-rail", "host");
        say(finding, "only one rail: there is nowhere to go when it fails");
        advise(finding,
               "bring up a second port, best of another card; or name it in UCX_HA_RC_RAILS if it is left out");
    }
    if (!info->config.backup) {
        finding = add(list, INFO_PROBLEM, "backup-off", "host");
        say(finding, "UCX_HA_RC_ENABLE_BACKUP=n: connections have no standby");
        advise(finding, "unset it");
    }
}

static void check_open(const struct info *info, int i, struct list *list)
{
    int                  error = -info->rail[i].error;
    struct info_finding *finding;

    if (ha_rail_why_not(-error) != NULL) {
        finding = add(list, INFO_WARNING, "not-a-rail", info->topo[i].name);
        say(finding, "cannot be a rail: %s", ha_rail_why_not(-error));
        advise(finding, "leave it out of UCX_HA_RC_RAILS; UCX has transports of its own for it");
        return;
    }
    finding = add(list, INFO_PROBLEM, "cannot-open", info->topo[i].name);
    if (error == ENOKEY) {
        say(finding, "no partition key at the index that UCX_HA_RC_PKEY_INDEX names");
        advise(finding, "choose an entry that every rail has (/sys/class/infiniband/*/ports/*/pkeys), or unset it");
        return;
    }
    say(finding, "cannot be opened: %s", strerror(error));
    advise(finding, "%s",
           info->config.gid_index >= 0
               ? "set UCX_HA_RC_GID_INDEX=-1, or to an index that every rail has (ibv_devinfo -v)"
               : "look at dmesg and at the rights of /dev/infiniband/uverbs*");
}

static void check_rail(const struct info *info, int i, struct list *list)
{
    const struct info_rail *rail = &info->rail[i];
    const char             *name = info->topo[i].name;
    struct info_finding    *finding;

    if (rail->error != 0) {
        check_open(info, i, list);
        return;
    }
    if (!rail->facts.active) {
        finding = add(list, INFO_PROBLEM, "port-down", name);
        say(finding, "the port is %s, not ACTIVE", rail->facts.state);
        advise(finding, "check the cable%s%s%s; or leave the rail out with UCX_HA_RC_RAILS",
               rail->addr.link_layer == HA_LINK_IB ? " and the subnet manager (ibstat)" : " and: ip link set ",
               rail->addr.link_layer == HA_LINK_IB ? ""
               : rail->netdev[0] != '\0'           ? rail->netdev
                                                   : "NETDEV",
               rail->addr.link_layer == HA_LINK_IB ? "" : " up");
    } else if (rail->facts.gid_index < 0 && rail->addr.link_layer != HA_LINK_IB) {
        finding = add(list, INFO_PROBLEM, "no-gid", name);
        say(finding, "no usable GID");
        advise(finding, "give its net device an address: ip addr add ADDRESS/BITS dev NETDEV");
    }
    if (rail->facts.gid_kind == HA_GID_ROCE_V1) {
        finding = add(list, INFO_WARNING, "gid-type", name);
        say(finding, "its GID is RoCE v1, which is not routed and which peers may not have");
        advise(finding, "give its net device an IP address, or choose a RoCE v2 index by UCX_HA_RC_GID_INDEX");
    }
    if (!info->config.allow_unknown_zone && rail->zone[0] == '\0') {
        finding = add(list, INFO_PROBLEM, "no-zone", name);
        say(finding, "has no zone, and UCX_HA_RC_ALLOW_UNKNOWN_ZONE=n: it reaches nobody");
        advise(finding, "add it to UCX_HA_RC_ZONES, or allow unknown zones");
    }
}

static void check_pair(const struct info *info, int i, struct list *list)
{
    const struct ha_topo_choice *choice = &info->choice[i];
    const char                  *name   = info->topo[i].name, *standby;
    const struct info_rail      *a, *b;
    struct info_finding         *finding;
    char                         reason[160];

    if (choice->standby == HA_TOPO_NONE && info->rail[i].error == 0 && num_used(info) > 1) {
        finding = add(list, INFO_PROBLEM, "no-standby", name);
        say(finding, "no rail backs it: %s", ha_topo_reason(info->topo, info->choice, i, reason, sizeof(reason)));
        advise(finding, "add a rail of the same link layer, or put it into a group of UCX_HA_RC_RAILS");
    }
    if (choice->standby < 0) {
        return;
    }
    standby = info->topo[choice->standby].name;
    a       = &info->rail[i];
    b       = &info->rail[choice->standby];
    if (choice->shared_fate) {
        finding = add(list, INFO_WARNING, "shared-fate", name);
        say(finding, "its standby %s is on the same card: both die with it", standby);
        advise(finding, "use ports of two cards where there are two (UCX_HA_RC_RAILS=%s+OTHER:1)", name);
    }
    if (a->error != 0 || b->error != 0 || i > choice->standby) {
        return; /* what follows is said once per pair */
    }
    if (a->facts.gid_kind != b->facts.gid_kind && a->facts.gid_index >= 0 && b->facts.gid_index >= 0) {
        finding = add(list, INFO_WARNING, "gid-type", name);
        say(finding, "its GID is %s, that of its standby %s is %s", ha_gid_kind_name(a->facts.gid_kind), standby,
            ha_gid_kind_name(b->facts.gid_kind));
        advise(finding, "give both net devices addresses of one kind, best IPv4");
    }
    if (a->addr.mtu != b->addr.mtu) {
        finding = add(list, INFO_WARNING, "mtu", name);
        say(finding, "its MTU is %u, that of its standby %s is %u: throughput changes with a failover", a->addr.mtu,
            standby, b->addr.mtu);
        advise(finding, "set the MTU of both net devices and their switch ports alike (4200 or more for 4096)");
    }
}

/* Two interfaces of one host in one subnet: which of them answers ARP and sends is then
 * up to the kernel, and often the wrong one. */
static void check_subnets(const struct info *info, int i, struct list *list)
{
    const struct ha_rail_addr *a = &info->rail[i].addr, *b;
    struct info_finding       *finding;

    for (int j = i + 1; j < info->num; j++) {
        b = &info->rail[j].addr;
        if (info->rail[i].error != 0 || info->rail[j].error != 0 || a->prefix_len == 0 || !ha_same_network(a, b)) {
            continue;
        }
        finding = add(list, INFO_WARNING, "same-subnet", info->topo[i].name);
        say(finding, "is in the same IP subnet as %s: packets may leave and answers come by the wrong one",
            info->topo[j].name);
        advise(finding, "use one subnet per rail; or set net.ipv4.conf.all.arp_ignore=1, arp_announce=2 and a "
                        "routing table per device");
    }
}

static void check_apm(const struct info *info, int i, struct list *list)
{
    const struct ha_rail_facts *facts = &info->rail[i].facts;
    struct info_finding        *finding;

    if (info->rail[i].error != 0 || !facts->apm_capable) {
        return;
    }
    if (facts->apm_armed == 1) {
        finding = add(list, INFO_PROBLEM, "apm-armed", info->topo[i].name);
        say(finding, "automatic path migration is armed: the card would move paths behind our back");
        advise(finding, "turn it off in the driver or fabric manager, or set UCX_HA_RC_ENABLE_BACKUP=n");
    } else {
        finding = add(list, INFO_NOTE, "apm-capable", info->topo[i].name);
        say(finding, "the card is capable of automatic path migration; ha_rc never arms it");
        advise(finding, "see that no other software on this host arms it");
    }
}

/* Two limited members of a partition do not reach each other. */
static void check_partition(const struct info *info, int i, struct list *list)
{
    unsigned             pkey = info->rail[i].addr.pkey;
    struct info_finding *finding;

    if (info->rail[i].error == 0 && pkey != 0 && (pkey & HA_PKEY_FULL) == 0) {
        finding = add(list, INFO_NOTE, "limited-member", info->topo[i].name);
        say(finding, "partition key 0x%04x is that of a limited member: it reaches full members only", pkey);
        advise(finding, "for jobs among such hosts make them full members in the subnet manager, or choose another "
                        "entry by UCX_HA_RC_PKEY_INDEX");
    }
}

/* What a job on this rail could prove after a failover, and how. */
static void check_proof(const struct info *info, int i, struct list *list)
{
    const struct info_rail *rail  = &info->rail[i];
    int                     psn   = strcmp(info->config.proof, "psn") == 0;
    int                     tried = rail->selftest.verdict == UCT_HA_SELFTEST_FAILED;
    struct info_finding    *finding;

    if (rail->error != 0 || !info->topo[i].active || rail->selftest.verdict == UCT_HA_SELFTEST_PASSED) {
        return;
    }
    if (psn && tried) {
        finding = add(list, INFO_PROBLEM, "proof-refused", info->topo[i].name);
        say(finding, "UCX_HA_RC_PROOF=psn, but %s: interfaces do not open", rail->selftest.why);
        advise(finding, "set UCX_HA_RC_PROOF=auto or count");
    } else if (psn || strcmp(info->config.proof, "auto") == 0) {
        finding = add(list, INFO_NOTE, "proof-count", info->topo[i].name);
        say(finding, "%s; failovers %s", rail->selftest.why,
            psn ? "trust it as UCX_HA_RC_PROOF=psn says"
                : "count: each PUT takes a receive, and "
                  "the receiver has to make progress");
        advise(finding, "nothing, if that is all right; see docs/tuning.md, proof");
    }
}

static void check_timers(const struct info *info, int i, struct list *list)
{
    const struct info_config *config = &info->config;
    const struct info_rail   *rail   = &info->rail[i];
    double                    window = (double)rail->window_ns * 1e-9;
    struct info_finding      *finding;

    if (rail->error != 0) {
        return;
    }
    if (config->retry_count == 7 && rail->limits.retry7_forever) {
        finding = add(list, INFO_WARNING, "retry-forever", info->topo[i].name);
        say(finding, "UCX_HA_RC_RETRY_COUNT=7 means for ever on this device: it would never report a silent loss");
        advise(finding, "set it to 6 or less (ha_rc uses 6)");
    }
    if (rail->window_ns == HA_WINDOW_FOREVER ||
        (config->rto < 2 * window && config->rto != UCT_HA_RTO_DEFAULT)) { /* the default is fitted */
        finding = add(list, INFO_WARNING, "rto-rule", info->topo[i].name);
        say(finding,
            "UCX_HA_RC_RTO=%gs is less than twice the %.2f s that the card itself retries (TIMEOUT=%u, "
            "RETRY_COUNT=%u%s)",
            config->rto, window, config->timeout, config->retry_count, rail->facts.mlx5 ? ", mlx5's rule" : "");
        advise(finding, "set UCX_HA_RC_RTO=%.1fs and RTO_MAX no lower, or lower RETRY_COUNT%s", 2 * window + 0.05,
               rail->facts.mlx5 ? "; a TIMEOUT below 16 changes nothing on mlx5" : " or TIMEOUT");
    }
}

static void check_host(const struct info *info, struct list *list)
{
    struct ha_budget_need need;
    struct info_finding  *finding;
    uint64_t              wanted;

    if (info->config.heartbeat == 0) {
        finding = add(list, INFO_WARNING, "heartbeat-off", "host");
        say(finding, "UCX_HA_RC_HEARTBEAT=0: a silent rail is found late, and a dead standby not at all");
        advise(finding, "unset it");
    }
    need   = ha_budget_need(info->config.tx_queue_len, info->config.rx_queue_len, info->config.rx_queue_init,
                            info->config.seg_size, num_used(info) > 1 ? 2 : 1);
    wanted = MEMLOCK_CONNECTIONS * need.bytes * need.rails;
    if (info->memlock < wanted) {
        finding = add(list, INFO_PROBLEM, "memlock", "host");
        say(finding,
            "the locked-memory limit of %llu KiB holds the receive buffers of %llu connections, and the "
            "program's memory is to be locked on each rail, too",
            (unsigned long long)(info->memlock >> 10), (unsigned long long)(info->memlock / (need.bytes * need.rails)));
        advise(finding, "ulimit -l unlimited: in /etc/security/limits.conf and in the service of the batch system");
    }
}

int info_check(const struct info *info, struct info_finding *findings, int max)
{
    struct list list = {.finding = findings, .max = max};

    check_rails(info, &list);
    for (int i = 0; i < info->num; i++) {
        if (is_used(info, i)) {
            check_rail(info, i, &list);
            check_pair(info, i, &list);
            check_subnets(info, i, &list);
            check_apm(info, i, &list);
            check_partition(info, i, &list);
            check_proof(info, i, &list);
            check_timers(info, i, &list);
        }
    }
    check_host(info, &list);
    return list.num;
}

int info_is_unhealthy(const struct info_finding *findings, int num)
{
    for (int i = 0; i < num; i++) {
        if (findings[i].level > INFO_NOTE) {
            return 1;
        }
    }
    return 0;
}
