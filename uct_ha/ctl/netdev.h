/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_NETDEV_H_
#define UCT_HA_NETDEV_H_

#include "verbs/ha_rail.h"

#include <netinet/in.h>

/* Does this net device lead no further than this host? So do bridges without a card
 * among their ports (docker0, virbr0), tunnels of a program, ends of a container's
 * cable. `sysfs`: /sys/class/net, or a test's copy. */
int uct_ha_netdev_is_internal(const char *sysfs, const char *name);

/* The IPv4 address of the net device `wanted`, or, when that is empty, of the best one: neither
 * loopback nor one of the rails, if there is such. 0 or a negative errno value. */
int uct_ha_netdev_choose(const char *wanted, const struct ha_rail_addr *rails, unsigned num, struct sockaddr_in *best);

#endif
