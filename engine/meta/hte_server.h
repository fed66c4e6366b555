/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HTE_SERVER_H_
#define HTE_SERVER_H_

/*
 * The handshake server: one thread, epoll, nothing that blocks. Whoever sends
 * rubbish, half a frame or nothing loses his connection and costs nobody else
 * anything:
 *
 * - a frame has `read_ms` from the end of the last one, however it trickles in; a reply has as long to be taken
 * - before the peer has proven itself frames are of HTE_SESSION_FRAME_MAX bytes, later of `max_frame`
 * - at `max_peers` the connection that has made its server wait longest gives way, unproven ones first
 * - without file descriptors the server pauses accepting instead of spinning
 */

#include <stddef.h>
#include <stdint.h>

#include "hte_message.h"

struct hte_server;

/* Answers in the server's thread: must not block. `reply` is zeroed: no error, no payload; its payload, if any,
 * comes from malloc() and is freed by the server. */
typedef void (*hte_server_answer)(void *arg, const struct hte_ask *request, struct hte_reply *reply);

struct hte_server_options {
    const char       *host;       /* where to listen */
    uint16_t          first_port, last_port;
    const char       *secret;     /* NULL = none; kept, not copied */
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

int hte_server_start(const struct hte_server_options *options, struct hte_server **server, struct hte_why *why);
/* Not from an answer. */
void hte_server_stop(struct hte_server *server);

uint16_t hte_server_port(const struct hte_server *server);
/* Any thread. Lags by what the server is doing right now. */
void hte_server_get_stats(const struct hte_server *server, struct hte_server_stats *stats);

#endif
