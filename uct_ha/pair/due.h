/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_DUE_H_
#define UCT_HA_DUE_H_

/*
 * Which connections have something to do, without a look at the others: those that were touched since
 * the last round, those with a packet to send, and, in a heap, when each wants the timer. A connection
 * and a peer bring a part of this with them. The control lock is held.
 */

#include "abi/uct_ha_abi.h"

#include <stdint.h>

struct uct_ha_due { /* of a connection */
    struct uct_ha_dues *dues;
    ucs_list_link_t     touched_link, send_link;
    uint8_t             touched, to_send;
    uint8_t             want; /* ... and an answer is wanted */
    uint32_t            at;   /* its place in the heap, UINT32_MAX: none */
    uint64_t            when; /* it wants the timer then */
};

struct uct_ha_due_peer { /* its connections with a packet to send */
    ucs_list_link_t conns, link;
    uint8_t         to_send;
};

struct uct_ha_dues { /* of an interface */
    ucs_list_link_t     touched, peers;
    struct uct_ha_due **heap;
    uint32_t            heap_len, heap_room;
};

void uct_ha_dues_open(struct uct_ha_dues *dues);
void uct_ha_dues_close(struct uct_ha_dues *dues);

/* A connection begins: 0 or -ENOMEM; and ends. */
int  uct_ha_due_begin(struct uct_ha_due *due, struct uct_ha_dues *dues, uint32_t conns);
void uct_ha_due_end(struct uct_ha_due *due);
void uct_ha_due_peer_begin(struct uct_ha_due_peer *peer);
void uct_ha_due_peer_end(struct uct_ha_due_peer *peer);

/* Something about it has changed: when it wants the timer is to be asked anew. */
void uct_ha_due_touch(struct uct_ha_due *due);

/* Its state is to be sent; `want`: and an answer is wanted. */
void uct_ha_due_send(struct uct_ha_due *due, struct uct_ha_due_peer *peer, int want);

/* The next of each, which is none any more then; NULL: there is none. */
struct uct_ha_due      *uct_ha_due_next_touched(struct uct_ha_dues *dues);
struct uct_ha_due_peer *uct_ha_due_next_peer(struct uct_ha_dues *dues);
struct uct_ha_due      *uct_ha_due_next_to_send(struct uct_ha_due_peer *peer);

/* It wants the timer then; UINT64_MAX: not at all. */
void uct_ha_due_set(struct uct_ha_due *due, uint64_t when);

/* The first that wants it; NULL: none. */
static inline struct uct_ha_due *uct_ha_due_first(const struct uct_ha_dues *dues)
{
    return dues->heap_len == 0 ? NULL : dues->heap[0];
}

#endif
