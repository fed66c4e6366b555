/* SPDX-License-Identifier: BSD-3-Clause */

/* For people. */

#include "ha_info_text.h"

#include <arpa/inet.h>
#include <string.h>

const char *info_gid_text(const uint8_t gid[16], char *buf)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
        inet_ntop(AF_INET, gid + 12, buf, INET6_ADDRSTRLEN);
    } else {
        inet_ntop(AF_INET6, gid, buf, INET6_ADDRSTRLEN);
    }
    return buf;
}

static const char *link_name(unsigned link_layer)
{
    return link_layer == HA_LINK_IB ? "InfiniBand" : link_layer == HA_LINK_ETHERNET ? "Ethernet" : "unknown";
}

static void print_place(const struct ha_topo_rail *topo, FILE *out)
{
    uint64_t pci = topo->pci.address;

    fprintf(out, "  place      ");
    if (pci == HA_TOPO_PCI_NONE) {
        fprintf(out, "PCI unknown");
    } else {
        fprintf(out, "PCI %04llx:%02x:%02x.%x below %u bridge%s", (unsigned long long)(pci >> 16),
                (unsigned)(pci >> 8 & 0xff), (unsigned)(pci >> 3 & 0x1f), (unsigned)(pci & 7), topo->pci.num_bridges,
                topo->pci.num_bridges == 1 ? "" : "s");
    }
    if (topo->numa_node >= 0) {
        fprintf(out, ", NUMA node %d", topo->numa_node);
    } else {
        fprintf(out, ", NUMA node unknown");
    }
    if (topo->package >= 0) {
        fprintf(out, ", socket %d", topo->package);
    }
    fputc('\n', out);
}

static void print_count(FILE *out, uint64_t count)
{
    if (count == HA_BUDGET_UNLIMITED) {
        fprintf(out, "unlimited");
    } else {
        fprintf(out, "%llu", (unsigned long long)count);
    }
}

static void print_budget(const struct info_rail *rail, FILE *out)
{
    fprintf(out, "  limits     max_qp %u, max_qp_wr %u, max_cqe %u (per queue), max_mr %d, max_srq_wr %d\n",
            rail->limits.max_qp, rail->limits.max_qp_wr, rail->limits.max_cqe, rail->facts.max_mr,
            rail->facts.max_srq_wr);
    fprintf(out, "  budget     ");
    print_count(out, rail->budget.connections);
    fprintf(out, " connections, limited by %s (", ha_budget_limit_name(rail->budget.limited_by));
    for (int i = 0; i < HA_BUDGET_LIMITS; i++) {
        fprintf(out, "%s%s ", i == 0 ? "" : ", ", ha_budget_limit_name((enum ha_budget_limit)i));
        print_count(out, rail->budget.by[i]);
    }
    fprintf(out, "); by the design notes' formula %llu\n", (unsigned long long)rail->seed_budget);
}

static void print_rail(const struct info *info, int i, FILE *out)
{
    const struct info_rail *rail = &info->rail[i];
    char                    gid[INET6_ADDRSTRLEN];

    fprintf(out, "%s\n", info->topo[i].name);
    if (rail->error != 0) {
        fprintf(out, "  cannot be opened: %s\n", strerror(-rail->error));
        return;
    }
    fprintf(out, "  port       %s, %s, %.0f Gbit/s, MTU %u of %u%s%s\n", rail->facts.state,
            link_name(rail->addr.link_layer), rail->limits.bandwidth * 8e-9, rail->addr.mtu, rail->facts.max_mtu,
            rail->netdev[0] != '\0' ? ", net device " : "", rail->netdev);
    if (rail->facts.gid_index >= 0) {
        fprintf(out, "  address    %s, index %d, %s, prefix %u", info_gid_text(rail->addr.gid, gid),
                rail->facts.gid_index, ha_gid_kind_name(rail->facts.gid_kind), rail->addr.prefix_len);
    } else {
        fprintf(out, "  address    none");
    }
    fprintf(out, ", LID %u, partition key 0x%04x, zone %s\n", rail->addr.lid, rail->addr.pkey,
            rail->zone[0] != '\0' ? rail->zone : "none");
    print_place(&info->topo[i], out);
    print_budget(rail, out);
    if (rail->window_ns == HA_WINDOW_FOREVER) {
        fprintf(out, "  window     the card retries for ever\n");
    } else {
        fprintf(out, "  window     the card retries for %.2f s%s\n", (double)rail->window_ns * 1e-9,
                rail->facts.mlx5 ? " (mlx5's rule)" : " (nominal)");
    }
    fprintf(out, "  proof      %s; self-test: %s\n", rail->proof, rail->selftest.why);
    fprintf(out, "  APM        %s\n",
            !rail->facts.apm_capable     ? "not capable"
            : rail->facts.apm_armed == 1 ? "ARMED"
                                         : "capable, not armed");
}

void info_print_rails(const struct info *info, FILE *out)
{
    if (info->num == 0) {
        fprintf(out, "no rails\n");
    }
    for (int i = 0; i < info->num; i++) {
        print_rail(info, i, out);
    }
    fprintf(out, "host\n  locked memory limit ");
    if (info->memlock == HA_BUDGET_UNLIMITED) {
        fprintf(out, "none");
    } else {
        fprintf(out, "%llu KiB", (unsigned long long)(info->memlock >> 10));
    }
    fprintf(out, ", proof %s, control by %s, RTO %gs, heartbeat %gs x %u\n", info->config.proof, info->config.control,
            info->config.rto, info->config.heartbeat, info->config.heartbeat_misses);
}

void info_print_pairs(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices, int num, FILE *out)
{
    char reason[256];

    for (int i = 0; i < num; i++) {
        fprintf(out, "%-12s -> %-12s %s\n", rails[i].name,
                choices[i].standby < 0 ? "none" : rails[choices[i].standby].name,
                ha_topo_reason(rails, choices, i, reason, sizeof(reason)));
    }
}

void info_print_findings(const struct info_finding *findings, int num, FILE *out)
{
    static const char *const levels[] = {"note", "WARNING", "PROBLEM"};

    for (int i = 0; i < num; i++) {
        fprintf(out, "%-7s %s: %s [%s]\n        %s\n", levels[findings[i].level], findings[i].subject, findings[i].text,
                findings[i].id, findings[i].remedy);
    }
    if (!info_is_unhealthy(findings, num)) {
        fprintf(out, "healthy: nothing is wrong\n");
    }
}
