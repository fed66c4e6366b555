/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FORGED_H_
#define FORGED_H_

/* Control packets made by hand, as side 1 could send them to side 0, and brought there. */

#include "glue_tests.h"

#include "core/ha_packet.h"

struct uct_ha_conn;
struct uct_ha_iface;
struct uct_ha_peer;

struct forged {
    struct ha_packet_header header;
    struct ha_packet_record record;
    uint8_t                 bytes[HA_PACKET_MTU];
    size_t                  length;
};

/* Why a packet, or its record, is dropped. */
enum reason { NOTHING, MALFORMED, STRAY, FORGED, UNFIT, STALE };

struct uct_ha_iface *forged_iface(int s);
struct uct_ha_peer  *forged_peer(int s); /* the other side, as this one knows it */
struct uct_ha_conn  *forged_conn(int s);

/* Two sides that are connected, each by the other's address, and silent. */
void forged_open(uint64_t seed);

/* All has been said. */
void forged_quiet(void);

/* What side 1 could say to side 0 just now, by TCP, with one record. Its number is used up. */
void forged_make(struct forged *forged);

/* To bytes, sealed as the sender in the header would: by the secret of side 0, or with OWN of side 1;
 * or by any. */
void forged_seal(struct forged *forged);
void forged_seal_by(struct forged *forged, const struct ha_secret *secret);

/* To side 0, by TCP. Returns whether it was taken for one for this instance. */
int forged_bring(const struct forged *forged);

/* By this carrier. Returns whether it was taken. By UD: nothing else may be on the way, both sides count as one. */
int forged_bring_by(const struct forged *forged, int carrier);

/* The interface of side 1, of this name, closes, and then side 0 has forgotten it. */
void forged_lose_peer(uint64_t cookie);

/* Bring it: it is counted so, and the connection does not mind. */
void forged_expect(const struct forged *forged, enum reason reason, const char *what);

/* `f` is what side 1 could say, but for `_change`. */
#define FORGE(_reason, _what, _change)     \
    do {                                   \
        forged_make(&f);                   \
        _change;                           \
        forged_seal(&f);                   \
        forged_expect(&f, _reason, _what); \
    } while (0)

#endif
