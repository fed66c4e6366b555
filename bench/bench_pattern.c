/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench_pattern.h"

#include <string.h>

#define ODD    UINT64_C(0x9e3779b97f4a7c15)
#define POISON 0xd5
#define SEARCH UINT64_C(65536) /* how far a foreign message is looked for */
#define WORD   sizeof(uint64_t)

static uint64_t mix(uint64_t seed, uint64_t message)
{
    uint64_t x = (seed << 48) + message + ODD;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void bench_pattern_fill(void *buffer, size_t size, uint64_t seed, uint64_t message)
{
    uint64_t       word = mix(seed, message);
    unsigned char *byte = buffer;

    for (; size >= WORD; size -= WORD, byte += WORD, word += ODD) {
        memcpy(byte, &word, WORD);
    }
    memcpy(byte, &word, size);
}

static bool is_message(const void *buffer, size_t size, uint64_t seed, uint64_t message)
{
    uint64_t             word = mix(seed, message), differs = 0, found;
    const unsigned char *byte = buffer;

    for (; size >= WORD; size -= WORD, byte += WORD, word += ODD) {
        memcpy(&found, byte, WORD);
        differs |= found ^ word;
    }
    return differs == 0 && memcmp(byte, &word, size) == 0;
}

/* Which message near the expected one is this? Compares whole messages only
 * when the first word fits, so an error costs a search but no more. */
static bool identify(const struct bench_pattern_stream *stream, const void *buffer, size_t size, uint64_t *message)
{
    uint64_t from = stream->next > SEARCH ? stream->next - SEARCH : 0;
    uint64_t candidate, first;

    if (size < WORD) {
        return false;
    }
    memcpy(&first, buffer, WORD);
    for (candidate = from; candidate < stream->next + SEARCH; candidate++) {
        if (mix(stream->seed, candidate) == first && is_message(buffer, size, stream->seed, candidate)) {
            *message = candidate;
            return true;
        }
    }
    return false;
}

static void miss(struct bench_pattern_stream *stream, uint64_t message)
{
    stream->counts.lost++;
    if (stream->missing_count < BENCH_PATTERN_MISSING_MAX) {
        stream->missing[stream->missing_count++] = message;
    }
}

static bool missing_remove(struct bench_pattern_stream *stream, uint64_t message)
{
    unsigned i;

    for (i = 0; i < stream->missing_count; i++) {
        if (stream->missing[i] == message) {
            stream->missing[i] = stream->missing[--stream->missing_count];
            return true;
        }
    }
    return false;
}

bool bench_pattern_receive(struct bench_pattern_stream *stream, const void *buffer, size_t size)
{
    uint64_t message;

    if (is_message(buffer, size, stream->seed, stream->next)) {
        stream->next++;
        return true;
    }
    if (!identify(stream, buffer, size, &message)) {
        stream->counts.corrupt++;
        stream->next++;
    } else if (message >= stream->next) {
        while (stream->next < message) {
            miss(stream, stream->next++);
        }
        stream->next++;
    } else if (missing_remove(stream, message)) {
        stream->counts.lost--;
        stream->counts.reordered++;
    } else {
        stream->counts.duplicated++;
    }
    return false;
}

void bench_pattern_poison(void *buffer, size_t size)
{
    memset(buffer, POISON, size);
}

bool bench_pattern_is_poison(const void *buffer, size_t size)
{
    const unsigned char *byte = buffer;

    return size == 0 || (byte[0] == POISON && memcmp(byte, byte + 1, size - 1) == 0);
}

uint64_t bench_pattern_errors(const struct bench_pattern_counts *counts)
{
    return counts->corrupt + counts->duplicated + counts->lost + counts->reordered + counts->late_writes;
}
