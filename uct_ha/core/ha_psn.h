/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PSN_H_
#define HA_PSN_H_

/*
 * Packet sequence numbers of one RC lane and direction: HA_PSN_BITS wide,
 * wrapping. Distances are taken forward from the oldest number that may still
 * be outstanding, never signed, so the wrap needs no case of its own. The
 * explorer builds with 3 or 4 bits to force wraps; the product uses 24.
 */

#include <stdint.h>

#ifndef HA_PSN_BITS
#define HA_PSN_BITS 24
#endif

#define HA_PSN_MASK   ((1u << HA_PSN_BITS) - 1)
#define HA_PSN_WINDOW (1u << (HA_PSN_BITS - 1)) /* packets outstanding < this */

static inline uint32_t ha_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & HA_PSN_MASK;
}

/* Packets from `from` forward to `to`. */
static inline uint32_t ha_psn_distance(uint32_t from, uint32_t to)
{
    return (to - from) & HA_PSN_MASK;
}

/* Packets that an operation of `length` bytes takes at a path MTU of `mtu`
 * bytes: SEND and WRITE in requests, READ in responses; an atomic is 1
 * (length 0..8). InfiniBand specification: max(1, ceil(length / mtu)). */
static inline uint32_t ha_psn_count(uint64_t length, uint32_t mtu)
{
    return length <= mtu ? 1 : (uint32_t)((length + mtu - 1) / mtu); /* mostly one, without a division */
}

#endif
