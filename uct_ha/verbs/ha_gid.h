/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_GID_H_
#define HA_GID_H_

/* Which of a port's GIDs to use, and the network it belongs to. */

#include <infiniband/verbs.h>

#include "ha_addr.h"

/* Choose among the port's GID table: RoCE v2 with IPv4 before IPv6 global
 * before IPv6 link-local before RoCE v1; InfiniBand takes index 0. `wanted`
 * >= 0 forces an index. `present`: the GID in use, or NULL; among equally good
 * ones it stays, and a forced one is followed when the table was filled anew and
 * its index has moved. Fills gid and prefix_len of `addr`, and the net device that
 * carries the GID ("" = none); returns the index or -EADDRNOTAVAIL. */
int ha_gid_choose(struct ibv_context *ctx, uint8_t port, int link_layer, int wanted, const uint8_t *present,
                  struct ha_rail_addr *addr, char netdev[HA_NETDEV_MAX]);

/* Is this GID in the port's table? */
int ha_gid_exists(struct ibv_context *ctx, uint8_t port, const uint8_t *gid);

#endif
