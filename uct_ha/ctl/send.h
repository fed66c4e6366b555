/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_SEND_H_
#define UCT_HA_SEND_H_

/*
 * Control packets going out: built from what is due, one per peer and up to
 * HA_PACKET_RECORDS_MAX of its connections, sent on the carriers that can. The control lock
 * is held.
 */

#include "ctl/ctl.h"

struct uct_ha_peer;

/* The state of every connection that has changed, to every peer. */
void uct_ha_send_due_locked(struct uct_ha_ctl *ctl);

void uct_ha_send_ping_locked(struct uct_ha_peer *peer, int carrier);
int  uct_ha_send_probes(const struct uct_ha_peer *peer); /* can some rail be pinged */
void uct_ha_send_answer_locked(struct uct_ha_peer *peer, int carrier, enum ha_packet_type type, uint32_t nonce);
void uct_ha_send_record_locked(struct uct_ha_peer *peer, const struct ha_packet_record *record);
void uct_ha_send_call_locked(struct uct_ha_peer *peer); /* by TCP: ctl/stall.h */
void uct_ha_send_call_answer_locked(struct uct_ha_peer *peer, uint32_t nonce);
void uct_ha_send_bye_locked(struct uct_ha_peer *peer, int want);

#endif
