/* SPDX-License-Identifier: BSD-3-Clause */
/* Does --verify see what it claims to see? Each case breaks one delivery. */
#include "bench_pattern.h"

#include <stdio.h>
#include <string.h>

#define SIZE 100 /* not a multiple of 8: the tail counts too */

static int passed, failed;

static void expect(const char *name, int good)
{
    good ? passed++ : failed++;
    printf("%s %s\n", good ? "ok  " : "FAIL", name);
}

/* Deliver messages in the given order, message `bad` with its byte `at` changed. */
static struct bench_pattern_counts deliver(const int *order, int count, int bad, size_t at)
{
    struct bench_pattern_stream stream = {.seed = 7};
    unsigned char               buffer[SIZE];
    int                         i;

    for (i = 0; i < count; i++) {
        bench_pattern_fill(buffer, SIZE, 7, (uint64_t)order[i]);
        buffer[at] ^= order[i] == bad ? 1 : 0;
        (void)bench_pattern_receive(&stream, buffer, SIZE);
    }
    return stream.counts;
}

static int is(struct bench_pattern_counts c, uint64_t corrupt, uint64_t duplicated, uint64_t lost, uint64_t reordered)
{
    return c.corrupt == corrupt && c.duplicated == duplicated && c.lost == lost && c.reordered == reordered;
}

int main(void)
{
    static const int good[] = {0, 1, 2, 3}, doubled[] = {0, 1, 1, 2, 3}, gap[] = {0, 1, 3, 4}, swapped[] = {0, 2, 1, 3};
    unsigned char    buffer[SIZE];
    struct bench_pattern_stream other = {.seed = 8};
    size_t                      at, seen = 0;

    expect("all as sent", is(deliver(good, 4, -1, 0), 0, 0, 0, 0));
    expect("doubled", is(deliver(doubled, 5, -1, 0), 0, 1, 0, 0));
    expect("lost", is(deliver(gap, 4, -1, 0), 0, 0, 1, 0));
    expect("swapped", is(deliver(swapped, 4, -1, 0), 0, 0, 0, 1));
    for (at = 0; at < SIZE; at++) {
        seen += is(deliver(good, 4, 2, at), 1, 0, 0, 0);
    }
    expect("one bit wrong, anywhere", seen == SIZE);

    bench_pattern_fill(buffer, SIZE, 7, 0);
    (void)bench_pattern_receive(&other, buffer, SIZE);
    expect("message of another stream", is(other.counts, 1, 0, 0, 0));

    bench_pattern_poison(buffer, SIZE);
    expect("poison stays", bench_pattern_is_poison(buffer, SIZE));
    for (at = 0, seen = 0; at < SIZE; at++) {
        buffer[at] ^= 1;
        seen += !bench_pattern_is_poison(buffer, SIZE);
        buffer[at] ^= 1;
    }
    expect("late write of one bit, anywhere", seen == SIZE);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
