/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control packets going out: built from what is due, one per peer and up to
 * HA_PACKET_RECORDS_MAX of its connections, sent on the carriers that can.
 */

#include "ctl/send.h"

#include "base/now.h"
#include "base/stats.h"
#include "ctl/port.h"
#include "ctl/tcp.h"
#include "lane/shared.h"
#include "pair/conn.h"
#include "pair/peer.h"

#include <string.h>

#define IN_A_ROW 10 /* heartbeats: a probe later than that says nothing about those before */

static int lacks_receives(struct uct_ha_lanes *lanes)
{
    int lacks = 0;

    for (int s = 0; s < lanes->slots; s++) {
        lacks |= uct_ha_shared_is_scarce_locked(&lanes->shared[s]);
    }
    return lacks;
}

static void fill_header(struct uct_ha_peer *peer, enum ha_packet_type type, struct ha_packet_header *header)
{
    struct uct_ha_ctl       *ctl = peer->pairs->ctl;
    struct ha_packet_rail   *rail;
    struct uct_ha_rail_where where;

    memset(header, 0, sizeof(*header));
    header->type       = (uint8_t)type;
    header->src_cookie = ctl->pairs->cookie;
    header->dst_cookie = peer->cookie;
    header->credits    = (uint16_t)ctl->lanes->credits;
    header->caps       = (uint8_t)(ctl->pairs->caps | (lacks_receives(ctl->lanes) ? HA_CAP_SCARCE : 0));
    header->opts       = ctl->pairs->opts;
    if (ctl->tcp != NULL) {
        struct uct_ha_tcp_addr tcp = uct_ha_tcp_addr(ctl->tcp);

        memcpy(header->tcp_ip, tcp.ip, sizeof(header->tcp_ip));
        header->tcp_port = tcp.port;
    }
    for (int s = 0; s < ctl->lanes->slots; s++) {
        where = uct_ha_pairs_where(ctl->pairs, s);
        rail  = &header->rails[s];
        memcpy(rail->gid, where.addr.gid, sizeof(rail->gid));
        rail->lid        = where.addr.lid;
        rail->mtu        = where.addr.mtu;
        rail->link_layer = where.addr.link_layer;
        rail->prefix_len = where.addr.prefix_len;
        rail->place      = where.place;
        rail->up         = !ctl->pairs->down[s];
        if (where.zone != 0 && where.zone == peer->rail[s].where.zone) {
            header->flags |= HA_PACKET_ZONE(s);
        }
        rail->ud_qpn = ctl->ud[s] == NULL ? 0 : ha_ud_qpn(ctl->ud[s]);
    }
}

static int can_send(const struct uct_ha_peer *peer, int slot)
{
    const struct uct_ha_ctl *ctl = peer->pairs->ctl;

    return slot < ctl->lanes->slots && peer->rail[slot].way != NULL && peer->rail[slot].ud_qpn != 0 &&
           uct_ha_port_works_locked(ctl, slot);
}

int uct_ha_send_probes(const struct uct_ha_peer *peer)
{
    return can_send(peer, 0) || can_send(peer, 1);
}

static int send_tcp(struct uct_ha_peer *peer, const void *buf, size_t length)
{
    struct uct_ha_tcp *tcp = peer->pairs->ctl->tcp;

    if (tcp == NULL || peer->tcp_addr.port == 0) {
        return 0;
    }
    if (peer->tcp_link == NULL) {
        peer->tcp_link = uct_ha_tcp_link_create(tcp, &peer->tcp_addr);
    }
    return peer->tcp_link != NULL && uct_ha_tcp_send(peer->tcp_link, buf, length, uct_ha_now());
}

/* By the peer's secret, else by ours: docs/wire.md. */
static size_t seal(const struct uct_ha_peer *peer, void *buf, size_t length)
{
    const struct ha_secret *secret = peer->secret_known ? &peer->secret : &peer->pairs->secret;
    struct ha_secret        key    = ha_seal_key(secret, peer->pairs->cookie, peer->cookie);

    return ha_seal_add(&key, buf, length);
}

static void count_sent(unsigned type)
{
    UCT_HA_STATS_ADD(ctl_tx, 1);
    switch (type) {
    case HA_PACKET_STATE:
        UCT_HA_STATS_ADD(ctl_tx_state, 1);
        break;
    case HA_PACKET_PING:
        UCT_HA_STATS_ADD(ctl_tx_ping, 1);
        break;
    case HA_PACKET_PONG:
        UCT_HA_STATS_ADD(ctl_tx_pong, 1);
        break;
    case HA_PACKET_BYE:
        UCT_HA_STATS_ADD(ctl_tx_bye, 1);
        break;
    }
}

/* `header.count` records already follow the place of the header in `buf`. */
static int send_on(struct uct_ha_peer *peer, int carrier, struct ha_packet_header *header, void *buf, size_t length)
{
    int sent;

    if (carrier < HA_SLOTS && !can_send(peer, carrier)) {
        return 0;
    }
    header->carrier = (uint8_t)carrier;
    header->number  = ++peer->told;
    header->flags |= peer->secret_known ? 0 : HA_PACKET_OWN;
    (void)ha_packet_encode_header(buf, header);
    length = seal(peer, buf, length);
    if (carrier == HA_CARRIER_TCP) {
        sent = send_tcp(peer, buf, length);
    } else {
        sent = ha_ud_send(peer->pairs->ctl->ud[carrier], peer->rail[carrier].way->ah, peer->rail[carrier].ud_qpn, buf,
                          length) == 0;
    }
    if (sent) {
        count_sent(header->type);
    }
    return sent;
}

/* A rail of the pair has no control port of its own, here or there, though it has not left. */
static int lacks_ud(const struct uct_ha_peer *peer)
{
    for (int s = 0; s < peer->pairs->lanes->slots; s++) {
        if (peer->rail[s].known && !peer->pairs->lanes->left[s] &&
            (peer->pairs->ctl->ud[s] == NULL || peer->rail[s].ud_qpn == 0)) {
            return 1;
        }
    }
    return 0;
}

/* The peer says that its port is down, or does not answer by it. */
static int is_hopeless(const struct uct_ha_peer *peer, int slot)
{
    return !peer->rail[slot].peer_up || (peer->rail[slot].bad && peer->rail[slot].bad_at != 0);
}

/* State goes out on every rail that can carry it: duplicates do no harm, and
 * which rail is dead may not be known yet. Where it is, the rail is tried only when there is no other,
 * or what is sent was sent before. TCP helps where the rails cannot. */
static int send_everywhere(struct uct_ha_peer *peer, struct ha_packet_header *header, void *buf, size_t length)
{
    int sent = 0, again = header->type != HA_PACKET_STATE || (header->flags & HA_PACKET_WANT) != 0;

    for (int hopeless = 0; hopeless <= 1; hopeless++) {
        for (int s = 0; s < peer->pairs->lanes->slots && (hopeless == 0 || again || sent == 0); s++) {
            sent += is_hopeless(peer, s) == hopeless ? send_on(peer, s, header, buf, length) : 0;
        }
    }
    if (sent == 0 || lacks_ud(peer)) {
        sent += send_on(peer, HA_CARRIER_TCP, header, buf, length);
    }
    return sent;
}

static void fill_record(const struct uct_ha_conn *conn, struct ha_packet_record *record)
{
    record->src_ep = conn->id;
    record->dst_ep = conn->peer_id;
    record->sn     = conn->sn;
    record->tag    = conn->tag;
    record->slots  = conn->pair.slots;
    ha_pair_snapshot(&conn->pair, &record->state);
}

static void send_state(struct uct_ha_peer *peer)
{
    struct uct_ha_due      *due;
    struct ha_packet_header header;
    struct ha_packet_record record;
    uint8_t                 buf[HA_PACKET_MTU];
    size_t                  length;

    do {
        fill_header(peer, HA_PACKET_STATE, &header);
        length = HA_PACKET_HEADER_LEN;
        while (header.count < HA_PACKET_RECORDS_MAX && (due = uct_ha_due_next_to_send(&peer->due)) != NULL) {
            fill_record(ucs_container_of(due, struct uct_ha_conn, due), &record);
            length = ha_packet_encode_record(buf, length, &record);
            header.flags |= due->want ? HA_PACKET_WANT : 0;
            due->want = 0;
            header.count++;
        }
        if (header.count > 0) {
            header.nonce = peer->nonce = ++peer->pairs->ctl->nonce;
            /* Not sent at all: the retransmission timer tries again. */
            (void)send_everywhere(peer, &header, buf, length);
        }
    } while (header.count == HA_PACKET_RECORDS_MAX);
}

void uct_ha_send_due_locked(struct uct_ha_ctl *ctl)
{
    struct uct_ha_due_peer *due;

    while ((due = uct_ha_due_next_peer(&ctl->pairs->dues)) != NULL) {
        send_state(ucs_container_of(due, struct uct_ha_peer, due));
    }
}

void uct_ha_send_ping_locked(struct uct_ha_peer *peer, int slot)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, HA_PACKET_PING, &header);
    header.nonce = ++peer->pairs->ctl->nonce;
    if (slot < HA_SLOTS) {
        if (peer->rail[slot].nonce == 0) {
            peer->rail[slot].heard = header.nonce - 1; /* nothing before this one counts */
        }
        peer->rail[slot].nonce   = header.nonce;
        peer->rail[slot].waiting = 1;
        peer->rail[slot].counted = 0;
        if (uct_ha_now() - peer->rail[slot].ping_at > IN_A_ROW * peer->pairs->heartbeat) {
            ha_lossy_forget(&peer->rail[slot].lossy);
            ha_slow_forget(&peer->rail[slot].slow);
        }
        peer->rail[slot].ping_at = uct_ha_now();
        ha_lossy_ask(&peer->rail[slot].lossy);
        ha_beat_ask(&peer->rail[slot].beat, peer->rail[slot].missed, peer->rail[slot].ping_at);
    }
    (void)send_on(peer, slot, &header, buf, HA_PACKET_HEADER_LEN);
}

static void send_call(struct uct_ha_peer *peer, enum ha_packet_type type, uint32_t nonce)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, type, &header);
    header.nonce = nonce;
    header.flags |= HA_PACKET_CALL;
    (void)send_on(peer, HA_CARRIER_TCP, &header, buf, HA_PACKET_HEADER_LEN);
}

void uct_ha_send_call_locked(struct uct_ha_peer *peer)
{
    send_call(peer, HA_PACKET_PING, ++peer->pairs->ctl->nonce);
}

void uct_ha_send_call_answer_locked(struct uct_ha_peer *peer, uint32_t nonce)
{
    send_call(peer, HA_PACKET_PONG, nonce);
}

void uct_ha_send_bye_locked(struct uct_ha_peer *peer, int want)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, HA_PACKET_BYE, &header);
    header.flags |= want ? HA_PACKET_WANT : 0;
    (void)send_everywhere(peer, &header, buf, HA_PACKET_HEADER_LEN);
}

void uct_ha_send_answer_locked(struct uct_ha_peer *peer, int slot, enum ha_packet_type type, uint32_t nonce)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, type, &header);
    header.nonce = nonce;
    (void)send_on(peer, slot, &header, buf, HA_PACKET_HEADER_LEN);
}

void uct_ha_send_record_locked(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];
    size_t                  length;

    fill_header(peer, HA_PACKET_STATE, &header);
    header.count = 1;
    length       = ha_packet_encode_record(buf, HA_PACKET_HEADER_LEN, record);
    (void)send_everywhere(peer, &header, buf, length);
}
