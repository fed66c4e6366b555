/* SPDX-License-Identifier: BSD-3-Clause */
#include "ha_seal.h"

/* ---- SipHash-2-4 ---- */

struct ha_sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t ha_rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void ha_sip_rounds(struct ha_sip *s, unsigned rounds)
{
    while (rounds-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = ha_rotate(s->v1, 13) ^ s->v0;
        s->v3 = ha_rotate(s->v3, 16) ^ s->v2;
        s->v0 = ha_rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = ha_rotate(s->v1, 17) ^ s->v2;
        s->v3 = ha_rotate(s->v3, 21) ^ s->v0;
        s->v2 = ha_rotate(s->v2, 32);
    }
}

static uint64_t ha_little(const uint8_t *p, size_t bytes)
{
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i++) {
        word |= (uint64_t)p[i] << (8 * i);
    }
    return word;
}

static void ha_sip_word(struct ha_sip *s, uint64_t word)
{
    s->v3 ^= word;
    ha_sip_rounds(s, 2);
    s->v0 ^= word;
}

uint64_t ha_siphash(const struct ha_secret *key, const void *data, size_t length)
{
    uint64_t       k0 = ha_little(key->byte, 8), k1 = ha_little(key->byte + 8, 8);
    const uint8_t *p = data;
    struct ha_sip  s = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                        k1 ^ 0x7465646279746573ull};
    size_t         at;

    for (at = 0; at + 8 <= length; at += 8) {
        ha_sip_word(&s, ha_little(p + at, 8));
    }
    ha_sip_word(&s, (uint64_t)length << 56 | ha_little(p + at, length - at));
    s.v2 ^= 0xff;
    ha_sip_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* ---- names, keys, seals ---- */

static void ha_put(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(value >> (56 - 8 * i));
    }
}

uint64_t ha_seal_name(const struct ha_secret *secret)
{
    return ha_siphash(secret, "N", 1);
}

struct ha_secret ha_seal_key(const struct ha_secret *secret, uint64_t from, uint64_t to)
{
    struct ha_secret key;
    uint8_t          text[17];

    ha_put(text + 1, from);
    ha_put(text + 9, to);
    for (int half = 0; half < 2; half++) {
        text[0] = (uint8_t)('1' + half);
        ha_put(key.byte + 8 * half, ha_siphash(secret, text, sizeof(text)));
    }
    return key;
}

size_t ha_seal_add(const struct ha_secret *key, void *packet, size_t length)
{
    ha_put((uint8_t *)packet + length, ha_siphash(key, packet, length));
    return length + HA_SEAL_LEN;
}

int ha_seal_is_whole(const struct ha_secret *key, const void *packet, size_t length)
{
    uint8_t seal[HA_SEAL_LEN], differs = 0;

    if (length < HA_SEAL_LEN) {
        return 0;
    }
    length -= HA_SEAL_LEN;
    ha_put(seal, ha_siphash(key, packet, length));
    for (size_t i = 0; i < HA_SEAL_LEN; i++) { /* to the end: how long it takes tells nothing */
        differs |= seal[i] ^ ((const uint8_t *)packet)[length + i];
    }
    return differs == 0;
}

/* ---- numbers ---- */

int ha_window_take(struct ha_window *window, uint64_t number)
{
    uint64_t ahead = number - window->newest, behind = window->newest - number;

    if (number > window->newest) {
        window->heard  = ahead < HA_WINDOW ? window->heard << ahead | 1 : 1;
        window->newest = number;
        return 1;
    }
    if (number == 0 || behind >= HA_WINDOW || (window->heard >> behind & 1)) {
        return 0;
    }
    window->heard |= 1ull << behind;
    return 1;
}

void ha_window_close(struct ha_window *window, uint64_t number)
{
    if (number >= window->newest) {
        window->newest = number;
        window->heard  = ~0ull;
    }
}
