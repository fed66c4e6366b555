/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Addresses as UCX hands them over from a peer: two rails and an interface,
 * packed. What is accepted packs to the same bytes again, and matching is a
 * matter of both sides.
 */

#include "fuzz.h"

#include "uct/addr.h"

#include <string.h>

const char     fuzz_name[] = "addr";
const unsigned fuzz_runs   = 20000;

static int unpack(const uint8_t *data, struct uct_ha_rail_where *where)
{
    struct uct_ha_packed_rail packed, again;

    memcpy(&packed, data, sizeof(packed));
    if (uct_ha_addr_unpack_rail(&packed, where) != 0) {
        return -1;
    }
    uct_ha_addr_pack_rail(where, &again);
    fuzz_expect(memcmp(&packed, &again, sizeof(packed)) == 0, "a rail packs to other bytes");
    fuzz_expect(where->addr.mtu == 0 || (where->addr.mtu >= 256 && where->addr.mtu <= 4096 &&
                                         (where->addr.mtu & (where->addr.mtu - 1)) == 0),
                "a path MTU is accepted that no device has");
    fuzz_expect(where->place <= 1 || where->place == UCT_HA_PLACE_ALONE, "a place that is none");
    return 0;
}

static void unpack_iface(const uint8_t *data)
{
    struct uct_ha_packed_iface packed, again;
    struct uct_ha_iface_where  where;

    memcpy(&packed, data, sizeof(packed));
    if (uct_ha_addr_unpack_iface(&packed, &where) != 0) {
        return;
    }
    uct_ha_addr_pack_iface(&where, &again);
    fuzz_expect(memcmp(&packed, &again, sizeof(packed)) == 0, "an interface packs to other bytes");
    fuzz_expect(where.slots >= 1 && where.slots <= HA_SLOTS, "an interface without rails");
    fuzz_expect(where.credits != 0, "an interface that can take no message");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t             rail = sizeof(struct uct_ha_packed_rail);
    struct uct_ha_rail_where a, b;

    if (size < 2 * rail + sizeof(struct uct_ha_packed_iface)) {
        return 0;
    }
    unpack_iface(data + 2 * rail);
    if (unpack(data, &a) != 0 || unpack(data + rail, &b) != 0) {
        return 0;
    }
    for (int allow = 0; allow <= 1; allow++) {
        struct ha_match_opts opts = {.allow_unknown_zone = allow};

        fuzz_expect(uct_ha_where_match(&a, &b, &opts) == uct_ha_where_match(&b, &a, &opts),
                    "one side can talk to the other, but not the other way round");
        fuzz_expect(uct_ha_where_match(&a, &a, &opts) || (!allow && a.zone == 0) ||
                        (a.addr.pkey != 0 && (a.addr.pkey & HA_PKEY_FULL) == 0),
                    "a rail cannot talk to one like it");
        fuzz_expect(a.zone == 0 || b.zone == 0 || a.zone == b.zone || !uct_ha_where_match(&a, &b, &opts),
                    "rails of different zones match");
    }
    return 0;
}
