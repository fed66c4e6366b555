/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TCP_H_
#define UCT_HA_TCP_H_

/*
 * The second carrier of control packets: TCP over a management network. The
 * same packets as on UD, each behind its length (2 bytes, big endian). For
 * devices without user UD, and as a way that survives both rails' troubles.
 *
 * A link sends only; what a peer sends comes in on a connection that it made.
 * So nothing has to be negotiated, and packets may be lost here too: while a
 * link connects only the newest is kept, while its socket is full they are
 * dropped; the protocol above repeats.
 *
 * Threads: sockets are served on UCX's async thread under the lock given at
 * open; every function but open and close wants that lock held.
 */

#include "abi/uct_ha_abi.h"
#include "pair/where.h"

#include <pthread.h>
#include <stdint.h>

struct uct_ha_tcp;
struct uct_ha_tcp_link;

/* A packet came (lock held). The data is valid during the call. Returns whether it was for us. Without
 * data: a connection has come, of which nothing is known yet. */
typedef int (*uct_ha_tcp_cb)(void *arg, const void *data, size_t length);

/* Listen on the address of net device `interface`, or, when that is empty, of
 * the first one that is neither loopback nor one of the rails. */
ucs_status_t uct_ha_tcp_open(const char *interface, const struct ha_rail_addr *rails, unsigned num_rails,
                             pthread_mutex_t *lock, uct_ha_tcp_cb cb, void *arg, struct uct_ha_tcp **tcp_p);

/* The lock is not held. Links of this carrier are gone afterwards. */
void uct_ha_tcp_close(struct uct_ha_tcp *tcp);

/* Who connects and says nothing that is for us is sent away in time: uct_ha_tcp_sweep() is due then,
 * UINT64_MAX: there is none. The lock is held. */
uint64_t uct_ha_tcp_due(const struct uct_ha_tcp *tcp);
void     uct_ha_tcp_sweep(struct uct_ha_tcp *tcp, uint64_t now);

struct uct_ha_tcp_addr uct_ha_tcp_addr(const struct uct_ha_tcp *tcp);

/* A way to a peer; connects when first used and again after an error.
 * NULL: no memory. */
struct uct_ha_tcp_link *uct_ha_tcp_link_create(struct uct_ha_tcp *tcp, const struct uct_ha_tcp_addr *addr);
void                    uct_ha_tcp_link_destroy(struct uct_ha_tcp_link *link);

/* 1 = handed to the socket or kept until it is connected, 0 = dropped. */
int uct_ha_tcp_send(struct uct_ha_tcp_link *link, const void *data, size_t length, uint64_t now);

/* Whatever was sent has arrived at the peer's kernel, which keeps it for the process that has the socket. */
int uct_ha_tcp_is_acknowledged(const struct uct_ha_tcp_link *link);

#endif
