/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counting by callgrind: collection is on while the phase in question runs, and each figure is a dump
 * of its own, named in its description. What the card counts is printed. Callgrind's cache sees what is
 * not collected, too.
 */

#include "cost_work.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>

#define SWEEP (1u << 20) /* twice the cache that bench/cost asks for, and more */
#define LINE  64

static int is_cold; /* empty the cache before what is counted */

static const char *const op_names[] = {
    "am_short",  "am_bcopy",  "am_zcopy",  "put_short", "put_bcopy",
    "put_zcopy", "get_bcopy", "get_zcopy", "atomic",    "idle",
};
static const char *const phase_names[] = {"post", "complete", "receive"};

/* As the card's struct sc_counts. */
struct counts {
    uint64_t sends, signaled, recvs, recv_doorbells, send_doorbells, polls, completions, packets;
};

static struct counts counts_now(void)
{
    const struct counts *card = dlsym(RTLD_DEFAULT, "softcard_counts");

    return card != NULL ? *card : (struct counts){0};
}

static void empty_cache(void)
{
    static volatile char other[SWEEP];

    for (size_t i = 0; i < SWEEP; i += LINE) {
        (void)other[i];
    }
}

static void begin(int is_counted)
{
    if (is_counted) {
        if (is_cold) {
            empty_cache();
        }
        CALLGRIND_TOGGLE_COLLECT;
    }
}

static void end(int is_counted)
{
    if (is_counted) {
        CALLGRIND_TOGGLE_COLLECT;
    }
}

/* Either side makes an odd number of progress calls: what it does at each 32nd falls among the counted ones equally
 * often wherever its own count stands. */
static void batch(const struct cost_carrier *carrier, enum cost_op op, enum cost_phase phase, unsigned count)
{
    begin(phase == COST_POST);
    carrier->post(op, count);
    end(phase == COST_POST);
    begin(phase == COST_COMPLETE);
    carrier->progress(0);
    end(phase == COST_COMPLETE);
    begin(phase == COST_RECEIVE);
    carrier->progress(1);
    end(phase == COST_RECEIVE);
    for (int i = 0; i < 2; i++) { /* acknowledgements and what is owed, of either side */
        carrier->progress(0);
        carrier->progress(1);
    }
}

void cost_batch(const struct cost_carrier *carrier, enum cost_op op, enum cost_phase phase)
{
    batch(carrier, op, phase, COST_BATCH);
}

static void dump(const char *name, enum cost_op op, const char *phase)
{
    char label[128];

    snprintf(label, sizeof(label), "%s.%s.%s", name, op_names[op], phase);
    CALLGRIND_DUMP_STATS_AT(label);
    CALLGRIND_ZERO_STATS;
}

static void print_counts(const char *name, enum cost_op op, const struct counts *before)
{
    struct counts now = counts_now();
    double        n   = COST_BATCH * COST_ROUNDS;

    printf("counts %s.%s sends %.3f signaled %.3f recv_doorbells %.3f send_doorbells %.3f polls %.2f\n", name,
           op_names[op], (double)(now.sends - before->sends) / n, (double)(now.signaled - before->signaled) / n,
           (double)(now.recv_doorbells - before->recv_doorbells) / n,
           (double)(now.send_doorbells - before->send_doorbells) / n, (double)(now.polls - before->polls) / n);
    fflush(stdout);
}

/* What an earlier operation left to be told later is not this one's. */
static void settle(const struct cost_carrier *carrier)
{
    if (carrier->settle != NULL) {
        carrier->settle();
    }
}

static void measure_op(const struct cost_carrier *carrier, const char *name, enum cost_op op)
{
    struct counts before;

    for (int i = 0; i < COST_ROUNDS; i++) {
        cost_batch(carrier, op, COST_PHASES);
    }
    settle(carrier);
    before = counts_now();
    for (int phase = 0; phase < COST_PHASES; phase++) {
        for (int i = 0; i < COST_ROUNDS; i++) {
            cost_batch(carrier, op, (enum cost_phase)phase);
        }
        dump(name, op, phase_names[phase]);
        if (phase == 0) {
            print_counts(name, op, &before);
        }
    }
}

void cost_measure(const struct cost_carrier *carrier, const char *name)
{
    CALLGRIND_ZERO_STATS;
    for (int op = 0; op < COST_OPS; op++) {
        if (carrier->can((enum cost_op)op)) {
            measure_op(carrier, name, (enum cost_op)op);
        }
    }
    for (int i = 0; i < COST_ROUNDS; i++) {
        cost_batch(carrier, COST_AM_SHORT, COST_PHASES); /* what the last operation owes is behind us */
    }
    settle(carrier);
    for (int i = 0; i < 4 * COST_BATCH * COST_ROUNDS; i++) {
        carrier->progress(0);
    }
    begin(1);
    for (int i = 0; i < COST_BATCH * COST_ROUNDS; i++) {
        carrier->progress(0);
    }
    end(1);
    dump(name, COST_IDLE, "progress");
}

static void lines_of_op(const struct cost_carrier *carrier, const char *name, enum cost_op op)
{
    for (int i = 0; i < COST_ROUNDS; i++) {
        cost_batch(carrier, op, COST_PHASES);
    }
    settle(carrier);
    for (int phase = 0; phase < COST_PHASES; phase++) {
        for (int i = 0; i < COST_LINES_ROUNDS; i++) {
            batch(carrier, op, (enum cost_phase)phase, 1);
        }
        dump(name, op, phase_names[phase]);
    }
}

void cost_measure_lines(const struct cost_carrier *carrier, const char *name)
{
    is_cold = 1;
    CALLGRIND_ZERO_STATS;
    for (int op = 0; op < COST_OPS; op++) {
        if (carrier->can((enum cost_op)op)) {
            lines_of_op(carrier, name, (enum cost_op)op);
        }
    }
}

void cost_measure_misses(const struct cost_carrier *carrier, const char *name, unsigned endpoints)
{
    unsigned rounds = COST_ROUNDS + 4 * endpoints; /* to each more than any window is long */

    CALLGRIND_ZERO_STATS;
    settle(carrier);
    for (int phase = 0; phase < COST_PHASES; phase++) {
        for (unsigned i = 0; i < rounds; i++) {
            cost_batch(carrier, COST_AM_SHORT, (enum cost_phase)phase);
        }
        dump(name, COST_AM_SHORT, phase_names[phase]);
    }
    printf("misses of %u\n", rounds * COST_BATCH);
}
