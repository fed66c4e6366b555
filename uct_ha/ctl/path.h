/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_PATH_H_
#define UCT_HA_PATH_H_

/*
 * The ways to a peer: where its rails are, as far as it has said so, the address handle of its
 * control port on each of them, its TCP carrier. The control lock is held.
 */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* Learn or refresh where a rail of the peer is; resolves it anew on change. */
void uct_ha_path_set_rail(struct uct_ha_peer *peer, int slot, const struct uct_ha_rail_where *where, uint32_t ud_qpn);

/* Learn where its TCP carrier listens. */
void uct_ha_path_set_tcp(struct uct_ha_peer *peer, const uint8_t *ip, uint16_t port);

/* All of that, and which of its ports are up, from a packet. */
void uct_ha_path_learn_locked(struct uct_ha_peer *peer, const struct ha_packet_header *header);

/* Our own address on this rail is another one, or has moved in the table. */
void uct_ha_path_moved(struct uct_ha_peer *peer, int slot);

/* Have a way found on each rail that has none; the second rail may wait for the first
 * messages. */
void uct_ha_path_find(struct uct_ha_peer *peer, uint64_t now);

/* A word of the peer has come by this rail: there should be a way back. */
void uct_ha_path_heard(struct uct_ha_peer *peer, int slot, uint64_t now);

/* Forget the way on a rail: the next check has another one found. */
void uct_ha_path_anew(struct uct_ha_peer *peer, int slot);

/* Now and then: find the ways to it that are not known yet, or forget it; it may be gone
 * after that. */
void uct_ha_path_check(struct uct_ha_peer *peer, uint64_t now);

/* A peer that was lost lives: it was heard, or is asked for again. What has failed stays
 * failed; new connections may be made. `heard`: from when on its silence counts. */
void uct_ha_path_revive(struct uct_ha_peer *peer, uint64_t heard);

/* The interface closes. */
void uct_ha_path_destroy_peer(struct uct_ha_peer *peer);

#endif
