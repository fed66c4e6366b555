/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GLUE_RMA_H_
#define GLUE_RMA_H_

/*
 * PUTs that can be counted. Operation number n of a side goes to place n of the
 * peer's memory, and the hardware tells how often each place was written to its
 * end. Memory of a side: PLACES places that the peer writes to, then as many
 * that this side sends from.
 */

#include "glue_side.h"

#define PLACE_LEN 2500 /* three packets */
#define PLACES    400
#define MEMORY    (2 * PLACES * PLACE_LEN)

/* Open the memory and begin to count. */
void rma_open(void);

/* The next `count` PUTs of mixed kinds on endpoint `i`; pumps for room. */
void         rma_put(int s, int i, unsigned count);
ucs_status_t rma_put_one(int s, int i, enum how how, uct_completion_t *comp);

/* After a flush: everything written is there, each once. Then begin anew. */
void rma_check(int s);

/* For tests in which PUTs may fail: how often number `n` was executed, and begin anew. */
unsigned rma_executions(int s, unsigned n);
void     rma_forget(int s);

/* A GET of a place of the peer that a PUT has filled; waits for the result. */
void rma_get_check(int s, int i, enum how how, unsigned place);

/* A GET that is not waited for; its bytes are not looked at. */
void rma_get_loose(int s, int i, unsigned count);

/* Two connected endpoints with a standby, memory on both sides. */
void redundant_open(uint64_t seed, const char *settings);

/* Everything posted on them ends, once, and without an error. */
void redundant_check(void);

uint8_t *rma_place(int s, unsigned place);  /* written by the peer */
uint8_t *rma_source(int s, unsigned place); /* sent from by the side itself */

#endif
