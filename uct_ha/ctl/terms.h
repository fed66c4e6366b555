/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_TERMS_H_
#define UCT_HA_TERMS_H_

/*
 * Connect options between this interface and its peers; what they mean and how two
 * sides agree is in core/ha_opts.h. A peer's are taken from the first control packet
 * that it sends, which is before a lane to it can be connected, and then kept.
 */

#include "core/ha_packet.h"

struct uct_ha_pairs;
struct uct_ha_peer;

/* What this side wants and can; sizes, RTO and rails of the interface are known. */
void uct_ha_terms_init(struct uct_ha_pairs *pairs);

/* Take the peer's options from its packet; the control lock is held. When they cannot
 * be, one error says why, and its connections end with it. Returns whether the peer can
 * be talked to. */
int uct_ha_terms_learn_locked(struct uct_ha_peer *peer, const struct ha_packet_header *header);

/* One warning per process when `what` of a peer ("the address") is of another version. */
void uct_ha_terms_tell_version(const char *what, unsigned version, unsigned own);

/* What was agreed with each peer, as a file of this object of UCX's virtual file system. */
void uct_ha_terms_vfs(void *obj, struct uct_ha_pairs *pairs);

#endif
