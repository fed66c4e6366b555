/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_NETDEV_H_
#define UCT_HA_NETDEV_H_

/* Does this net device lead no further than this host? So do bridges without a card
 * among their ports (docker0, virbr0), tunnels of a program, ends of a container's
 * cable. `sysfs`: /sys/class/net, or a test's copy. */
int uct_ha_netdev_is_internal(const char *sysfs, const char *name);

#endif
