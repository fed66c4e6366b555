/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SERVER_OPTIONS_H_
#define HTE_SERVER_OPTIONS_H_

/* What the handshake server is told, and what it counts: as a whole (hte_server.h) and for each connection
 * (hte_server_peer.h). */

#include <stddef.h>
#include <stdint.h>

#include "hte_message.h"

/* Answers in the server's thread: must not block. `reply` is zeroed: no error, no payload; its payload, if any,
 * comes from malloc() and is freed by the server. */
typedef void (*hte_server_answer)(void *arg, const struct hte_ask *request, struct hte_reply *reply);

struct hte_server_options {
    const char       *host; /* where to listen */
    uint16_t          first_port, last_port;
    const char       *secret; /* NULL = none; kept, not copied */
    unsigned          read_ms;
    size_t            max_frame;
    unsigned          max_peers;
    hte_server_answer answer;
    void             *arg;
};

struct hte_server_stats {
    uint64_t accepted, answered;
    uint64_t rejected; /* wrong secret, rubbish, too big */
    uint64_t timeouts; /* too slow */
    uint64_t evicted;  /* gave way at max_peers */
};

#endif
