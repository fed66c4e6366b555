/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_SEAL_H_
#define HA_SEAL_H_

/*
 * Who may speak to an instance, and how old his words are: secrets, names, the seal at the
 * end of each control packet and the window of numbers that were heard. docs/wire.md says
 * what that is good for and what not.
 */

#include <stddef.h>
#include <stdint.h>

#define HA_SECRET_LEN 16
#define HA_SEAL_LEN   8

/* Of an instance, in its address, never in a packet; or a key that is made of one. */
struct ha_secret {
    uint8_t byte[HA_SECRET_LEN];
};

/* SipHash-2-4 of Aumasson and Bernstein. */
uint64_t ha_siphash(const struct ha_secret *key, const void *data, size_t length);

/* The name (cookie) of the instance with this secret, which does not tell the secret. */
uint64_t ha_seal_name(const struct ha_secret *secret);

/* The key by which `from` seals what it says to `to`; `secret` is that of one of them. */
struct ha_secret ha_seal_key(const struct ha_secret *secret, uint64_t from, uint64_t to);

/* Append the seal to a packet of `length` bytes; returns the length with it. */
size_t ha_seal_add(const struct ha_secret *key, void *packet, size_t length);

/* Is this packet, whose last bytes are its seal, as it was sealed by this key? */
int ha_seal_is_whole(const struct ha_secret *key, const void *packet, size_t length);

#define HA_WINDOW 64

/* Numbers of packets: which of the latest HA_WINDOW were heard. All zero: none yet. */
struct ha_window {
    uint64_t newest; /* 0 is no number */
    uint64_t heard;  /* bit i: newest - i */
};

/* 1: not heard before, and remembered now; 0: heard, or too old to know. */
int ha_window_take(struct ha_window *window, uint64_t number);

/* Up to this number everything counts as heard. */
void ha_window_close(struct ha_window *window, uint64_t number);

#endif
