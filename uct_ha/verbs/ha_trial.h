/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TRIAL_H_
#define HA_TRIAL_H_

/*
 * Can a port carry reliable connections that are made by verbs alone? iWARP needs a connection manager, EFA and usNIC
 * have datagrams only; what says nothing of that is tried with a queue pair, connected to itself if the port works.
 */

#include <infiniband/verbs.h>

/* `itself`: how the port is reached from itself, NULL: it is down. Returns 0; -EPROTONOSUPPORT: its transport has none;
 * -EOPNOTSUPP: the device says that it cannot. A lack of memory or places says nothing about that, and a trial that
 * fails in another way is left to the connections to come. */
int ha_trial(struct ibv_pd *pd, uint8_t port, uint16_t pkey_index, const struct ibv_ah_attr *itself);

#endif
