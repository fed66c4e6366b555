/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ADDR_CM_H_
#define UCT_HA_ADDR_CM_H_

/*
 * What stands for a device address where rdmacm connects client and server: UCX's own description
 * of the peer's device (uct_ib_address_t), made on this host of what rdmacm knows of the connection.
 * It never travels, so that its numbers are in this host's order. Its first byte says which fields
 * follow; the bits "GID index" and "path MTU" are set in every one that UCX's rdmacm makes (1.13 to
 * 1.23), and never both in a version of our own addresses.
 */

#include "uct/addr.h"

int uct_ha_addr_is_cm(const void *dev_addr);

/* 0, or -EPROTO. What rdmacm does not say is as on `own`, the rail that it has come by: rdmacm has just shown that
 * the two reach each other, and that is what networks, zones and partitions are compared for. */
int uct_ha_addr_unpack_cm(const void *dev_addr, const struct uct_ha_rail_where *own, struct uct_ha_rail_where *where);

/* Either kind of device address: only the primary rail is known of rdmacm's. */
int uct_ha_addr_read_dev(const void *dev_addr, const struct uct_ha_rail_where *own, struct uct_ha_dev_where *where);

#endif
