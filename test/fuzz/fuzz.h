/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_H_
#define FUZZ_H_

/*
 * Bytes from a stranger. Each fuzz_*.c is one target: it takes any bytes and
 * ends the process when the product does what it must never do. Two drivers
 * run a target:
 *
 *   fuzz_replay.c  plain: the files of test/fuzz/corpus, then changes of them
 *                  drawn from a seed (`make check`)
 *   libfuzzer      clang's libFuzzer, for as long as one likes (a script)
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* 0 always; what is wrong ends the process. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Folder of its corpus, below test/fuzz/corpus. */
extern const char fuzz_name[];

/* Changed inputs of an ordinary test: some seconds. */
extern const unsigned fuzz_runs;

/* The input proves that the product is wrong. */
static inline void fuzz_expect(int good, const char *what)
{
    if (good) {
        return;
    }
    fprintf(stderr, "FAILED: %s\n", what);
    abort();
}

#endif
