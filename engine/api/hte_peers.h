/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_PEERS_H_
#define HTE_PEERS_H_

/* Open segments, with the connections to each of them added up. */

#include <stddef.h>
#include <stdint.h>

#include "hte_engine.h"

#define HTE_WAYS (HTE_WAY_EMULATED + 1)

struct hte_peer_sum {
    struct hte_segment *segment;                 /* reference */
    uint64_t            transferred, reconnects; /* of connections that are no more, too: they only grow */
    unsigned            connected[HTE_WAYS];     /* connections that are up, by enum hte_way */
};

struct hte_peers {
    struct hte_peer_sum *list; /* in order of segment->slot */
    size_t               count;
};

int  hte_peers_gather(struct hte_engine *engine, struct hte_peers *peers);
void hte_peers_free(struct hte_peers *peers);

#endif
