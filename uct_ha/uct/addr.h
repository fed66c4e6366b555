/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ADDR_H_
#define UCT_HA_ADDR_H_

/*
 * The addresses that UCX carries for us. The device address says where our rails are, the
 * interface address which instance this is. Where rdmacm connects client and server, only the
 * interface address travels, in what rdmacm has room for, and UCX gives rdmacm's own description
 * of the peer's device for the other one (addr_cm.h): what is missing then, the first control
 * packet brings. Layouts: docs/wire.md.
 */

#include <stdint.h>

#include "core/ha_seal.h"
#include "pair/where.h"

#define UCT_HA_ADDR_VERSION 6
#define UCT_HA_DEV_LEN      31
#define UCT_HA_IFACE_LEN    21

/* "The primary rail": the one of the UCX device. */
struct uct_ha_packed_dev { /* 31 bytes */
    uint8_t version;
    uint8_t shape;       /* form of `gid`, place, mtu */
    uint8_t zone[3];     /* hash of its name, 0 = none */
    uint8_t pkey[2];     /* 0 = unknown */
    uint8_t tcp_ip[4];   /* of the TCP carrier */
    uint8_t tcp_port[2]; /* 0 = none */
    union {
        struct { /* InfiniBand */
            uint8_t gid[16];
            uint8_t lid[2];
        } ib;
        struct { /* RoCE */
            uint8_t gid[16];
            uint8_t prefix_len; /* of the GID's network, 0 = unknown (link-local) */
            uint8_t reserved;
        } eth;
        struct { /* RoCE by IPv4, or without an address yet: there is room for the standby rail */
            uint8_t ip[4];
            uint8_t net; /* bits of the network + 1, 0 = unknown */
            uint8_t standby_ip[4];
            uint8_t standby_net; /* the same + 34 * code of its mtu */
            uint8_t standby_zone[3];
            uint8_t standby_pkey[2];
            uint8_t standby_qpn[3];
        } ipv4;
    } at;
};

struct uct_ha_packed_iface { /* 21 bytes */
    uint8_t          head;   /* version modulo 8, slots - 1 (1 bit), log2 of the credits (4 bits) */
    uint8_t          caps;   /* HA_CAP_* (core/ha_packet.h); unknown bits are ignored */
    struct ha_secret secret;
    uint8_t          ud_qpn[3]; /* of the primary rail */
};

_Static_assert(sizeof(struct uct_ha_packed_dev) == UCT_HA_DEV_LEN, "UCX limits device addresses to 31 bytes");
/* 56 bytes of private data, less 2 of UCX's rdmacm, 11 of UCP's service data, 22 of its address around ours */
_Static_assert(sizeof(struct uct_ha_packed_iface) == UCT_HA_IFACE_LEN && UCT_HA_IFACE_LEN <= 56 - 2 - 11 - 22,
               "rdmacm has no room for a longer interface address");
_Static_assert((UCT_HA_ADDR_VERSION & 3) != 3, "such versions look like an address of rdmacm: addr_cm.h");

struct uct_ha_dev_where {
    struct uct_ha_rail_where primary;
    struct uct_ha_rail_where standby; /* mtu 0: not known */
    uint32_t                 standby_qpn;
    struct uct_ha_tcp_addr   tcp;
};

struct uct_ha_iface_where {
    struct ha_secret secret;
    uint64_t         cookie; /* follows from it */
    unsigned         slots;
    unsigned         credits; /* messages it can take before it must grant more: a power of two, at most 16384 */
    unsigned         caps;
    uint32_t         ud_qpn; /* of the primary rail */
};

void uct_ha_addr_pack_dev(const struct uct_ha_dev_where *where, struct uct_ha_packed_dev *packed);
void uct_ha_addr_pack_iface(const struct uct_ha_iface_where *where, struct uct_ha_packed_iface *packed);

/* 0, or -EPROTO when the version or a field is not ours. Behind the version nothing is read when that is another
 * one: the address may be shorter. */
int uct_ha_addr_unpack_dev(const struct uct_ha_packed_dev *packed, struct uct_ha_dev_where *where);
int uct_ha_addr_unpack_iface(const struct uct_ha_packed_iface *packed, struct uct_ha_iface_where *where);

#endif
