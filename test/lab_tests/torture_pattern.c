/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "torture.h"

/* Contents and sizes as functions of (seed, direction, kind, sequence number),
 * so that the receiver knows them without being told. */

#define SHOWN_COMPLAINTS 20

double now_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double wall_seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void pattern_create(struct torture *t)
{
    for (unsigned dir = 0; dir < 2; dir++) {
        uint64_t  state = mix(t->opt.plan.seed * 2 + dir);
        size_t    words = (PATTERN_SIZE + MAX_SIZE) / sizeof(uint64_t);
        uint64_t *data  = must_alloc(words * sizeof(*data));

        for (size_t i = 0; i < words; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data[i] = state;
        }
        t->run->pattern[dir] = (char *)data;
    }
}

static uint64_t hash_of(struct torture *t, int own, unsigned kind, uint64_t seq)
{
    uint64_t dir = (uint64_t)(own ? t->is_client : !t->is_client);

    return mix(mix(t->opt.plan.seed ^ (dir << 60) ^ ((uint64_t)kind << 56) ^ ((uint64_t)t->index << 48)) + seq);
}

const char *pattern_of(struct torture *t, int own, unsigned kind, uint64_t seq)
{
    unsigned dir = own ? !t->is_client : t->is_client;

    return t->run->pattern[dir] + hash_of(t, own, kind, seq) % PATTERN_SIZE;
}

/* Most messages are small, for many operations in flight; some take each of the
 * other ways through UCX: buffered copy, zero copy, several pieces, rendezvous. */
uint32_t size_of(struct torture *t, int own, unsigned kind, uint64_t seq)
{
    static const struct {
        uint32_t permille[4]; /* mixed, small, large, bulk */
        uint32_t from, to;
    } steps[] = {
        {{600, 850, 100, 0}, 0, 64},
        {{250, 150, 200, 0}, 65, 1024},
        {{120, 0, 300, 0}, 1025, 8192},
        {{25, 0, 300, 0}, 8193, 64 << 10},
        {{5, 0, 100, 1000}, (64 << 10) + 1, MAX_SIZE},
    };
    uint64_t r    = mix(hash_of(t, own, kind, seq));
    uint32_t dice = (uint32_t)(r % 1000);
    unsigned i    = 0;
    uint32_t size;

    while (dice >= steps[i].permille[t->opt.plan.sizes]) {
        dice -= steps[i++].permille[t->opt.plan.sizes];
    }
    size = steps[i].from + (uint32_t)((r >> 20) % (steps[i].to - steps[i].from + 1));
    if (kind == KIND_TAG || kind == KIND_AM) {
        return size;
    }
    size = size < SLOT_LARGE_SIZE ? size : SLOT_LARGE_SIZE;
    return size < 8 ? 8 : size;
}

int is_poison(const char *data, size_t size)
{
    return size == 0 || (data[0] == (char)POISON && memcmp(data, data + 1, size - 1) == 0);
}

static void ledger_grow(struct ledger *ledger, uint64_t seq)
{
    uint64_t capacity = ledger->capacity ? ledger->capacity : 1u << 20;

    while (capacity <= seq) {
        capacity *= 2;
    }
    ledger->seen = realloc(ledger->seen, capacity / 8);
    if (ledger->seen == NULL) {
        fprintf(stderr, "ha_torture: no memory\n");
        exit(EXIT_USAGE);
    }
    memset(ledger->seen + ledger->capacity / 8, 0, (capacity - ledger->capacity) / 8);
    ledger->capacity = capacity;
}

void ledger_add(struct torture *t, struct ledger *ledger, uint64_t seq, int in_order, const char *what)
{
    if (seq > (1u << 30)) {
        complain(t, &t->total.corrupt, "%s: impossible sequence number %" PRIu64, what, seq);
        return;
    }
    if (seq >= ledger->capacity) {
        ledger_grow(ledger, seq);
    }
    if (ledger->seen[seq / 8] & (1u << (seq % 8))) {
        complain(t, &t->total.duplicate, "%s %" PRIu64 " again (next in order: %" PRIu64 ")", what, seq, ledger->next);
        return;
    }
    ledger->seen[seq / 8] |= (uint8_t)(1u << (seq % 8));
    ledger->count++;
    if (in_order && seq < ledger->next) { /* a gap may yet be a loss: seen at the end */
        complain(t, &t->total.reordered, "%s %" PRIu64 " behind %" PRIu64, what, seq, ledger->next - 1);
    }
    ledger->next = seq >= ledger->next ? seq + 1 : ledger->next;
}

void complain(struct torture *t, uint64_t *counter, const char *format, ...)
{
    const char *kind = counter == &t->total.lost          ? "lost"
                       : counter == &t->total.duplicate   ? "duplicate"
                       : counter == &t->total.reordered   ? "reordered"
                       : counter == &t->total.corrupt     ? "corrupt"
                       : counter == &t->total.stale_write ? "stale write"
                                                          : "error";
    va_list     args;

    if ((*counter)++ >= SHOWN_COMPLAINTS) {
        return;
    }
    printf("%.3f WRONG %s: endpoint %u: ", wall_seconds(), kind, t->index);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf(" (after %" PRIu64 " failovers)\n", report_failovers(t));
    fflush(stdout);
}
