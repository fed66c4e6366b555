/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_RKEY_H_
#define UCT_HA_RKEY_H_

/*
 * Remote keys. Packed, on the wire: one 32-bit key per rail, big endian, own
 * rail of the exporting domain first; 0 = not registered on the standby.
 * Unpacked it is held by the uct_rkey_t itself, no allocation: rail 0 in the
 * low half, rail 1 in the high half. Index = the EXPORTER's rail index.
 */

#include "abi/uct_ha_abi.h"
#include "mem/duo.h"

#include <string.h>

struct uct_ha_packed_rkey {
    uint8_t key[UCT_HA_RAILS][4];
};

static inline uct_rkey_t uct_ha_rkey_make(uint32_t rail0, uint32_t rail1)
{
    return (uct_rkey_t)rail0 | ((uct_rkey_t)rail1 << 32);
}

static inline uint32_t uct_ha_rkey(uct_rkey_t rkey, unsigned rail)
{
    return (uint32_t)(rkey >> (rail * 32));
}

/* The same of one in memory, which costs no shift. */
static inline uint32_t uct_ha_rkey_at(const uct_rkey_t *rkey, unsigned rail)
{
    unsigned half = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? rail : 1 - rail;
    uint32_t key;

    memcpy(&key, (const uint8_t *)rkey + half * sizeof(key), sizeof(key));
    return key;
}

_Static_assert(sizeof(uct_rkey_t) == 8, "two 32-bit keys must fit in uct_rkey_t");

#endif
