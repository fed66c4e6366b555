/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include "abi/adapt.h"
#include "base/units.h"
#include "topo/ha_zone.h"

#include <limits.h>
#include <stdio.h>
#include <strings.h>

#define MD_FIELD(_field)    ucs_offsetof(struct uct_ha_md_config, _field)
#define IFACE_FIELD(_field) ucs_offsetof(struct uct_ha_iface_config, _field)

static const char *uct_ha_atomics_names[] = {
    [UCT_HA_ATOMICS_SW] = "sw", [UCT_HA_ATOMICS_HW] = "hw", [UCT_HA_ATOMICS_LAST] = NULL};

static const char *uct_ha_proof_names[] = {[UCT_HA_PROOF_AUTO]      = "auto",
                                           [UCT_HA_PROOF_PSN]       = "psn",
                                           [UCT_HA_PROOF_COUNT]     = "count",
                                           [UCT_HA_PROOF_LEDGER]    = "ledger",
                                           [UCT_HA_PROOF_MODE_LAST] = NULL};

static const char *uct_ha_control_names[] = {[UCT_HA_CONTROL_AUTO] = "auto",
                                             [UCT_HA_CONTROL_UD]   = "ud",
                                             [UCT_HA_CONTROL_TCP]  = "tcp",
                                             [UCT_HA_CONTROL_LAST] = NULL};

/* ---- values that are a word or a number -------------------------------------- */

struct word { /* what UCX hands back to the parser of a field */
    const char *help;
    const char *name[2];
    double      value[2];
    int (*number)(const char *buf, void *dest, const void *arg);
    const char *unit;
};

static const struct word failback_words = {"never, auto, or a time such as 30s",
                                           {"never", "auto"},
                                           {UCT_HA_FAILBACK_NEVER, UCT_HA_FAILBACK_AUTO},
                                           ucs_config_sscanf_time,
                                           "s"};

static const struct word slow_words = {"off, or how many times slower than usual, such as 20",
                                       {"off", "off"},
                                       {UCT_HA_SLOW_OFF, UCT_HA_SLOW_OFF},
                                       ucs_config_sscanf_double,
                                       ""};

static int word_read(const char *buf, void *dest, const void *arg)
{
    const struct word *word = arg;

    for (int i = 0; i < 2; i++) {
        if (strcasecmp(buf, word->name[i]) == 0) {
            *(double *)dest = word->value[i];
            return 1;
        }
    }
    return word->number(buf, dest, NULL) && *(double *)dest >= 0;
}

static int word_write(char *buf, size_t max, const void *src, const void *arg)
{
    const struct word *word  = arg;
    double             value = *(const double *)src;

    for (int i = 0; i < 2; i++) {
        if (value == word->value[i]) {
            snprintf(buf, max, "%s", word->name[i]);
            return 1;
        }
    }
    snprintf(buf, max, "%g%s", value, word->unit);
    return 1;
}

static void word_help(char *buf, size_t max, const void *arg)
{
    snprintf(buf, max, "%s", ((const struct word *)arg)->help);
}

#define TYPE_WORD(_words)                                                                                            \
    {                                                                                                                \
        .read = word_read, .write = word_write, .clone = ucs_config_clone_double, .release = ucs_config_release_nop, \
        .help = word_help, UCT_HA_CONFIG_NO_DOC.arg = &(_words)                                                      \
    }

/* What `auto` stands for. */
static const int auto_gid = -1, auto_zero = 0;

/* ---- the tables ---------------------------------------------------------------- */

/* What opening a rail needs. */
ucs_config_field_t uct_ha_md_config_table[] = {
    {"", "", NULL, MD_FIELD(super), UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"RAILS", "",
     "Rails that back each other: groups separated by ',', members by '+', for\n"
     "example mlx5_0:1+mlx5_2:1,mlx5_1:1+mlx5_3:1. The standby of a rail is the\n"
     "next member of its group; rails outside every group are not used.\n"
     "Empty: all rails are used and standbys are chosen by topology.",
     MD_FIELD(rails), UCS_CONFIG_TYPE_STRING},

    {"GID_INDEX", "auto",
     "GID table index for every rail; auto (-1) chooses: RoCE v2 IPv4, then IPv6 global,\n"
     "then link-local.",
     MD_FIELD(gid_index), UCT_HA_TYPE_AUTO_INT(auto_gid)},

    {"PKEY_INDEX", "0", "Index into the partition key table. Rails of different partitions do not talk.",
     MD_FIELD(pkey_index), UCS_CONFIG_TYPE_UINT},

    {"SL", "auto", "Service level; auto (0) takes that of the peer.", MD_FIELD(sl), UCT_HA_TYPE_AUTO_UINT(auto_zero)},

    {"TRAFFIC_CLASS", "auto", "Traffic class (RoCE: DSCP and ECN byte); auto (0) takes that of the peer.",
     MD_FIELD(traffic_class), UCT_HA_TYPE_AUTO_UINT(auto_zero)},

    {"HOP_LIMIT", "64", "Hop limit of routed packets.", MD_FIELD(hop_limit), UCS_CONFIG_TYPE_UINT},

    {"PATH_MTU", "auto",
     "Upper bound of the path MTU in bytes: 256, 512, 1024, 2048 or 4096;\n"
     "auto (0) takes what both ports allow.",
     MD_FIELD(path_mtu), UCT_HA_TYPE_AUTO_UINT(auto_zero)},

    {"ENABLE_BACKUP", "y", "Use a standby rail; n gives plain single-rail operation.", MD_FIELD(enable_backup),
     UCS_CONFIG_TYPE_BOOL},

    {"RCACHE", "try",
     "Keep registrations of memory that was used: yes, no, or try = go on without\n"
     "the cache when UCX cannot follow the process's memory mappings.",
     MD_FIELD(rcache_mode), UCS_CONFIG_TYPE_TERNARY},

    {"", "", NULL, MD_FIELD(rcache), UCS_CONFIG_TYPE_TABLE(UCT_HA_RCACHE_TABLE)},

    {.name = NULL}};

ucs_config_field_t uct_ha_iface_config_table[] = {
    {"", "", NULL, IFACE_FIELD(super), UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"TX_QUEUE_LEN", "256", "Send operations that one lane may have in flight.", IFACE_FIELD(tx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"TX_NUM_GET_BYTES", "inf",
     "Bytes that the GETs of an interface which are under way may bring; the last one to begin may go beyond.",
     IFACE_FIELD(get_bytes), UCS_CONFIG_TYPE_MEMUNITS},

    {"RX_QUEUE_LEN", "512", "Messages that one connection takes ahead of its receiver (its credits), at most.",
     IFACE_FIELD(rx_queue_len), UCS_CONFIG_TYPE_UINT},

    {"RX_QUEUE_INIT", "8",
     "The same for a new connection, rounded down to a power of two; it doubles while the\n"
     "peer keeps filling it, up to RX_QUEUE_LEN.",
     IFACE_FIELD(rx_queue_init), UCS_CONFIG_TYPE_UINT},

    {"SRQ_LEN", "4096",
     "Receives that all connections of a process share on a rail, at first and at most: more only\n"
     "when the device says that few are left. On devices that report packet numbers and have\n"
     "shared receive queues. 0: each connection has receives of its own.",
     IFACE_FIELD(srq_len), UCS_CONFIG_TYPE_UINT},

    {"RX_MEM", "64m",
     "Receive memory beyond which an interface lets no connection's queue grow; beyond 128 receives one grows only by\n"
     "an eighth of what is left of it. A program may keep as much besides, of messages that come before they are\n"
     "asked for; further ones are copied.",
     IFACE_FIELD(rx_mem), UCS_CONFIG_TYPE_MEMUNITS},

    {"CTL_QUEUE_LEN", "256", "Control packets that one rail may have in flight.", IFACE_FIELD(ctl_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"SEG_SIZE", "8k",
     "Size of a bounce buffer: the largest buffered-copy message. Give the same to all\n"
     "processes, others are refused.",
     IFACE_FIELD(seg_size), UCS_CONFIG_TYPE_MEMUNITS},

    {"INLINE", "64", "Bytes that are sent inline, at most 128 and what the device allows; atomics need 40.",
     IFACE_FIELD(max_inline), UCS_CONFIG_TYPE_UINT},

    {"MAX_SGE", "4", "Pieces of a zero-copy operation, at most 8 and what the device allows.", IFACE_FIELD(max_sge),
     UCS_CONFIG_TYPE_UINT},

    {"TIMEOUT", "16",
     "Local ACK timeout of a lane: an exponent, 4.096 us * 2^TIMEOUT, or a time such as 268ms,\n"
     "which is rounded up to the next such one. Together with\n"
     "RETRY_COUNT it says how long the HCA itself retries. Of both sides the lower counts.",
     IFACE_FIELD(timeout), UCT_HA_TYPE_EXPONENT},

    {"RETRY_COUNT", "6",
     "Retransmissions of a lane before the HCA gives up. 7 means for ever on some devices\n"
     "(Soft-RoCE), where 6 is used. Of both sides the lower counts.",
     IFACE_FIELD(retry_count), UCS_CONFIG_TYPE_UINT},

    {"RNR_RETRY_COUNT", "7", "Retries while the receiver has no buffer; 7 = for ever. The higher of both sides counts.",
     IFACE_FIELD(rnr_retry_count), UCS_CONFIG_TYPE_UINT},

    {"MIN_RNR_TIMER", "12", "Index of the delay before such a retry (12 = 0.64 ms). The higher of both sides counts.",
     IFACE_FIELD(min_rnr_timer), UCS_CONFIG_TYPE_UINT},

    {"RTO", "1000ms",
     "A lane with work in flight and without progress for this long is suspected; 1 ms more\n"
     "for every 32 KiB above 8 MiB. Raised to twice the time that the HCA itself may retry.",
     IFACE_FIELD(rto), UCS_CONFIG_TYPE_TIME},

    {"RTO_MAX", "5s", "Three false alarms in a row widen RTO by half, up to this; 30 s of calm narrow it again.",
     IFACE_FIELD(rto_max), UCS_CONFIG_TYPE_TIME},

    {"HEARTBEAT", "100ms", "Interval of the probes on every rail; 0 = off.", IFACE_FIELD(heartbeat),
     UCS_CONFIG_TYPE_TIME},

    {"HEARTBEAT_MISSES", "4", "Probes in a row without an answer that make a rail suspect.",
     IFACE_FIELD(heartbeat_misses), UCS_CONFIG_TYPE_UINT},

    {"PROBES", "100",
     "Probes per second of the process, however many peers there are; each is answered by\n"
     "one packet. Those with work in flight and no sign of life first, the others in turn.\n"
     "At least 8 in a HEARTBEAT.",
     IFACE_FIELD(probes), UCS_CONFIG_TYPE_UINT},

    {"STANDBYS", "256",
     "Connections of this process that have a standby before they need it, where UCX uses\n"
     "both rails. Further ones build it when they lose their rail: two queue pairs a peer\n"
     "instead of four. 0: none of them; 1000000: all.",
     IFACE_FIELD(standbys), UCS_CONFIG_TYPE_UINT},

    {"DEAD_PEER", "10s",
     "Silence on all rails for so long ends the endpoint with an error; so does a failover that\n"
     "takes longer (six times as long while the peer answers, or its host's kernel does for a\n"
     "process that is stopped or gets no processor).",
     IFACE_FIELD(dead_peer), UCS_CONFIG_TYPE_TIME},

    {"CONNECT_TIMEOUT", "20s", "A connection whose set-up takes longer ends with an error.",
     IFACE_FIELD(connect_timeout), UCS_CONFIG_TYPE_TIME},

    {"FAILBACK", "never",
     "When work goes back to the rail that UCX chose, after it has recovered: never,\n"
     "auto = when it has been well for 5 s or ten times its cool-down, or after a time\n"
     "without a failure, for example 30s.",
     IFACE_FIELD(failback), TYPE_WORD(failback_words)},

    {"COOLDOWN", "100ms",
     "A rail that failed is left alone for this long before lanes are built on it\n"
     "again; doubled with each further failure and forgotten in calm. It does not hold\n"
     "when the other rail does not work. 0 = off.",
     IFACE_FIELD(cooldown), UCS_CONFIG_TYPE_TIME},

    {"COOLDOWN_MAX", "10s", "Upper bound of the growing cool-down.", IFACE_FIELD(cooldown_max), UCS_CONFIG_TYPE_TIME},

    {"SLOW_RAIL", "20",
     "Leave a rail whose probes are answered this many times slower than usual, and on\n"
     "which work falls behind, while the other rail answers as always. At least 2; off\n"
     "does not look.",
     IFACE_FIELD(slow_rail), TYPE_WORD(slow_words)},

    {"LOSSY_RAIL", "y",
     "Leave a rail that loses probes, and on which work falls behind, while the other rail\n"
     "loses none.",
     IFACE_FIELD(lossy_rail), UCS_CONFIG_TYPE_BOOL},

    {"PROOF", "auto",
     "How this side proves to its peers what was executed on a lane that died: psn, the\n"
     "packet number that the device reports; count, the messages and PUTs received (each\n"
     "PUT then takes a receive here, and a failover needs this process's progress);\n"
     "ledger, a mark that peers write behind each PUT (one PUT of each failover may be in\n"
     "doubt and ends with an error); auto tests the device once and takes psn if that is\n"
     "exact, else count.",
     IFACE_FIELD(proof), UCS_CONFIG_TYPE_ENUM(uct_ha_proof_names)},

    {"ATOMICS", "sw",
     "What executes the atomics on memory of this process: sw, this process itself when\n"
     "it makes progress, exactly once; hw, its card: only 64-bit add and compare-and-swap,\n"
     "never twice either, but one whose result is lost in a failover ends with an error.\n"
     "Give the same to all processes.",
     IFACE_FIELD(atomics), UCS_CONFIG_TYPE_ENUM(uct_ha_atomics_names)},

    {"ZONES", "",
     "Names of what can reach what, for example mlx5_0:railA,10.1.0.0/16:railB. Before\n"
     "the last ':' of an entry stands an RDMA device (or device:port), a net device or a\n"
     "subnet; the first entry that fits a rail counts. Rails of one zone may talk, also\n"
     "across IP subnets (RoCE); rails of different zones never do.",
     IFACE_FIELD(zones), UCS_CONFIG_TYPE_STRING},

    {"ALLOW_UNKNOWN_ZONE", "y",
     "Whether rails may talk of which one or both have no zone, if their network is\n"
     "the same; n: only rails of the same zone.",
     IFACE_FIELD(allow_unknown_zone), UCS_CONFIG_TYPE_BOOL},

    {"PREFER_IB", "y", "Prefer InfiniBand rails to RoCE ones where UCX finds both equally good.",
     IFACE_FIELD(prefer_ib), UCS_CONFIG_TYPE_BOOL},

    {"SPREAD", "n",
     "Divide the peers of a process among rails that UCX finds equally good, by chance;\n"
     "n: the first of them carries them all, the others only large messages and standbys.\n"
     "Give the same to all processes.",
     IFACE_FIELD(spread), UCS_CONFIG_TYPE_BOOL},

    {"CONTROL", "auto",
     "What carries connection set-up, heartbeats and failover messages: ud datagrams\n"
     "on the rails themselves, tcp over another network, or auto: ud, and tcp where a\n"
     "rail has no ud or no rail can send. With tcp alone rails are not probed.",
     IFACE_FIELD(control), UCS_CONFIG_TYPE_ENUM(uct_ha_control_names)},

    {"TCP_INTERFACE", "",
     "Net device whose IPv4 address the tcp carrier listens on; empty: the first that\n"
     "is neither loopback, nor a rail, nor a bridge of this host only (docker0); else a rail.",
     IFACE_FIELD(tcp_interface), UCS_CONFIG_TYPE_STRING},

    {"REQUIRE", "n",
     "Use no rail that has no standby, and refuse peers to which there is none: a job that\n"
     "cannot be protected ends when it starts.",
     IFACE_FIELD(require), UCS_CONFIG_TYPE_BOOL},

    {"STANDBY_WARN", "60s",
     "Endpoints that have been without a standby for so long are said, with the reason;\n"
     "again after twice as long, and so on. 0 = never.",
     IFACE_FIELD(standby_warn), UCS_CONFIG_TYPE_TIME},

    {"STATS_FILE", "",
     "Where this process keeps its counters while it runs, in Prometheus' text format, for\n"
     "node_exporter and ha_stat, for example /run/ucx-ha/%h.%p.prom: %h is the host, %p the\n"
     "process. On a local file system. Removed at the end. Empty: nowhere.",
     IFACE_FIELD(stats_file), UCS_CONFIG_TYPE_STRING},

    {"STATS_INTERVAL", "5s", "How often that file is written.", IFACE_FIELD(stats_interval), UCS_CONFIG_TYPE_TIME},

    {"TRACE", "n", "Log every step of connection set-up and failover, as warnings.", IFACE_FIELD(trace),
     UCS_CONFIG_TYPE_BOOL},

    {.name = NULL}};

static ucs_status_t check_range(const char *name, long value, long min, long max)
{
    if ((value >= min) && (value <= max)) {
        return UCS_OK;
    }
    ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "%s=%ld is out of range, use %ld to %ld", name, value, min,
              max);
    return UCS_ERR_INVALID_PARAM;
}

#define FOREVER 1e9 /* seconds; nanoseconds of more do not fit */

static ucs_status_t check_time(const char *name, double value, double min, double max)
{
    if ((value >= min) && (value <= max)) { /* false for NaN too */
        return UCS_OK;
    }
    ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "%s=%gs is too %s, use %gs to %gs", name, value,
              value > max ? "long" : "short", min, max);
    return UCS_ERR_INVALID_PARAM;
}

static ucs_status_t check_mtu(unsigned mtu)
{
    if ((mtu == 0) || ((mtu >= 256) && (mtu <= 4096) && ((mtu & (mtu - 1)) == 0))) {
        return UCS_OK;
    }
    ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "PATH_MTU=%u is no path MTU, use 256, "
              "512, 1024, 2048, 4096, or 0 for the port's",
              mtu);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t uct_ha_md_config_check(const struct uct_ha_md_config *config)
{
    if ((check_range("GID_INDEX", config->gid_index, -1, 255) != UCS_OK) ||
        (check_range("PKEY_INDEX", config->pkey_index, 0, 65535) != UCS_OK) ||
        (check_range("SL", config->sl, 0, 15) != UCS_OK) ||
        (check_range("TRAFFIC_CLASS", config->traffic_class, 0, 255) != UCS_OK) ||
        (check_range("HOP_LIMIT", config->hop_limit, 1, 255) != UCS_OK) || (check_mtu(config->path_mtu) != UCS_OK)) {
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

/* "inf" is the largest number. */
static long as_long(size_t bytes)
{
    return (long)ucs_min(bytes, (size_t)LONG_MAX);
}

static int queues_are_bad(const struct uct_ha_iface_config *config)
{
    return (check_range("TX_QUEUE_LEN", config->tx_queue_len, 16, 16384) != UCS_OK) ||
           (check_range("TX_NUM_GET_BYTES", as_long(config->get_bytes), 1, LONG_MAX) != UCS_OK) ||
           (check_range("RX_QUEUE_LEN", config->rx_queue_len, 16, 16384) != UCS_OK) ||
           (check_range("RX_QUEUE_INIT", config->rx_queue_init, 4, 16384) != UCS_OK) ||
           (check_range("CTL_QUEUE_LEN", config->ctl_queue_len, 16, 16384) != UCS_OK) ||
           (check_range("SRQ_LEN", config->srq_len, 0, 1l << 20) != UCS_OK) ||
           (check_range("SEG_SIZE", (long)config->seg_size, 1024, 1l << 20) != UCS_OK) ||
           (check_range("INLINE", config->max_inline, 0, 4096) != UCS_OK) ||
           (check_range("MAX_SGE", config->max_sge, 1, 32) != UCS_OK);
}

static int lane_is_bad(const struct uct_ha_iface_config *config)
{
    return (check_range("TIMEOUT", config->timeout, 1, 31) != UCS_OK) ||
           (check_range("RETRY_COUNT", config->retry_count, 0, 7) != UCS_OK) ||
           (check_range("RNR_RETRY_COUNT", config->rnr_retry_count, 0, 7) != UCS_OK) ||
           (check_range("MIN_RNR_TIMER", config->min_rnr_timer, 1, 31) != UCS_OK);
}

static int recovery_is_bad(const struct uct_ha_iface_config *config)
{
    if ((config->failback != UCT_HA_FAILBACK_NEVER) && (config->failback != UCT_HA_FAILBACK_AUTO) &&
        (check_time("FAILBACK", config->failback, 1e-3, FOREVER) != UCS_OK)) {
        return 1;
    }
    if ((config->slow_rail != UCT_HA_SLOW_OFF) && !((config->slow_rail >= 2) && (config->slow_rail <= 1e6))) {
        ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "SLOW_RAIL=%g is out of range, use 2 to 1000000, or off",
                  config->slow_rail);
        return 1;
    }
    return (check_time("COOLDOWN", config->cooldown, 0, FOREVER) != UCS_OK) ||
           (check_time("COOLDOWN_MAX", config->cooldown_max, config->cooldown, FOREVER) != UCS_OK);
}

static int failover_is_bad(const struct uct_ha_iface_config *config)
{
    return (check_time("RTO", config->rto, 1e-3, FOREVER) != UCS_OK) ||
           (check_time("RTO_MAX", config->rto_max, config->rto, FOREVER) != UCS_OK) ||
           ((config->heartbeat != 0) && (check_time("HEARTBEAT", config->heartbeat, 1e-3, FOREVER) != UCS_OK)) ||
           (check_range("HEARTBEAT_MISSES", config->heartbeat_misses, 1, 1000) != UCS_OK) ||
           (check_range("PROBES", config->probes, 1, 1000000) != UCS_OK) || recovery_is_bad(config) ||
           (check_time("DEAD_PEER", config->dead_peer, 0.1, FOREVER) != UCS_OK) ||
           (check_time("CONNECT_TIMEOUT", config->connect_timeout, 0.1, FOREVER) != UCS_OK);
}

static int zones_are_bad(const char *text)
{
    struct ha_zones zones;
    char            error[160];

    if (ha_zones_parse(text, &zones, error, sizeof(error)) == 0) {
        return 0;
    }
    ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "ZONES='%s': %s. Write device:zone, netdev:zone or "
              "subnet/bits:zone, ',' between entries",
              text, error);
    return 1;
}

/* Without %p the processes of a host would write over each other's. */
static int stats_are_bad(const struct uct_ha_iface_config *config)
{
    const char *file = config->stats_file, *percent;
    int         ok   = file[0] == '\0' || (strstr(file, "%p") != NULL && strlen(file) < 400);

    for (percent = strchr(file, '%'); percent != NULL; percent = strchr(percent + 1, '%')) {
        ok &= percent[1] == 'h' || percent[1] == 'p';
    }
    if (!ok) {
        ucs_error("ha_rc [HA-301]: UCX_" UCT_HA_CONFIG_PREFIX "STATS_FILE='%s' cannot be used: it needs %%p (process), "
                  "may have %%h (host), no other %%, and less than 400 characters",
                  file);
        return 1;
    }
    return (check_time("STATS_INTERVAL", config->stats_interval, 0.1, FOREVER) != UCS_OK) ||
           (check_time("STANDBY_WARN", config->standby_warn, 0, FOREVER) != UCS_OK);
}

ucs_status_t uct_ha_iface_config_check(const struct uct_ha_iface_config *config)
{
    if (queues_are_bad(config) || lane_is_bad(config) || failover_is_bad(config) || zones_are_bad(config->zones) ||
        stats_are_bad(config)) {
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

void uct_ha_iface_config_touch(void)
{
    struct uct_ha_iface_config config;

    if (uct_ha_config_fill(&config, uct_ha_iface_config_table, sizeof(config), UCT_HA_CONFIG_PREFIX) == UCS_OK) {
        ucs_config_parser_release_opts(&config, uct_ha_iface_config_table);
    }
}

struct ha_rail_opts uct_ha_rail_opts(const struct uct_ha_md_config *config)
{
    struct ha_rail_opts opts = {.gid_index     = config->gid_index,
                                .pkey_index    = config->pkey_index,
                                .sl            = config->sl,
                                .traffic_class = config->traffic_class,
                                .hop_limit     = config->hop_limit,
                                .mtu           = config->path_mtu};

    return opts;
}
