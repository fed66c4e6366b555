/* SPDX-License-Identifier: BSD-3-Clause */

/* For programs. Fields are only ever added. */

#include "ha_info_json.h"
#include "ha_info_text.h"

#include <arpa/inet.h>
#include <string.h>

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

static void string_field(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":", name);
    print_string(out, text);
    fputc(',', out);
}

/* What has no limit is null. */
static void count_field(FILE *out, const char *name, uint64_t count)
{
    if (count == UINT64_MAX) {
        fprintf(out, "\"%s\":null,", name);
    } else {
        fprintf(out, "\"%s\":%llu,", name, (unsigned long long)count);
    }
}

static void pci_text(uint64_t address, char *buf, size_t size)
{
    snprintf(buf, size, "%04llx:%02x:%02x.%x", (unsigned long long)(address >> 16), (unsigned)(address >> 8 & 0xff),
             (unsigned)(address >> 3 & 0x1f), (unsigned)(address & 7));
}

static void print_topology(const struct ha_topo_rail *topo, FILE *out)
{
    char pci[32];

    if (topo->pci.address == HA_TOPO_PCI_NONE) {
        fprintf(out, "\"pci\":null,\"bridges\":[],");
    } else {
        pci_text(topo->pci.address, pci, sizeof(pci));
        fprintf(out, "\"pci\":\"%s\",\"bridges\":[", pci);
        for (unsigned i = 0; i < topo->pci.num_bridges; i++) {
            pci_text(topo->pci.bridge[i], pci, sizeof(pci));
            fprintf(out, "%s\"%s\"", i == 0 ? "" : ",", pci);
        }
        fprintf(out, "],");
    }
    fprintf(out, "\"numa_node\":%d,\"socket\":%d,\"node_guid\":\"%016llx\",\"image_guid\":\"%016llx\",",
            topo->numa_node, topo->package, (unsigned long long)topo->node_guid, (unsigned long long)topo->image_guid);
}

static void print_limits(const struct info_rail *rail, FILE *out)
{
    fprintf(out,
            "\"limits\":{\"max_qp\":%u,\"max_qp_wr\":%u,\"max_cqe\":%u,\"max_cq\":%d,\"max_mr\":%d,"
            "\"max_srq\":%d,\"max_srq_wr\":%d,\"max_sge\":%u,\"max_rd_init\":%u,\"max_rd_resp\":%u},",
            rail->limits.max_qp, rail->limits.max_qp_wr, rail->limits.max_cqe, rail->facts.max_cq, rail->facts.max_mr,
            rail->facts.max_srq, rail->facts.max_srq_wr, rail->limits.max_sge, rail->limits.max_rd_init,
            rail->limits.max_rd_resp);
    fprintf(out, "\"budget\":{");
    count_field(out, "connections", rail->budget.connections);
    for (int i = 0; i < HA_BUDGET_LIMITS; i++) {
        count_field(out, ha_budget_limit_name((enum ha_budget_limit)i), rail->budget.by[i]);
    }
    fprintf(out, "\"limited_by\":\"%s\",\"queues_fit\":%s,\"seed_formula\":%llu},",
            ha_budget_limit_name(rail->budget.limited_by), rail->budget.queues_fit ? "true" : "false",
            (unsigned long long)rail->seed_budget);
}

static void print_open_rail(const struct info_rail *rail, FILE *out)
{
    char gid[INET6_ADDRSTRLEN];

    string_field(out, "state", rail->facts.state);
    string_field(out, "link_layer", rail->addr.link_layer == HA_LINK_IB ? "InfiniBand" : "Ethernet");
    fprintf(out, "\"gbit_per_s\":%.1f,\"mtu\":%u,\"max_mtu\":%u,\"lid\":%u,", rail->limits.bandwidth * 8e-9,
            rail->addr.mtu, rail->facts.max_mtu, rail->addr.lid);
    string_field(out, "netdev", rail->netdev);
    string_field(out, "gid", info_gid_text(rail->addr.gid, gid));
    string_field(out, "gid_type", ha_gid_kind_name(rail->facts.gid_kind));
    fprintf(out, "\"gid_index\":%d,\"prefix_len\":%u,", rail->facts.gid_index, rail->addr.prefix_len);
    fprintf(out, "\"pkey\":\"0x%04x\",", rail->addr.pkey);
    string_field(out, "zone", rail->zone);
    string_field(out, "firmware", rail->facts.firmware);
    string_field(out, "apm", !rail->facts.apm_capable ? "none" : rail->facts.apm_armed == 1 ? "armed" : "capable");
    count_field(out, "window_ns", rail->window_ns);
    string_field(out, "proof", rail->proof);
    string_field(out, "selftest", rail->selftest.why);
    print_limits(rail, out);
}

static void print_rail(const struct info *info, int i, FILE *out)
{
    const struct ha_topo_choice *choice = &info->choice[i];
    char                         reason[256];

    fputc('{', out);
    string_field(out, "name", info->topo[i].name);
    if (info->rail[i].error != 0) {
        string_field(out, "error", strerror(-info->rail[i].error));
    } else {
        print_open_rail(&info->rail[i], out);
    }
    print_topology(&info->topo[i], out);
    string_field(out, "standby", choice->standby < 0 ? "" : info->topo[choice->standby].name);
    string_field(out, "reason", ha_topo_reason(info->topo, info->choice, i, reason, sizeof(reason)));
    fprintf(out, "\"used\":%s,\"shared_fate\":%s}", choice->standby == HA_TOPO_UNUSED ? "false" : "true",
            choice->standby >= 0 && choice->shared_fate ? "true" : "false");
}

static void print_findings(const struct info_finding *findings, int num, FILE *out)
{
    static const char *const levels[] = {"note", "warning", "problem"};

    for (int i = 0; i < num; i++) {
        fprintf(out, "%s{", i == 0 ? "" : ",");
        string_field(out, "id", findings[i].id);
        string_field(out, "level", levels[findings[i].level]);
        string_field(out, "subject", findings[i].subject);
        string_field(out, "text", findings[i].text);
        fprintf(out, "\"remedy\":");
        print_string(out, findings[i].remedy);
        fputc('}', out);
    }
}

void info_print_json(const struct info *info, const struct info_finding *findings, int num, FILE *out)
{
    fprintf(out, "{\"rails\":[");
    for (int i = 0; i < info->num; i++) {
        fprintf(out, "%s", i == 0 ? "" : ",");
        print_rail(info, i, out);
    }
    fprintf(out, "],");
    count_field(out, "memlock", info->memlock);
    fprintf(out, "\"config\":{\"rto\":%g,\"rto_max\":%g,\"heartbeat\":%g,\"timeout\":%u,\"retry_count\":%u,",
            info->config.rto, info->config.rto_max, info->config.heartbeat, info->config.timeout,
            info->config.retry_count);
    string_field(out, "proof", info->config.proof);
    string_field(out, "control", info->config.control);
    string_field(out, "rails", info->config.rails);
    string_field(out, "zones", info->config.zones_text);
    fprintf(out, "\"backup\":%s},\"findings\":[", info->config.backup ? "true" : "false");
    print_findings(findings, num, out);
    fprintf(out, "],\"healthy\":%s}\n", info_is_unhealthy(findings, num) ? "false" : "true");
}

/* Rails on the node, or those that are not: of an unknown node counts as near all. */
static void print_near(const struct info *info, int node, int near, FILE *out)
{
    const char *comma = "";
    int         own;

    fputc('[', out);
    for (int i = 0; i < info->num; i++) {
        own = info->topo[i].numa_node < 0 || info->topo[i].numa_node == node;
        if (own == near && info->rail[i].error == 0 && info->choice[i].standby != HA_TOPO_UNUSED) {
            fprintf(out, "%s", comma);
            print_string(out, info->topo[i].name);
            comma = ",";
        }
    }
    fputc(']', out);
}

void info_print_matrix(const struct info *info, FILE *out)
{
    int nodes = 1, usable = 0;

    for (int i = 0; i < info->num; i++) {
        nodes = info->topo[i].numa_node >= nodes ? info->topo[i].numa_node + 1 : nodes;
    }
    for (int i = 0; i < info->num; i++) {
        usable += info->rail[i].error == 0 && info->choice[i].standby != HA_TOPO_UNUSED;
    }
    fputc('{', out);
    for (int node = 0; node < nodes && usable > 0; node++) { /* no location without a rail */
        fprintf(out, "%s\"cpu:%d\":[", node == 0 ? "" : ",", node);
        print_near(info, node, 1, out);
        fputc(',', out);
        print_near(info, node, 0, out);
        fputc(']', out);
    }
    fprintf(out, "}\n");
}
