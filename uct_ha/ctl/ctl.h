/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCT_HA_CTL_H_
#define UCT_HA_CTL_H_

/*
 * The control plane of an interface: datagrams, timers and rail events in,
 * the failover core's decisions out. Runs on UCX's async thread and in progress.
 *
 * Functions named *_locked want iface->ctl.lock held.
 */

#include "uct/iface.h"

ucs_status_t uct_ha_ctl_open(struct uct_ha_iface *iface);

/* Tell every peer that we leave, wait (bounded) until none needs us any more. */
void uct_ha_ctl_leave(struct uct_ha_iface *iface);
void uct_ha_ctl_close(struct uct_ha_iface *iface);

/* Feed a fact to the core of a connection and carry out what follows. */
void uct_ha_ctl_event_locked(struct uct_ha_conn *conn, const struct ha_event *event,
                             enum ha_context ctx);
void uct_ha_ctl_event(struct uct_ha_conn *conn, const struct ha_event *event);

/* Only look whether something became possible. */
void uct_ha_ctl_run_locked(struct uct_ha_conn *conn, enum ha_context ctx);

/* The barrier behind a fence has been passed: read the proof. */
void uct_ha_ctl_settle_locked(struct uct_ha_lane *lane, enum ha_context ctx);

/* A lane's queue pair reported its end (progress). */
void uct_ha_ctl_lane_down(struct uct_ha_lane *lane, enum ha_cause cause);

/* Progress should look at this connection. */
void uct_ha_ctl_attention_locked(struct uct_ha_conn *conn);
void uct_ha_ctl_attention(struct uct_ha_conn *conn);

/* Progress: everything that only progress may do. Returns events handled. */
unsigned uct_ha_ctl_progress(struct uct_ha_iface *iface);

/* Send what is due to the peers and set the timer. */
void uct_ha_ctl_flush_locked(struct uct_ha_iface *iface);

/* Facts from the asynchronous side (ctl/async.c). */
ucs_status_t uct_ha_ctl_async_open(struct uct_ha_iface *iface);
void         uct_ha_ctl_async_close(struct uct_ha_iface *iface);

/* Events of our rails (ctl/rail.c); for uct_ha_watch_add(). */
void         uct_ha_ctl_rail_event(void *iface, int slot, const struct ha_rail_event *event);

/* Tell the core which rails towards this peer are good for new lanes. */
void         uct_ha_ctl_usable_locked(struct uct_ha_peer *peer);

/* The peer does not answer any more: what still waits for it, waits in vain. */
void         uct_ha_ctl_lose_peer_locked(struct uct_ha_peer *peer);
void         uct_ha_ctl_timer_locked(struct uct_ha_iface *iface);

/* Packets in (ctl/msg.c) and out (ctl/send.c). */
void uct_ha_ctl_msg_receive_locked(struct uct_ha_iface *iface, int slot);
void uct_ha_ctl_msg_flush_locked(struct uct_ha_iface *iface);
/* Carriers of control packets: the UD port of each rail slot, and TCP. */
#define UCT_HA_CARRIER_TCP HA_SLOTS

void uct_ha_ctl_msg_ping_locked(struct uct_ha_peer *peer, int carrier);
int  uct_ha_ctl_msg_probes(const struct uct_ha_peer *peer); /* can some rail be pinged */
void uct_ha_ctl_msg_tcp(void *iface, const void *data, size_t length);
void uct_ha_ctl_msg_answer_locked(struct uct_ha_peer *peer, int carrier, enum ha_packet_type type,
                                  uint32_t nonce);
void uct_ha_ctl_msg_record_locked(struct uct_ha_peer *peer, const struct ha_packet_record *record);
void uct_ha_ctl_msg_unknown_locked(struct uct_ha_peer *peer, int carrier,
                                   const struct ha_packet_header *asked);
void uct_ha_ctl_msg_bye_locked(struct uct_ha_peer *peer, int want);
void uct_ha_ctl_accept_locked(struct uct_ha_iface *iface, const struct uct_ha_accept *accept);

#endif
