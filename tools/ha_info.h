/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_INFO_H_
#define HA_INFO_H_

/* ha_info: what the transport sees of this host, and what is wrong with it. Gathering,
 * judging and printing are apart, so that the judgement can be tested by itself. */

#include <stdio.h>

#include "topo/ha_budget.h"
#include "topo/ha_topo_pair.h"
#include "topo/ha_zone.h"
#include "uct_ha_selftest.h"
#include "verbs/ha_facts.h"

/* One rail. `error` != 0: it could not be opened, nothing below it is valid. */
struct info_rail {
    int                     error; /* negative errno value */
    struct ha_rail_addr     addr;
    struct ha_rail_limits   limits;
    struct ha_rail_facts    facts;
    char                    netdev[HA_NETDEV_MAX];
    char                    zone[HA_ZONE_NAME_MAX]; /* "" = none */
    struct ha_budget_device device;
    struct ha_budget        budget;
    uint64_t                seed_budget;
    uint64_t                window_ns; /* the hardware retries so long, HA_WINDOW_FOREVER */
    struct uct_ha_selftest_result selftest; /* of its packet numbers */
    const char             *proof;     /* kind that an interface on it would give now */
};

/* The knobs that are judged, as the transport would see them. */
struct info_config {
    int         backup, allow_unknown_zone, gid_index;
    unsigned    timeout, retry_count, rnr_retry_count, heartbeat_misses;
    double      rto, rto_max, heartbeat; /* seconds */
    uint64_t    tx_queue_len, rx_queue_len, rx_queue_init, seg_size;
    const char *proof, *control;
    char        rails[256], zones_text[256];
};

struct info {
    int                   num;
    struct ha_topo_rail   topo[HA_RAILS_MAX];
    struct ha_topo_choice choice[HA_RAILS_MAX];
    struct info_rail      rail[HA_RAILS_MAX];
    struct info_config    config;
    struct ha_zones       zones;
    uint64_t              memlock; /* bytes, HA_BUDGET_UNLIMITED */
};

/* Fill *info from the devices and UCX_HA_RC_*. Returns 0, or a negative errno value
 * after telling stderr. No device at all is no error. */
int info_gather(struct info *info);

/* Derive budgets and windows of a rail from what was gathered. */
void info_derive(struct info *info, int rail);

enum info_level { INFO_NOTE, INFO_WARNING, INFO_PROBLEM };

struct info_finding {
    enum info_level level;       /* notes do not make the host unhealthy */
    const char     *id;          /* for scripts: "shared-fate" */
    char            subject[40]; /* a rail, or "host" */
    char            text[240];   /* what is the matter */
    char            remedy[240]; /* what to do about it */
};

#define INFO_FINDINGS_MAX 256

/* Everything that is wrong with the host: pure. Returns how many (at most max). */
int info_check(const struct info *info, struct info_finding *findings, int max);

/* Whether any finding is more than a note. */
int info_is_unhealthy(const struct info_finding *findings, int num);

void info_print_rails(const struct info *info, FILE *out);
void info_print_pairs(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices,
                      int num, FILE *out);
void info_print_findings(const struct info_finding *findings, int num, FILE *out);
void info_print_json(const struct info *info, const struct info_finding *findings, int num, FILE *out);
void info_print_matrix(const struct info *info, FILE *out);

/* Does a matrix of near rails fit this host? Prints it, and what is wrong. Returns 0, 1
 * when something is, or -1 when it cannot be read, after telling stderr. */
int info_import_matrix(const struct info *info, const char *path, FILE *out);

/* "10.77.1.1", "fe80::1"; buf of INET6_ADDRSTRLEN. Returns buf. */
const char *info_gid_text(const uint8_t gid[16], char *buf);

#endif
