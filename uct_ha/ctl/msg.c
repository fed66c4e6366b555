/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control packets coming in. Nothing is concluded from where one came from: its seal, its
 * number, tag and the checks of ha_packet.h decide.
 */

#include "ctl/msg.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/beat.h"
#include "ctl/flush.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "ctl/stall.h"
#include "ctl/terms.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#include <string.h>

/* A suspected rail that answers again so soon was only busy. */
#define FALSE_ALARM_NS 100000000ull

#define OVER (HA_PAIR_CLOSING | HA_PAIR_FAILED)

/* Every packet or record that is not acted on is counted, by why. */
#define DROP(_why)                        \
    do {                                  \
        UCT_HA_STATS_ADD(ctl_dropped, 1); \
        UCT_HA_STATS_ADD(ctl_##_why, 1);  \
    } while (0)

/* A sign of life, on a rail if that carried it; then there is to be a way back. */
static void heard(struct uct_ha_peer *peer, int carrier)
{
    peer->last_rx = uct_ha_now();
    uct_ha_stall_end_locked(peer);
    if (carrier < HA_SLOTS) {
        peer->rail[carrier].last_rx = peer->last_rx;
        peer->rail[carrier].used    = 1;
        uct_ha_path_heard(peer, carrier, peer->last_rx);
    }
}

/* Less is what threads wait for a processor: a tenth of what passes from one probe to the next. */
static uint64_t slow_floor(const struct uct_ha_peer *peer)
{
    return peer->pairs->heartbeat / 10;
}

/* An answer to an older question, asked after the last one that was answered: a
 * busy rail may take longer than a heartbeat. It is alive; but to end a
 * suspicion the newest question has to be answered. */
static void take_late_pong(struct uct_ha_peer *peer, struct uct_ha_peer_rail *rail, uint32_t nonce)
{
    if (rail->bad || (int32_t)(nonce - rail->heard) <= 0 || (int32_t)(rail->nonce - nonce) <= 0) {
        DROP(stale);
        return;
    }
    if (peer->pairs->config->slow_rail != UCT_HA_SLOW_OFF) { /* it took a heartbeat more, at least */
        ha_slow_probe(&rail->slow, peer->pairs->config->slow_rail, slow_floor(peer),
                      uct_ha_now() - rail->ping_at + peer->pairs->heartbeat);
    }
    uct_ha_beat_answered_locked(peer, (int)(rail - peer->rail), uct_ha_now());
    ha_lossy_answer(&rail->lossy, 0);
    rail->heard    = nonce;
    rail->missed   = 0;
    rail->fresh_at = uct_ha_now() + peer->pairs->ctl->fresh_ns;
}

static void take_pong(struct uct_ha_peer *peer, int slot, const struct ha_packet_header *header)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (header->nonce != rail->nonce) {
        take_late_pong(peer, rail, header->nonce);
        return;
    }
    if (rail->waiting && peer->pairs->config->slow_rail != UCT_HA_SLOW_OFF) {
        ha_slow_probe(&rail->slow, peer->pairs->config->slow_rail, slow_floor(peer), uct_ha_now() - rail->ping_at);
    }
    uct_ha_beat_answered_locked(peer, slot, uct_ha_now());
    ha_lossy_answer(&rail->lossy, 1);
    rail->heard    = header->nonce;
    rail->fresh_at = uct_ha_now() + peer->pairs->ctl->fresh_ns;
    rail->answered += rail->waiting; /* a repeated answer counts once */
    rail->waiting = 0;
    rail->missed  = 0;
    if (rail->bad) {
        rail->bad = 0;
        if (rail->bad_at != 0 && rail->last_rx - rail->bad_at < FALSE_ALARM_NS) {
            UCT_HA_STATS_ADD(false_alarms, 1);
        }
        uct_ha_fact_usable_locked(peer);
    }
}

static void queue_accept(struct uct_ha_ctl *ctl, const struct ha_packet_header *header,
                         const struct ha_packet_record *record)
{
    if (record->tag != ha_pair_tag(ctl->pairs->cookie, header->src_cookie, record->sn)) {
        DROP(unfit);
        return;
    }
    if (record->dst_ep != HA_EP_ANY || ctl->lanes->leaving || __atomic_load_n(&ctl->discard, __ATOMIC_RELAXED) ||
        (record->state.flags & OVER)) {
        DROP(stale); /* of a pair that is gone, or that comes too late */
        return;
    }
    for (unsigned i = 0; i < ctl->num_accepts; i++) {
        if (ctl->accepts[i].header.src_cookie == header->src_cookie && ctl->accepts[i].record.sn == record->sn) {
            if (header->number > ctl->accepts[i].header.number) { /* said again */
                ctl->accepts[i].header = *header;
                ctl->accepts[i].record = *record;
            }
            return;
        }
    }
    if (ctl->num_accepts < UCT_HA_ACCEPTS_MAX) {
        ctl->accepts[ctl->num_accepts].header   = *header;
        ctl->accepts[ctl->num_accepts++].record = *record;
        uct_ha_wake_progress(&ctl->lanes->wake);
    }
}

/* There is no such connection here, and nothing else to say. Of its lanes nothing is
 * known: a blank state, which moves nothing at the peer. Who is over himself and has heard
 * as much is not answered: it goes by itself, or this was such an answer, and two that have
 * forgotten would go on for ever. */
static void answer_ended(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct ha_packet_record reply;

    if (record->state.flags == OVER && record->state.seen_flags == OVER) {
        return;
    }
    memset(&reply, 0, sizeof(reply));
    reply.src_ep           = record->dst_ep == HA_EP_ANY ? 0 : record->dst_ep;
    reply.dst_ep           = record->src_ep;
    reply.sn               = record->sn;
    reply.tag              = record->tag;
    reply.slots            = record->slots;
    reply.state.flags      = OVER;
    reply.state.seen_flags = OVER;
    for (int s = 0; s < HA_SLOTS; s++) {
        reply.state.lane[s].st = reply.state.lane[s].seen_st = HA_LANE_CLOSED;
    }
    uct_ha_send_record_locked(peer, &reply);
}

/* The connection is forgotten here, and the peer, who knows it by our name for it, does not know that: both sides have
 * let go, or we have given him up, and he has not heard of it. */
static void answer_forgotten(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    const struct uct_ha_conn *conn;

    ucs_list_for_each (conn, &peer->conns, peer_link) {
        if (conn->sn == record->sn) {
            return; /* it lives, whatever else is wrong with the record: nobody may end it by that */
        }
    }
    if (record->dst_ep != HA_EP_ANY) {
        answer_ended(peer, record);
    }
}

static void take_record(struct uct_ha_peer *peer, const struct ha_packet_header *header,
                        const struct ha_packet_record *record, int want)
{
    struct uct_ha_conn *conn  = uct_ha_conn_find(peer, record);
    struct ha_event     event = {.kind = HA_EV_RECORD, .record = &record->state, .value = (uint32_t)want};

    if (conn == NULL && peer->refused) {
        answer_ended(peer, record); /* so that it does not ask until its time is over */
        return;
    }
    if (conn == NULL) {
        answer_forgotten(peer, record);
        queue_accept(peer->pairs->ctl, header, record);
        return;
    }
    if (ha_packet_record_check(&conn->pair, &record->state) != 0) {
        DROP(unfit);
        return;
    }
    conn->peer_id = record->src_ep;
    uct_ha_failover_event_locked(conn, &event, HA_CTX_ASYNC);
    if (ha_pair_peer_closing(&conn->pair)) {
        uct_ha_attention_locked(conn);
    }
}

static void take_state(struct uct_ha_ctl *ctl, struct uct_ha_peer *peer, const struct ha_packet_header *header,
                       const void *data, size_t length)
{
    struct ha_packet_record record;
    int                     want = 0;

    if (peer != NULL && header->flags & HA_PACKET_WANT && header->nonce != peer->wanted) {
        peer->wanted = header->nonce; /* it comes by each rail */
        want         = 1;
    }
    for (unsigned i = 0; i < header->count; i++) {
        if (ha_packet_decode_record(data, length, i, &record) != 0) {
            DROP(malformed);
            return;
        }
        if (peer != NULL) {
            take_record(peer, header, &record, want);
        } else {
            queue_accept(ctl, header, &record);
        }
    }
}

/* It leaves. If we owe it nothing we say the same; else we stay silent until
 * we do, and it asks again. */
static void take_bye(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    struct uct_ha_conn *conn;

    __atomic_store_n(&peer->bye_rx, 1, __ATOMIC_RELAXED);
    peer->bye_at = uct_ha_now();
    uct_ha_busy_begin(&peer->busy, &peer->pairs->wakes);
    if (!(header->flags & HA_PACKET_WANT)) {
        return;
    }
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        if (!__atomic_load_n(&conn->tx->dead, __ATOMIC_RELAXED) &&
            uct_ha_txlog_head(conn->tx) != uct_ha_txlog_tail(conn->tx)) {
            return;
        }
    }
    uct_ha_send_bye_locked(peer, 0);
}

/* The key that this packet should be sealed by; 0: there is none. */
static int key_of(const struct uct_ha_pairs *pairs, const struct uct_ha_peer *peer,
                  const struct ha_packet_header *header, struct ha_secret *key)
{
    const struct ha_secret *secret = &pairs->secret;

    if (header->flags & HA_PACKET_OWN) {
        if (peer == NULL || !peer->secret_known) {
            return 0;
        }
        secret = &peer->secret;
    }
    *key = ha_seal_key(secret, header->src_cookie, header->dst_cookie);
    return 1;
}

/* Is it not one that was heard before, or brought here by another way? */
static int is_news(struct uct_ha_pairs *pairs, struct uct_ha_peer *peer, int carrier,
                   const struct ha_packet_header *header)
{
    if (header->carrier != carrier) {
        return 0;
    }
    return peer != NULL ? uct_ha_peer_hear(peer, carrier, header->number)
                        : header->number > uct_ha_peer_heard(pairs, header->src_cookie);
}

/* Who says it, to whom, and is it new: nothing else is looked at before. What is not for us, or
 * not sealed by who may speak to us, leaves no trace but a count. Returns whether to go on. */
static int is_genuine(struct uct_ha_ctl *ctl, struct uct_ha_peer *peer, int carrier,
                      const struct ha_packet_header *header, const void *data, size_t length)
{
    struct ha_secret key;

    if (header->dst_cookie != ctl->pairs->cookie || !key_of(ctl->pairs, peer, header, &key)) {
        DROP(stray);
        return 0;
    }
    if (!ha_seal_is_whole(&key, data, length)) {
        DROP(forged);
        return 0;
    }
    if (peer == NULL && header->type != HA_PACKET_STATE) {
        DROP(stray); /* knows us, but is nobody we know */
        return 0;
    }
    if (!is_news(ctl->pairs, peer, carrier, header)) {
        DROP(stale);
        return 0;
    }
    return 1;
}

/* One of two sides may have given the other one up, and told it while nothing came through; or have been given up while
 * it was stopped. Each tells all that it has, and hears what has become of it. Some may be lost. */
static void retell(struct uct_ha_peer *peer)
{
    struct uct_ha_conn *conn;

    if (ucs_likely(peer->retells == 0)) {
        return;
    }
    peer->retells--;
    ucs_list_for_each (conn, &peer->conns, peer_link) {
        uct_ha_due_send(&conn->due, &peer->due, 0);
    }
}

/* What is the same in every packet. Overtaken ones do not know how things are now. */
static void take_header(struct uct_ha_peer *peer, int carrier, const struct ha_packet_header *header)
{
    if (header->number > peer->newest) {
        peer->newest = header->number;
        uct_ha_path_learn_locked(peer, header);
    }
    if (peer->lost && !peer->bye_rx) {
        uct_ha_path_revive(peer, uct_ha_now());
        peer->retells = UCT_HA_RETELLS;
    }
    if (peer->asked >= UCT_HA_QUESTIONS) {
        peer->asked   = 0;
        peer->retells = UCT_HA_RETELLS; /* it may have given us up meanwhile */
    }
    retell(peer);
    heard(peer, carrier);
    (void)uct_ha_terms_learn_locked(peer, header);
}

/* Who is called, or answers a call, runs; of his rails it says nothing. */
static int take_call(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    if (peer == NULL || !(header->flags & HA_PACKET_CALL)) {
        return 0;
    }
    if (header->type == HA_PACKET_PING) {
        uct_ha_send_call_answer_locked(peer, header->nonce);
    } else {
        uct_ha_stall_answered_locked(peer, uct_ha_now());
    }
    return 1;
}

/* Returns whether it was for this instance. */
static int take_packet(struct uct_ha_ctl *ctl, int carrier, const void *data, size_t length)
{
    struct ha_packet_header header;
    struct uct_ha_peer     *peer;

    if (ha_packet_decode_header(data, length, &header) != 0) {
        if (ha_packet_version(data, length) != 0) {
            uct_ha_terms_tell_version("a control packet", ha_packet_version(data, length), HA_PACKET_VERSION);
        }
        DROP(malformed);
        return 0;
    }
    peer = uct_ha_peer_find(ctl->pairs, header.src_cookie);
    if (!is_genuine(ctl, peer, carrier, &header, data, length)) {
        return 0;
    }
    UCT_HA_STATS_ADD(ctl_rx, 1);
    if (take_call(peer, &header)) {
        return 1;
    }
    if (peer != NULL) {
        take_header(peer, carrier, &header);
    }
    switch (header.type) {
    case HA_PACKET_STATE:
        take_state(ctl, peer, &header, data, length);
        break;
    case HA_PACKET_PING:
        uct_ha_send_answer_locked(peer, carrier, HA_PACKET_PONG, header.nonce);
        break;
    case HA_PACKET_PONG:
        if (carrier < HA_SLOTS) {
            take_pong(peer, carrier, &header);
        }
        break;
    case HA_PACKET_BYE:
        take_bye(peer, &header);
        break;
    }
    return 1;
}

int uct_ha_msg_tcp(void *arg, const void *data, size_t length)
{
    struct uct_ha_ctl *ctl = arg;
    int                ours;

    if (ctl->lanes->leaving) {
        return 0; /* it would begin what nobody waits for any more */
    }
    ours = data != NULL && take_packet(ctl, HA_CARRIER_TCP, data, length);
    uct_ha_flush_locked(ctl);
    return ours;
}

void uct_ha_msg_receive_locked(struct uct_ha_ctl *ctl, int slot)
{
    uint8_t data[HA_PACKET_MTU];
    int     length;

    while ((length = ha_ud_recv(ctl->ud[slot], data, sizeof(data))) > 0) {
        take_packet(ctl, slot, data, (size_t)length);
    }
}
