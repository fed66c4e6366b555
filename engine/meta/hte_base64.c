/* SPDX-License-Identifier: BSD-3-Clause */
#include "hte_base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hte_base64_encode(const void *bytes, size_t length, char *text)
{
    const uint8_t *in = bytes;
    uint32_t       group;
    size_t         i;

    for (i = 0; i + 2 < length; i += 3) {
        group   = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        *text++ = alphabet[group >> 18];
        *text++ = alphabet[group >> 12 & 63];
        *text++ = alphabet[group >> 6 & 63];
        *text++ = alphabet[group & 63];
    }
    if (i < length) {
        group   = (uint32_t)in[i] << 16 | (i + 1 < length ? (uint32_t)in[i + 1] << 8 : 0);
        *text++ = alphabet[group >> 18];
        *text++ = alphabet[group >> 12 & 63];
        *text++ = i + 1 < length ? alphabet[group >> 6 & 63] : '=';
        *text++ = '=';
    }
    *text = '\0';
}

/* 0..63, or -1 */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters, the last `pad` of them '='; the bits that padding leaves over are zero. */
static bool decode_group(const char *text, unsigned pad, uint8_t *out)
{
    uint32_t group = 0;
    unsigned i;
    int      value;

    for (i = 0; i < 4; i++) {
        value = i < 4 - pad ? value_of(text[i]) : 0;
        if (value < 0) {
            return false;
        }
        group = group << 6 | (uint32_t)value;
    }
    if ((pad == 1 && (group & 0xff) != 0) || (pad == 2 && (group & 0xffff) != 0)) {
        return false;
    }
    out[0] = (uint8_t)(group >> 16);
    if (pad < 2) {
        out[1] = (uint8_t)(group >> 8);
    }
    if (pad < 1) {
        out[2] = (uint8_t)group;
    }
    return true;
}

bool hte_base64_decode(const char *text, size_t length, void *bytes, size_t *bytes_length)
{
    uint8_t *out = bytes;
    size_t   i, written = 0;
    unsigned pad = 0;

    if (length % 4 != 0) {
        return false;
    }
    for (i = 0; i < length; i += 4) {
        if (i + 4 == length && text[i + 3] == '=') {
            pad = text[i + 2] == '=' ? 2 : 1;
        }
        if (!decode_group(text + i, pad, out + written)) {
            return false;
        }
        written += 3 - pad;
    }
    *bytes_length = written;
    return true;
}
