/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_ADDR_H_
#define UCT_HA_ADDR_H_

/*
 * The addresses that UCX carries for us. UCX's own packing limits them to 31
 * (device) and 63 (interface) bytes. The device address describes the primary
 * rail, the interface address the instance and its standby rail, so that
 * set-up and failover never hang on one rail. Layouts: docs/wire.md.
 */

#include <stdint.h>

#include "core/ha_seal.h"
#include "pair/where.h"

#define UCT_HA_ADDR_VERSION 5

struct uct_ha_packed_rail { /* 30 bytes */
    uint8_t version;
    uint8_t link_layer;
    uint8_t prefix_len;
    uint8_t place;
    uint8_t mtu[2]; /* big endian; 0 = no such rail or no address yet */
    uint8_t lid[2];
    uint8_t gid[16];
    uint8_t zone[4]; /* hash of its name, 0 = none */
    uint8_t pkey[2]; /* 0 = unknown */
};

struct uct_ha_packed_iface { /* 63 bytes */
    uint8_t                   version;
    uint8_t                   slots;
    struct ha_secret          secret;
    uint8_t                   ud_qpn[HA_SLOTS][3];
    uint8_t                   credits[2];  /* messages it can take before it must grant more */
    uint8_t                   caps;        /* HA_CAP_* (core/ha_packet.h); unknown bits are ignored */
    uint8_t                   tcp_ip[4];   /* of the TCP carrier */
    uint8_t                   tcp_port[2]; /* 0 = none */
    struct uct_ha_packed_rail standby;
};

_Static_assert(sizeof(struct uct_ha_packed_rail) <= 31, "UCX limits device addresses to 31 bytes");
_Static_assert(sizeof(struct uct_ha_packed_iface) <= 63, "UCX limits interface addresses to 63 bytes");

struct uct_ha_iface_where {
    struct ha_secret         secret;
    uint64_t                 cookie; /* follows from it */
    unsigned                 slots;
    uint32_t                 ud_qpn[HA_SLOTS];
    unsigned                 credits;
    unsigned                 caps;
    struct uct_ha_tcp_addr   tcp;
    struct uct_ha_rail_where standby;
};

void uct_ha_addr_pack_rail(const struct uct_ha_rail_where *where, struct uct_ha_packed_rail *packed);
void uct_ha_addr_pack_iface(const struct uct_ha_iface_where *where, struct uct_ha_packed_iface *packed);

/* 0, or -EPROTO when the version or a field is not ours. */
int uct_ha_addr_unpack_rail(const struct uct_ha_packed_rail *packed, struct uct_ha_rail_where *where);
int uct_ha_addr_unpack_iface(const struct uct_ha_packed_iface *packed, struct uct_ha_iface_where *where);

#endif
