/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TOPO_PAIR_H_
#define HA_TOPO_PAIR_H_

/*
 * Which rail is whose standby, and why. Pure, as ha_topo.h.
 *
 * By topology, in this order of weight: the same link layer (required), a port
 * that is ACTIVE or was since the host booted, another card, nearer by enum
 * ha_topo_near, more PCI bridges in common, of the ports of one card an ACTIVE one,
 * backing fewer others so far, and then the next one behind the rail
 * itself, so that equals are taken in turn. Hosts of the same make come to the
 * same pairs. `num` is at most HA_RAILS_MAX everywhere.
 */

#include "ha_topo.h"

#define HA_TOPO_NONE   (-1) /* no rail can back this one */
#define HA_TOPO_UNUSED (-2) /* the user left this rail out */

struct ha_topo_choice {
    int               standby;     /* index of a rail, or one of the above */
    enum ha_topo_near near;        /* of the two; valid with a standby */
    int               shared_fate; /* one card carries both */
    int               by_user;     /* the groups said so */
    unsigned          equals;      /* candidates just as good, the chosen one included */
};

/* Choose for all of rails[0..num-1] by topology. */
void ha_topo_pair(const struct ha_topo_rail *rails, int num, struct ha_topo_choice *choices);

/*
 * Choose as the user's groups say: "a:1+b:1,c:1+d:1". Members of a group back
 * each other, the next member is the standby, the last one's is the first; a
 * group of one has none. "a" means "a:1". Rails outside of all groups become
 * HA_TOPO_UNUSED. Returns 0, or -EINVAL with a sentence in `error` that names
 * the bad value; choices are undefined then.
 */
int ha_topo_pair_groups(const struct ha_topo_rail *rails, int num, const char *groups, struct ha_topo_choice *choices,
                        char *error, size_t error_size);

/* Whether the user gave groups: not NULL and not blank. */
int ha_topo_groups_given(const char *groups);

/* The reason for rail i's standby as a phrase: "other card, same NUMA node 0, 3
 * equals taken in turn". Returns buf. */
const char *ha_topo_reason(const struct ha_topo_rail *rails, const struct ha_topo_choice *choices, int i, char *buf,
                           size_t size);

#endif
