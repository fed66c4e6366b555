/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CONFIG_H_
#define UCT_HA_CONFIG_H_

/*
 * Every knob of the transport: UCX_HA_RC_<name>, in UCX's own configuration
 * system. What a rail needs when it is opened belongs to the memory domain's
 * table, everything else to the interface's. Times are in seconds.
 */

#include "abi/uct_ha_abi.h"
#include "verbs/ha_rail.h"

#define UCT_HA_CONFIG_PREFIX "HA_RC_"

struct uct_ha_md_config {
    uct_md_config_t super;
    char           *rails;     /* RAILS: pairing groups, "" = by topology */
    int             gid_index; /* GID_INDEX: -1 = choose */
    unsigned        pkey_index;
    unsigned        sl;
    unsigned        traffic_class;
    unsigned        hop_limit;
    unsigned        path_mtu;      /* bytes, 0 = the port's */
    int             enable_backup; /* n: no standby, plain single rail */

    ucs_ternary_auto_value_t rcache_mode; /* RCACHE */
    uct_ha_rcache_config_t   rcache;      /* RCACHE_* */
};

/* Besides times in seconds. */
#define UCT_HA_FAILBACK_NEVER 0.0
#define UCT_HA_FAILBACK_AUTO  (-1.0)
#define UCT_HA_SLOW_OFF       0.0
#define UCT_HA_RTO_DEFAULT    1.0 /* fitted to the window without a word */

enum uct_ha_control {
    UCT_HA_CONTROL_AUTO, /* UD; TCP for rails without it and when UD cannot send */
    UCT_HA_CONTROL_UD,
    UCT_HA_CONTROL_TCP,
    UCT_HA_CONTROL_LAST
};

enum uct_ha_atomics_mode {
    UCT_HA_ATOMICS_SW, /* exact, through messages */
    UCT_HA_ATOMICS_HW, /* by the card; a lost result is an error */
    UCT_HA_ATOMICS_LAST
};

enum uct_ha_proof_mode {
    UCT_HA_PROOF_AUTO, /* packet numbers where the device reports them, else count */
    UCT_HA_PROOF_PSN,
    UCT_HA_PROOF_COUNT,
    UCT_HA_PROOF_LEDGER,
    UCT_HA_PROOF_MODE_LAST
};

struct uct_ha_iface_config {
    uct_iface_config_t super;

    /* queues and messages */
    unsigned tx_queue_len;
    unsigned rx_queue_len;
    unsigned rx_queue_init;
    unsigned srq_len;
    size_t   rx_mem;
    size_t   get_bytes;
    unsigned ctl_queue_len;
    size_t   seg_size;
    unsigned max_inline;
    unsigned max_sge;

    /* hardware retransmission of a lane */
    unsigned timeout; /* local ACK timeout exponent: 4.096 us * 2^timeout */
    unsigned retry_count;
    unsigned rnr_retry_count;
    unsigned min_rnr_timer; /* index into the verbs table, never 0 */

    /* failover (ENABLE_BACKUP=n: the domain's rail[1] is NULL) */
    double   rto;
    double   rto_max;
    double   heartbeat; /* 0 = off */
    unsigned heartbeat_misses;
    unsigned probes;
    unsigned standbys;  /* connections, where UCX uses both rails */
    double   dead_peer; /* a failover that takes longer ends the endpoint */
    double   connect_timeout;
    double   failback; /* or UCT_HA_FAILBACK_* */
    double   cooldown; /* after the first failure of a rail, 0 = none */
    double   cooldown_max;
    int      lossy_rail;
    double   slow_rail; /* factor, or UCT_HA_SLOW_OFF */
    int      trace;
    unsigned proof;   /* enum uct_ha_proof_mode */
    unsigned atomics; /* enum uct_ha_atomics_mode: on memory of this side */

    /* control plane */
    char *zones; /* ZONES: see topo/ha_zone.h; UCX's, valid while opening */
    int   allow_unknown_zone;
    int   prefer_ib;
    int   spread;

    unsigned control;       /* enum uct_ha_control */
    char    *tcp_interface; /* net device of the TCP carrier, "" = choose */

    /* what is said and counted */
    int    require;      /* no standby, no transport */
    double standby_warn; /* 0 = never */
    char  *stats_file;   /* "" = none; %h host, %p process */
    double stats_interval;
};

extern ucs_config_field_t uct_ha_md_config_table[];
extern ucs_config_field_t uct_ha_iface_config_table[];

/* Check ranges that the parser cannot know. Logs one error that names variable,
 * value and range, and returns UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_ha_md_config_check(const struct uct_ha_md_config *config);
ucs_status_t uct_ha_iface_config_check(const struct uct_ha_iface_config *config);

/* Read the interface's knobs and forget them again: else UCX warns of unused
 * variables on a host where no interface is opened. */
void uct_ha_iface_config_touch(void);

struct ha_rail_opts uct_ha_rail_opts(const struct uct_ha_md_config *config);

#endif
