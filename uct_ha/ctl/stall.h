/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_STALL_H_
#define UCT_HA_STALL_H_

/*
 * A process that gets no processor, or is stopped (SIGSTOP, a debugger, a machine that swaps), is not dead: the peer's,
 * or this one.
 *
 *     silent for a quarter of DEAD_PEER ──▶ called by TCP, every eighth of it
 *                                              ├ answers: it runs, so its rails are silent ────▶ DEAD_PEER, as ever
 *                                              ├ its kernel acknowledges, nobody answers: stalled ──▶ six times as long
 *                                              └ neither: the process, or its host, is gone ───▶ DEAD_PEER
 *
 * The kernel acknowledges only while the process has the socket: with the process its connections end, unless a child
 * that it forked lives on: then who was killed is waited for as if he were stopped. A call says nothing of rails, so
 * neither side takes it for a sign of life. Without a TCP carrier nobody is called, and no more than 64 at a time.
 *
 * All under the control lock.
 */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* The peer is asked by its rails, now: call it too, if it has been silent for long. */
void uct_ha_stall_look_locked(struct uct_ha_peer *peer, uint64_t now);

/* Silent for DEAD_PEER: is it to be waited for all the same? */
int uct_ha_stall_may_wait_locked(const struct uct_ha_peer *peer, uint64_t now);

/* An answer to a call. */
void uct_ha_stall_answered_locked(struct uct_ha_peer *peer, uint64_t now);

/* The peer was heard, is given up, or goes. */
void uct_ha_stall_end_locked(struct uct_ha_peer *peer);

/* If this process was stopped or starved: what it did not hear meanwhile says nothing about its peers. Only that time
 * is forgiven: pauses may be many, and a dead peer is to be noticed all the same. */
void uct_ha_stall_forgive_locked(struct uct_ha_ctl *ctl, uint64_t now);

#endif
