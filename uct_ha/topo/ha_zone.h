/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_ZONE_H_
#define HA_ZONE_H_

/*
 * Zones: the user's names for what can reach what (a fabric, a rail of a
 * rail-optimised network). UCX_HA_RC_ZONES="mlx5_0:railA,10.1.0.0/16:railB"
 * gives each rail at most one. Pure; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#define HA_ZONE_ENTRIES_MAX 32
#define HA_ZONE_NAME_MAX    32 /* of a zone, a device or a net device, end included */

/* A zone travels as the hash of its name, in 24 bits; 0 = no zone, or not known. */
typedef uint32_t ha_zone_t;

struct ha_zone_entry {
    char     key[HA_ZONE_NAME_MAX]; /* device, device:port or net device; "" = subnet */
    uint8_t  subnet[16];            /* IPv4 as ::ffff:a.b.c.d */
    unsigned prefix_len;            /* of 128 bits */
    char     name[HA_ZONE_NAME_MAX];
};

/* Parsed once, then constant. Zeroed = no zones. */
struct ha_zones {
    unsigned             num;
    struct ha_zone_entry entry[HA_ZONE_ENTRIES_MAX];
};

/* Parse entries KEY:ZONE separated by ','. KEY is an RDMA device ("mlx5_0", all its
 * ports, or "mlx5_0:1"), a net device ("ens1f0") or a subnet ("10.1.0.0/16",
 * "fd00:1::/64"). NULL or blank: no zones. Returns 0, or -EINVAL with a sentence in
 * `error` that names the bad entry; *zones is undefined then. */
int ha_zones_parse(const char *text, struct ha_zones *zones, char *error, size_t error_size);

/* The name of a rail's zone, by the first entry that fits, or NULL. `rail` is
 * "device:port", `netdev` may be "", `gid` is matched against subnets unless zero.
 * Valid as long as *zones. */
const char *ha_zone_name(const struct ha_zones *zones, const char *rail, const char *netdev, const uint8_t gid[16]);

/* 32-bit FNV-1a of the name, its upper 8 bits folded into the others; never 0; 0 for NULL. */
ha_zone_t ha_zone_hash(const char *name);

#endif
