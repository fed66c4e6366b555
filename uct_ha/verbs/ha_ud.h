/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_UD_H_
#define HA_UD_H_

/*
 * The control datagram port of an interface on one rail: a UD queue pair with
 * completion queues of its own, receive ring and send ring. It may lose datagrams
 * at any time; the protocol above does not care.
 *
 * Threads: the caller serialises everything but ha_ud_ah_create(), which may
 * block for a second while the neighbour is resolved and belongs on the
 * worker thread (base/job.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "ha_rail.h"

struct ha_ud;
struct ha_ud_ah;

#define HA_UD_QKEY 0x48415243u /* below 0x80000000: needs no privilege */

/* `max_len`: largest datagram either way, at most the rail's MTU. */
int  ha_ud_create(struct ha_rail *rail, unsigned depth, unsigned max_len, struct ha_ud **ud_p);
void ha_ud_destroy(struct ha_ud *ud);

uint32_t ha_ud_qpn(const struct ha_ud *ud);
int      ha_ud_fd(const struct ha_ud *ud); /* readable when datagrams came; armed by ha_ud_arm() */
int      ha_ud_arm(struct ha_ud *ud);

/* The queue pair died (its rail went away): bring the same number back to
 * life. Everything in flight is lost. */
int ha_ud_recycle(struct ha_ud *ud);
int ha_ud_is_dead(const struct ha_ud *ud);

/* Copy and send; reaps earlier ones. -EAGAIN: the device is that slow; -EMSGSIZE; -EPIPE: dead, recycle first. */
int ha_ud_send(struct ha_ud *ud, struct ha_ud_ah *ah, uint32_t remote_qpn, const void *data, size_t length);

/* Take one datagram: copies at most `max` bytes, returns its length, 0 when
 * there is none, negative when the queue pair died. Also reaps sends. */
int ha_ud_recv(struct ha_ud *ud, void *data, size_t max);

/* Address handle to a rail of the peer: a snapshot of the path. May block. */
int  ha_ud_ah_create(struct ha_rail *rail, const struct ha_rail_addr *remote, struct ha_ud_ah **ah_p);
void ha_ud_ah_destroy(struct ha_ud_ah *ah);

#endif
