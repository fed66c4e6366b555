/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALLS_H_
#define CALLS_H_

/* Calls in the order in which NIXL's Mooncake plugin makes them, between this process and a peer. Asserts of cmocka
 * inside. */

#include <stddef.h>
#include <stdint.h>

#include "peer.h"
#include "transfer_engine_c.h"

#define N_BLOCKS   64
#define BLOCK      (PEER_SIZE / N_BLOCKS)
#define BATCH      1024 /* as the plugin asks for */
#define PATIENCE_S 30

struct ends {
    transfer_engine_t engine;
    char              name[64];
    char             *buffer; /* PEER_SIZE, registered */
    struct peer       peer;
    segment_id_t      segment; /* the peer's */
};

struct handle {
    batch_id_t batch;
    size_t     count;
};

enum outcome { IN_PROGRESS, DONE, BAD };

double now(void);
void   open_ends(struct ends *e);
void   close_ends(struct ends *e); /* all but the peer */

/* Block i of one end to block N_BLOCKS - 1 - i of the other: a mix-up would be seen. The array is gone when it
 * returns. */
int          post(struct ends *e, struct handle *handle, int opcode, notify_msg_t *notify);
enum outcome check(struct ends *e, struct handle *handle); /* gives the batch back when all is done */
enum outcome poll_until_end(struct ends *e, struct handle *handle);

/* Byte for byte: `back` is the pattern of the other end, block by block in the opposite order. */
void assert_turned(const char *back, uint32_t seed);
void turn(char *buffer, uint32_t seed);

#endif
