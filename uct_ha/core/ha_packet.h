/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_PACKET_H_
#define HA_PACKET_H_

/*
 * The control packets on the wire: one datagram, big endian, a fixed header
 * up to HA_PACKET_RECORDS_MAX records, and the seal (ha_seal.h). The layout is written down in
 * docs/wire.md and must match it. Pure; bounded; every field is checked
 * before anything is believed.
 *
 * STATE  records of endpoint pairs: set-up, fence request and answer, resume
 *        and its acknowledgement are all this. WANT asks for an answer.
 * PING   heartbeat on one rail. PONG answers it with the same nonce; a PONG is never answered.
 * BYE    the interface closes. Not acknowledged; repeated a few times.
 */

#include <stddef.h>
#include <stdint.h>

#include "ha_opts.h"
#include "ha_pair.h"
#include "ha_seal.h"

#define HA_PACKET_MAGIC       0x48415243u /* "HARC" */
#define HA_PACKET_VERSION     3
#define HA_PACKET_MTU         1024 /* a datagram never exceeds this */
#define HA_PACKET_HEADER_LEN  120
#define HA_PACKET_RECORD_LEN  112
#define HA_PACKET_RECORDS_MAX ((HA_PACKET_MTU - HA_PACKET_HEADER_LEN - HA_SEAL_LEN) / HA_PACKET_RECORD_LEN)

enum ha_packet_type { HA_PACKET_STATE = 1, HA_PACKET_PING, HA_PACKET_PONG, HA_PACKET_BYE };

/* What carries packets: the UD port of each rail slot, and TCP. */
enum { HA_CARRIER_TCP = HA_SLOTS, HA_CARRIERS };

#define HA_PACKET_WANT       0x1u
#define HA_PACKET_ZONE(slot) (0x2u << (slot)) /* both sides' rails of the slot are in one zone */
#define HA_PACKET_OWN        0x8u             /* sealed by the secret of the sender, not of the receiver */
#define HA_PACKET_CALL       0x10u            /* PING, PONG by TCP: whether it runs; it says nothing of rails */

/* What the sender's peers have to know of it; in its address too. */
#define HA_CAP_PROOF_PSN 0x1u  /* its devices report packet numbers */
#define HA_CAP_COUNTED   0x2u  /* it may prove by count: PUTs to it carry immediate data and take a credit */
#define HA_CAP_LEDGER    0x8u  /* it proves by ledger: peers need room for marks */
#define HA_CAP_ATOMIC_HW 0x4u  /* atomics on its memory are executed by its card, not by message */
#define HA_CAP_SCARCE    0x10u /* in packets, at present: a message may have to wait there for a receive */

#define HA_PLACE_ALONE 0xffu /* the sender has only this rail */

#define HA_EP_ANY 0xffffffffu /* dst_ep of a pair the peer may not know yet */

/* How to reach the sender on one of its rails: path and control queue pair. */
struct ha_packet_rail {
    uint8_t  gid[16];
    uint16_t lid;
    uint16_t mtu; /* bytes; 0 = no such rail */
    uint32_t ud_qpn;
    uint8_t  link_layer; /* enum ha_link_layer of the verbs door */
    uint8_t  prefix_len;
    uint8_t  up;    /* the sender believes this rail works */
    uint8_t  place; /* which of the sender's two rails, by name; see uct/addr.h */
};                  /* 28 bytes on the wire */

struct ha_packet_header {
    uint8_t               type;
    uint8_t               carrier; /* that it was sent on: slot of the rail, or HA_CARRIER_TCP */
    uint8_t               caps;    /* HA_CAP_* of the sender; unknown bits are ignored */
    uint16_t              flags;
    uint16_t              count; /* records that follow */
    uint32_t              nonce;
    uint16_t              credits; /* messages per connection that the sender can take ahead */
    uint64_t              src_cookie, dst_cookie;
    uint8_t               tcp_ip[4]; /* of the sender's TCP carrier */
    uint16_t              tcp_port;  /* 0 = none */
    struct ha_packet_rail rails[HA_SLOTS];
    struct ha_opts        opts;   /* form only: what they mean is for ha_opts_check() */
    uint64_t              number; /* of the packet, from this sender to this receiver */
};

/* A record with its addressing. `src_ep`, `dst_ep`: endpoint indices of sender
 * and receiver, dst_ep = HA_EP_ANY while unknown. `sn`: number of the pair
 * between the two interfaces, the same on both sides. `tag`: see ha_pair_tag(). */
struct ha_packet_record {
    uint32_t         src_ep, dst_ep, sn, tag;
    uint8_t          slots; /* rails the sender can use for this pair: 1 or 2 */
    struct ha_record state;
};

/* Tag of pair number `sn` between two instances: the same on both sides. */
uint32_t ha_pair_tag(uint64_t cookie1, uint64_t cookie2, uint32_t sn);

/* Encode into `buf` (HA_PACKET_MTU bytes). ha_packet_encode_header() returns
 * the length so far; each record adds HA_PACKET_RECORD_LEN; the count in the
 * header is header->count. No more than HA_PACKET_RECORDS_MAX records. The seal
 * comes last: ha_seal_add(). */
size_t ha_packet_encode_header(void *buf, const struct ha_packet_header *header);
size_t ha_packet_encode_record(void *buf, size_t offset, const struct ha_packet_record *record);

/* Version of what may be a control packet of another release, 0 when it is none. */
unsigned ha_packet_version(const void *buf, size_t length);

/* Decode and check form; `length` is that of the packet with its seal (magic, version, type, exact length, ranges of
 * every status, cause, proof, PSN < 2^24, mtu a power of two 256..4096 or 0, act <= epoch, no two lanes with one act).
 * The seal is for ha_seal_is_whole(). Return 0, or -EPROTO with nothing written. What depends on the pair's state
 * (cookies, tag, generation, epoch) is checked by ha_packet_record_check(). */
int ha_packet_decode_header(const void *buf, size_t length, struct ha_packet_header *header);
int ha_packet_decode_record(const void *buf, size_t length, unsigned i, struct ha_packet_record *record);

/* Does a record fit the pair it claims to be about? gen <= own gen + 1 and
 * >= 0; epoch <= own epoch + 2 (at the decider: <= own epoch); a lane keeps its
 * epoch, which the decider alone gives. 0 or -EPROTO. */
int ha_packet_record_check(const struct ha_pair *pair, const struct ha_record *record);

#endif
