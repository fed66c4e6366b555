/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_FACTS_H_
#define HA_FACTS_H_

/* What a person wants to know of a rail, and the transport does not need. */

#include "ha_rail.h"

enum ha_gid_kind { HA_GID_NONE, HA_GID_IB, HA_GID_ROCE_V1, HA_GID_LINK_LOCAL, HA_GID_IPV6, HA_GID_IPV4 };

struct ha_rail_facts {
    char             state[24]; /* "ACTIVE", "DOWN"... of the port */
    int              active;
    int              gid_index; /* -1: no usable GID */
    enum ha_gid_kind gid_kind;  /* the last four are RoCE v2 but for v1 */
    unsigned         max_mtu;   /* bytes; the active one is in ha_rail_addr() */
    char             firmware[64];
    int              vendor_id, vendor_part_id;
    int              max_cq, max_mr, max_srq, max_srq_wr;
    int              apm_capable; /* automatic path migration could be armed */
    int              apm_armed;   /* ... and is, on a fresh queue pair; -1: could not look */
    int              mlx5;        /* retries by its own rule, not the nominal one */
};

/* Ask the device. 0 or a negative errno value. May take milliseconds: it makes a
 * queue pair and destroys it again. */
int ha_rail_facts(struct ha_rail *rail, struct ha_rail_facts *facts);

const char *ha_gid_kind_name(enum ha_gid_kind kind); /* "RoCE v2 IPv4"... constant */

#endif
