/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Addresses as UCX hands them over from a peer: two devices and an interface, packed, and
 * the device as rdmacm describes it. What is accepted packs to the same bytes again, and
 * matching is a matter of both sides.
 */

#include "fuzz.h"

#include "uct/addr_cm.h"

#include <stdlib.h>
#include <string.h>

const char     fuzz_name[] = "addr";
const unsigned fuzz_runs   = 20000;

static void expect_rail(const struct uct_ha_rail_where *where)
{
    fuzz_expect(where->addr.mtu == 0 || (where->addr.mtu >= 256 && where->addr.mtu <= 4096 &&
                                         (where->addr.mtu & (where->addr.mtu - 1)) == 0),
                "a path MTU is accepted that no device has");
    fuzz_expect(where->place <= 1 || where->place == UCT_HA_PLACE_ALONE, "a place that is none");
    fuzz_expect(where->addr.prefix_len <= 128, "a network of too many bits");
}

/* As long as UCX makes one whose first byte is this: a sanitizer sees what is read behind it. */
static size_t cm_length(uint8_t flags)
{
    if (flags & 0x08) {
        return 1 + 16 + 2;
    }
    return 1 + 2 + (flags & 0x40 ? 8u : 0u) + (flags & 0x10 ? 2u : flags & 0x20 ? 8u : 0u) + 2;
}

static void read_cm(const uint8_t *data, const struct uct_ha_rail_where *own)
{
    struct uct_ha_dev_where where;
    uint8_t                *cm;

    if (!uct_ha_addr_is_cm(data) || (cm = malloc(cm_length(*data))) == NULL) {
        return;
    }
    memcpy(cm, data, cm_length(*data));
    if (uct_ha_addr_read_dev(cm, own, &where) == 0) {
        expect_rail(&where.primary);
        fuzz_expect(where.primary.addr.mtu != 0, "rdmacm leads to a rail without an address");
        fuzz_expect(where.primary.addr.link_layer != HA_LINK_NONE, "rdmacm leads to no link layer");
    }
    free(cm);
}

static int unpack(const uint8_t *data, struct uct_ha_dev_where *where)
{
    struct uct_ha_packed_dev packed, again;

    memcpy(&packed, data, sizeof(packed));
    if (uct_ha_addr_unpack_dev(&packed, where) != 0) {
        return -1;
    }
    uct_ha_addr_pack_dev(where, &again);
    fuzz_expect(memcmp(&packed, &again, sizeof(packed)) == 0, "a device packs to other bytes");
    fuzz_expect(!uct_ha_addr_is_cm(&packed), "one of ours is taken for one of rdmacm's");
    expect_rail(&where->primary);
    expect_rail(&where->standby);
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
    fuzz_expect(where.credits >= 1 && where.credits <= 16384, "an interface that can take no message, or too many");
}

static void match(const struct uct_ha_rail_where *a, const struct uct_ha_rail_where *b)
{
    for (int allow = 0; allow <= 1; allow++) {
        struct ha_match_opts opts = {.allow_unknown_zone = allow};

        fuzz_expect(uct_ha_where_match(a, b, &opts) == uct_ha_where_match(b, a, &opts),
                    "one side can talk to the other, but not the other way round");
        fuzz_expect(uct_ha_where_match(a, a, &opts) || (!allow && a->zone == 0) ||
                        (a->addr.pkey != 0 && (a->addr.pkey & HA_PKEY_FULL) == 0),
                    "a rail cannot talk to one like it");
        fuzz_expect(a->zone == 0 || b->zone == 0 || a->zone == b->zone || !uct_ha_where_match(a, b, &opts),
                    "rails of different zones match");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t            dev = sizeof(struct uct_ha_packed_dev);
    struct uct_ha_dev_where a, b;

    if (size < 2 * dev + sizeof(struct uct_ha_packed_iface)) {
        return 0;
    }
    unpack_iface(data + 2 * dev);
    if (unpack(data + dev, &b) != 0) {
        return 0;
    }
    read_cm(data, &b.primary);
    if (unpack(data, &a) == 0) {
        match(&a.primary, &b.primary);
        match(&a.standby, &b.standby);
    }
    return 0;
}
