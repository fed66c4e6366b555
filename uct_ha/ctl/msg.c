/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control packets coming in. Nothing is concluded from where one came from:
 * cookies, tag and the checks of ha_packet.h decide.
 */

#include "ctl/msg.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/beat.h"
#include "ctl/flush.h"
#include "ctl/path.h"
#include "ctl/send.h"
#include "ctl/terms.h"
#include "pair/attention.h"
#include "pair/conn.h"
#include "pair/fact.h"
#include "pair/failover.h"
#include "pair/peer.h"

#include <string.h>

/* A suspected rail that answers again so soon was only busy. */
#define FALSE_ALARM_NS 100000000ull

/* A peer that was heard since then is there, whatever others say of it. */
#define SILENT_NS 1000000000ull

/* Answers to packets for somebody else: so many at once, then one per half second. */
#define STRANGERS_BURST 8
#define STRANGERS_NS    500000000ull
#define STRANGERS_MAX   8 /* of whom anything is remembered, at a time */

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
    if (carrier < HA_SLOTS) {
        peer->rail[carrier].last_rx = peer->last_rx;
        uct_ha_beat_heard_locked(peer, carrier, peer->last_rx);
        peer->rail[carrier].used = 1;
        uct_ha_path_heard(peer, carrier, peer->last_rx);
    }
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
        ha_slow_probe(&rail->slow, peer->pairs->config->slow_rail,
                      uct_ha_now() - rail->ping_at + peer->pairs->heartbeat);
    }
    ha_beat_answer(&rail->beat, uct_ha_now());
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
        ha_slow_probe(&rail->slow, peer->pairs->config->slow_rail, uct_ha_now() - rail->ping_at);
    }
    ha_beat_answer(&rail->beat, uct_ha_now());
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
        (record->state.flags & (HA_PAIR_CLOSING | HA_PAIR_FAILED))) {
        DROP(stale); /* of a pair that is gone, or that comes too late */
        return;
    }
    for (unsigned i = 0; i < ctl->num_accepts; i++) {
        if (ctl->accepts[i].header.src_cookie == header->src_cookie && ctl->accepts[i].record.sn == record->sn) {
            ctl->accepts[i].record = *record; /* said again, perhaps newer */
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
 * known: a blank state, which moves nothing at the peer. */
static void answer_ended(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct ha_packet_record reply;

    memset(&reply, 0, sizeof(reply));
    reply.src_ep           = record->dst_ep == HA_EP_ANY ? 0 : record->dst_ep;
    reply.dst_ep           = record->src_ep;
    reply.sn               = record->sn;
    reply.tag              = record->tag;
    reply.slots            = record->slots;
    reply.state.flags      = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    reply.state.seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    for (int s = 0; s < HA_SLOTS; s++) {
        reply.state.lane[s].st = reply.state.lane[s].seen_st = HA_LANE_CLOSED;
    }
    uct_ha_send_record_locked(peer, &reply);
}

/* The connection is forgotten here, the peer still waits to hear that: both sides
 * have let go. */
static void answer_forgotten(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    if ((record->state.flags & (HA_PAIR_CLOSING | HA_PAIR_FAILED)) && record->dst_ep != HA_EP_ANY) {
        answer_ended(peer, record);
    }
}

static void take_record(struct uct_ha_peer *peer, const struct ha_packet_header *header,
                        const struct ha_packet_record *record)
{
    struct uct_ha_conn *conn  = uct_ha_conn_find(peer, record);
    struct ha_event     event = {.kind = HA_EV_RECORD, .record = &record->state};

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

    for (unsigned i = 0; i < header->count; i++) {
        if (ha_packet_decode_record(data, length, i, &record) != 0) {
            DROP(malformed);
            return;
        }
        if (peer != NULL) {
            take_record(peer, header, &record);
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

static int is_answer_to(const struct uct_ha_peer *peer, uint32_t nonce)
{
    return nonce == peer->nonce || (peer->rail[0].waiting && nonce == peer->rail[0].nonce) ||
           (peer->rail[1].waiting && nonce == peer->rail[1].nonce);
}

/* Another instance has the control port that we address. Believed only as the
 * answer to the question just asked, and only of a peer that is silent: somebody
 * may have taken over one of its addresses while it lives on the other rail. */
static void take_unknown(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    uint64_t now = uct_ha_now();

    if (!is_answer_to(peer, header->nonce) || peer->bye_rx ||
        (now > peer->last_rx && now - peer->last_rx < SILENT_NS)) {
        DROP(stale);
        return;
    }
    peer->lost = peer->replaced = 1;
    uct_ha_fact_peer_lost_locked(peer, HA_FAIL_PEER_RESTART);
}

static unsigned strangers(const struct uct_ha_pairs *pairs)
{
    struct uct_ha_peer *peer;
    unsigned            count = 0;

    ucs_list_for_each (peer, &pairs->peers, list) {
        count += peer->stranger;
    }
    return count;
}

/* Addressed to somebody who is not here: the sender may have outlived the instance
 * it talks to, and should hear of that. One that we do not know becomes a peer for
 * a moment, so that there is a way back. Few of them, whatever comes in. */
static void take_stray(struct uct_ha_ctl *ctl, int slot, const struct ha_packet_header *header)
{
    struct uct_ha_peer *peer = uct_ha_peer_find(ctl->pairs, header->src_cookie);
    uint64_t            now  = uct_ha_now();

    DROP(stray);
    if ((header->type != HA_PACKET_STATE && header->type != HA_PACKET_PING) || ctl->lanes->leaving ||
        header->src_cookie == ctl->pairs->cookie ||
        !ha_pace_take(&ctl->stranger_pace, STRANGERS_BURST, STRANGERS_NS, now)) {
        return;
    }
    if (peer == NULL) {
        if (strangers(ctl->pairs) >= STRANGERS_MAX) {
            return;
        }
        peer = uct_ha_peer_create(ctl->pairs, header->src_cookie, HA_SLOTS, header->credits);
        if (peer == NULL) {
            return;
        }
        peer->stranger = 1;
        uct_ha_path_learn_locked(peer, header);
        uct_ha_path_find(peer, now);
    }
    uct_ha_send_unknown_locked(peer, slot, header);
}

/* Returns whether it was for this instance. */
static int take_packet(struct uct_ha_ctl *ctl, int slot, const void *data, size_t length)
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
    if (header.dst_cookie != ctl->pairs->cookie) {
        take_stray(ctl, slot, &header);
        return 0;
    }
    peer = uct_ha_peer_find(ctl->pairs, header.src_cookie);
    if (peer == NULL && header.type != HA_PACKET_STATE) {
        DROP(stray); /* knows us, but is nobody we know */
        return 0;
    }
    UCT_HA_STATS_ADD(ctl_rx, 1);
    if (peer != NULL && header.type != HA_PACKET_UNKNOWN) { /* that one is not from the peer */
        uct_ha_path_learn_locked(peer, &header);
        if (peer->lost && !peer->bye_rx) {
            uct_ha_path_revive(peer, uct_ha_now());
        }
        heard(peer, slot);
        if (!peer->stranger) { /* of whom it is not known yet how many rails he has */
            (void)uct_ha_terms_learn_locked(peer, &header);
        }
    }
    switch (header.type) {
    case HA_PACKET_STATE:
        take_state(ctl, peer, &header, data, length);
        break;
    case HA_PACKET_PING:
        uct_ha_send_answer_locked(peer, slot, HA_PACKET_PONG, header.nonce);
        break;
    case HA_PACKET_PONG:
        if (slot < HA_SLOTS) {
            take_pong(peer, slot, &header);
        }
        break;
    case HA_PACKET_UNKNOWN:
        take_unknown(peer, &header);
        break;
    case HA_PACKET_BYE:
        take_bye(peer, &header);
        break;
    }
    return 1;
}

int uct_ha_msg_tcp(void *arg, const void *data, size_t length)
{
    struct uct_ha_ctl *ctl  = arg;
    int                ours = data != NULL && take_packet(ctl, UCT_HA_CARRIER_TCP, data, length);

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
