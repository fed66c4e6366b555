/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SERVER_PEER_H_
#define HTE_SERVER_PEER_H_

/*
 * One connection of the handshake server.
 *
 *   READING --a frame is complete, its answer is made--> WRITING --all sent--> READING
 *                                                        WRITING --all sent, last word--> DRAINING --> closed
 *
 * READING: waits for the peer. WRITING: the peer is not read until it took the answer. DRAINING: the last word is
 * said; what the peer still sends is thrown away, so that the kernel does not throw our last word away.
 */

#include <stdbool.h>

#include "hte_frame.h"
#include "hte_server_options.h"
#include "hte_session.h"

enum hte_peer_state { HTE_PEER_READING, HTE_PEER_WRITING, HTE_PEER_DRAINING };

struct hte_peer {
    enum hte_peer_state     state;
    int                     fd;
    bool                    last_word; /* close after it */
    int64_t                 since;     /* when we began to wait for the peer */
    struct hte_session      session;
    struct hte_frame_reader reader;
    uint8_t                *out;
    size_t                  out_length, out_sent;
};

/* Takes over `fd`; NULL without memory or randomness: fd is closed. */
struct hte_peer *hte_peer_create(int fd, const struct hte_server_options *options, int64_t now);
void             hte_peer_destroy(struct hte_peer *peer);

/* The socket is readable or writable. False = the connection is over: destroy it. */
bool hte_peer_advance(struct hte_peer *peer, const struct hte_server_options *options, struct hte_server_stats *stats,
                      int64_t now);

#endif
