/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COST_WORK_H_
#define COST_WORK_H_

/* What bench/cost measures, whatever carries it out. */

#define COST_BATCH  16
#define COST_ROUNDS 64

#define COST_LINES_ROUNDS 128 /* what is done once for 64 operations counts as that */

enum cost_op {
    COST_AM_SHORT,
    COST_AM_BCOPY,
    COST_AM_ZCOPY,
    COST_PUT_SHORT,
    COST_PUT_BCOPY,
    COST_PUT_ZCOPY,
    COST_GET_BCOPY,
    COST_GET_ZCOPY,
    COST_ATOMIC,
    COST_OPS,
    COST_IDLE = COST_OPS,
};

/* Of a batch: asking for it, the sender's progress, the receiver's. */
enum cost_phase { COST_POST, COST_COMPLETE, COST_RECEIVE, COST_PHASES };

struct cost_carrier {
    int (*can)(enum cost_op op);
    void (*post)(enum cost_op op, unsigned count);
    void (*progress)(int receiver); /* once */
    void (*settle)(void);           /* nothing is under way afterwards, at either side; or NULL */
};

/* A batch, with `phase` counted (COST_PHASES: none). */
void cost_batch(const struct cost_carrier *carrier, enum cost_op op, enum cost_phase phase);

/* All figures of one carrier; one line each for what callgrind does not count. */
void cost_measure(const struct cost_carrier *carrier, const char *name);

/* The same, one operation at a time, with nothing of it in the cache before it is counted: each miss that callgrind's
 * cache then has is a line that the operation touches. */
void cost_measure_lines(const struct cost_carrier *carrier, const char *name);

/* Messages to `endpoints` in turn, so many of each phase as are printed at the end: what callgrind's cache misses. */
void cost_measure_misses(const struct cost_carrier *carrier, const char *name, unsigned endpoints);

#endif
