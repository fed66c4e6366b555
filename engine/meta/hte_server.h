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

#include <stdint.h>

#include "base/hte_why.h"
#include "hte_server_options.h"

struct hte_server;

int hte_server_start(const struct hte_server_options *options, struct hte_server **server, struct hte_why *why);
/* Not from an answer. */
void hte_server_stop(struct hte_server *server);

uint16_t hte_server_port(const struct hte_server *server);
/* Any thread. Lags by what the server is doing right now. */
void hte_server_get_stats(const struct hte_server *server, struct hte_server_stats *stats);

#endif
