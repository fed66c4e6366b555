/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_ADDR_H_
#define HA_ADDR_H_

/* The address of a rail. */

#include <stdint.h>

#define HA_NETDEV_MAX 16 /* name of a net device, as the kernel limits it */

enum ha_link_layer { HA_LINK_NONE, HA_LINK_IB, HA_LINK_ETHERNET };

/* Of a partition key: which partition, and whether this port may talk to all its members (else
 * only to those that may). */
#define HA_PKEY_PARTITION 0x7fffu
#define HA_PKEY_FULL      0x8000u

/* What a peer must know to send to this rail; 24 bytes on the wire. */
struct ha_rail_addr {
    uint8_t  gid[16];    /* zero on InfiniBand without global routing */
    uint16_t lid;        /* InfiniBand only */
    uint8_t  link_layer; /* enum ha_link_layer */
    uint8_t  prefix_len; /* of the GID's IPv4/IPv6 network, 0 = unknown (link-local) */
    uint16_t mtu;        /* active path MTU in bytes */
    uint16_t pkey;       /* partition key at the chosen index, 0 = unknown */
};

#endif
