/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that a comparison knows again. A block may have any length and begin anywhere: words are copied, never stored
 * through a pointer, and the last one may be a part. */
#include "bench_pattern.h"

#include <string.h>

/* Every bit of the seed reaches every byte: blocks of one byte differ from those before and beside them too. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t first_word(uint64_t seed)
{
    return mix(seed + 0x9e3779b97f4a7c15ull);
}

static void fill(char *bytes, uint64_t length, uint64_t seed, uint64_t mask)
{
    uint64_t i, word, first = first_word(seed);

    for (i = 0; i < length / sizeof(word); ++i) {
        word = mix(first + i) ^ mask;
        memcpy(bytes + i * sizeof(word), &word, sizeof(word));
    }
    word = mix(first + i) ^ mask;
    memcpy(bytes + i * sizeof(word), &word, length % sizeof(word));
}

void pattern_fill(char *bytes, uint64_t length, uint64_t seed)
{
    fill(bytes, length, seed, 0);
}

void pattern_spoil(char *bytes, uint64_t length, uint64_t seed)
{
    fill(bytes, length, seed, UINT64_MAX);
}

bool pattern_is(const char *bytes, uint64_t length, uint64_t seed)
{
    uint64_t i, word, first = first_word(seed);

    for (i = 0; i < length / sizeof(word); ++i) {
        memcpy(&word, bytes + i * sizeof(word), sizeof(word));
        if (word != mix(first + i)) {
            return false;
        }
    }
    word = mix(first + i);
    return memcmp(bytes + i * sizeof(word), &word, length % sizeof(word)) == 0;
}
