/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_RAIL_PRIV_H_
#define HA_RAIL_PRIV_H_

/* Inside of a rail, for the files of this folder only. */

#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>

#include "ha_device.h"
#include "ha_rail.h"

struct ha_rail {
    struct ha_rail       *next; /* process-wide list */
    int                   refs;
    char                  name[HA_RAIL_NAME_MAX];
    struct ha_device      device;
    uint8_t               port;
    struct ha_rail_opts   opts;
    struct ha_rail_limits limits;

    pthread_mutex_t     lock; /* guards addr, gid_index, netdev */
    struct ha_rail_addr addr;
    int                 gid_index;
    char                netdev[HA_NETDEV_MAX];
    int                 grh_required; /* the port's wish, also on InfiniBand */
    int                 up;           /* written under lock, read without */
    int                 gone;         /* the same: a fatal event, for good */
};

/* Does a packet to there need a global header? RoCE always, InfiniBand between subnets, or where the port asks for it:
 * a virtual function has no local address that leads to it alone. */
static inline int ha_needs_grh(const struct ha_rail_addr *own, int required, const struct ha_rail_addr *remote)
{
    return own->link_layer == HA_LINK_ETHERNET || required || memcmp(own->gid, remote->gid, 8) != 0;
}

/* Fill an address vector towards `remote` from this rail. */
void ha_rail_fill_ah(struct ha_rail *rail, const struct ha_rail_addr *remote, struct ibv_ah_attr *attr);

/* Mark the queue pair's INIT attributes common to RC and UD. */
void ha_rail_fill_init(const struct ha_rail *rail, struct ibv_qp_attr *attr);

enum ibv_mtu ha_mtu_to_verbs(unsigned bytes);

/* What ha_rc_create() was told of this queue pair of the device; NULL for others. */
const void *ha_rc_owner(const struct ibv_qp *qp);

#endif
