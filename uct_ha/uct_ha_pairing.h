/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PAIRING_H_
#define UCT_HA_PAIRING_H_

/*
 * Which rail is whose standby. Pure functions over a small description of the
 * rails of this host: no device is touched, nothing is logged.
 */

#include "verbs/ha_rail.h"

#include <stddef.h>
#include <stdint.h>

struct uct_ha_pair_rail {
    char               name[HA_RAIL_NAME_MAX]; /* "device:port" */
    enum ha_link_layer link_layer;             /* HA_LINK_NONE: cannot be a standby */
    int                numa_node;              /* -1 = unknown */
    uint64_t           node_guid;              /* 0 = unknown */
};

#define UCT_HA_PAIR_NONE   (-1) /* no rail can back this one */
#define UCT_HA_PAIR_UNUSED (-2) /* the user left this rail out */

/*
 * Fill standby[0..num-1] with the index of each rail's standby or one of the
 * values above. `groups` is the user's UCX_HA_RC_RAILS: members of a group
 * ("a:1+b:1,c:1+d:1") back each other, the next member is the standby.
 * Without groups (NULL or empty): a different card is better than a different
 * port, then the same NUMA node is better than another one (unknown counts as
 * equal); the link layer has to be the same; ties go round robin.
 *
 * Returns 0, or -EINVAL with a sentence in `error` that names the bad value.
 */
int uct_ha_pair_choose(const struct uct_ha_pair_rail *rails, int num,
                       const char *groups, int *standby, char *error,
                       size_t error_size);

/* Whether the groups say everything, so that only names have to be known. */
int uct_ha_pair_groups_given(const char *groups);

#endif
