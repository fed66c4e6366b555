/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control packets: built from what is due, and taken apart. A packet concerns
 * one peer and up to HA_PACKET_RECORDS_MAX of its connections. Nothing is
 * concluded from where a datagram came from: cookies, tag and the checks of
 * ha_packet.h decide.
 */

#include "uct_ha_ctl.h"
#include "uct_ha_stats.h"

#include <string.h>

/* A suspected rail that answers again so soon was only busy. */
#define FALSE_ALARM_NS 100000000ull

/* ---- out --------------------------------------------------------------------- */

static void fill_header(struct uct_ha_peer *peer, enum ha_packet_type type, int slot,
                        struct ha_packet_header *header)
{
    struct uct_ha_iface     *iface = peer->iface;
    struct ha_packet_rail   *rail;
    struct uct_ha_rail_where where;

    memset(header, 0, sizeof(*header));
    header->type       = (uint8_t)type;
    header->rail       = (uint8_t)slot;
    header->src_cookie = iface->cookie;
    header->dst_cookie = peer->cookie;
    header->credits    = (uint16_t)iface->credits;
    for (int s = 0; s < iface->slots; s++) {
        where = uct_ha_iface_where(iface, s);
        rail  = &header->rails[s];
        memcpy(rail->gid, where.addr.gid, sizeof(rail->gid));
        rail->lid        = where.addr.lid;
        rail->mtu        = where.addr.mtu;
        rail->link_layer = where.addr.link_layer;
        rail->prefix_len = where.addr.prefix_len;
        rail->place      = where.place;
        rail->up         = !iface->ctl.down[s];
        rail->ud_qpn     = iface->ctl.ud[s] == NULL ? 0 : ha_ud_qpn(iface->ctl.ud[s]);
    }
}

static int can_send(const struct uct_ha_peer *peer, int slot)
{
    const struct uct_ha_iface *iface = peer->iface;

    return slot < iface->slots && peer->rail[slot].ah != NULL && iface->ctl.ud[slot] != NULL &&
           !iface->ctl.down[slot] && !ha_ud_is_dead(iface->ctl.ud[slot]);
}

/* `header.count` records already follow the place of the header in `buf`. */
static int send_on(struct uct_ha_peer *peer, int slot, struct ha_packet_header *header, void *buf,
                   size_t length)
{
    if (!can_send(peer, slot)) {
        return 0;
    }
    header->rail = (uint8_t)slot;
    (void)ha_packet_encode_header(buf, header);
    if (ha_ud_send(peer->iface->ctl.ud[slot], peer->rail[slot].ah, peer->rail[slot].ud_qpn,
                   buf, length) != 0) {
        return 0;
    }
    UCT_HA_STATS_ADD(ctl_tx, 1);
    return 1;
}

/* State goes out on every rail that can carry it: duplicates do no harm, and
 * which rail is dead may not be known yet. */
static int send_everywhere(struct uct_ha_peer *peer, struct ha_packet_header *header, void *buf,
                           size_t length)
{
    int sent = 0;

    for (int s = 0; s < peer->iface->slots; s++) {
        sent += send_on(peer, s, header, buf, length);
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
    struct uct_ha_conn     *conn, *first = NULL;
    struct ha_packet_header header;
    struct ha_packet_record record;
    uint8_t                 buf[HA_PACKET_MTU];
    size_t                  length;

    do {
        fill_header(peer, HA_PACKET_STATE, 0, &header);
        header.nonce = peer->nonce = ++peer->iface->ctl.nonce;
        length = HA_PACKET_HEADER_LEN;
        first  = NULL;
        ucs_list_for_each(conn, &peer->conns, peer_link) {
            if (!conn->send_due) {
                continue;
            }
            if (header.count == HA_PACKET_RECORDS_MAX) {
                first = conn; /* more for another packet */
                break;
            }
            conn->send_due = 0;
            fill_record(conn, &record);
            length = ha_packet_encode_record(buf, length, &record);
            header.count++;
        }
        if (header.count > 0) {
            /* Not sent at all: the retransmission timer tries again. */
            (void)send_everywhere(peer, &header, buf, length);
        }
    } while (first != NULL);
}

void uct_ha_ctl_msg_flush_locked(struct uct_ha_iface *iface)
{
    struct uct_ha_peer *peer;

    ucs_list_for_each(peer, &iface->ctl.peers, list) {
        send_state(peer);
    }
}

void uct_ha_ctl_msg_ping_locked(struct uct_ha_peer *peer, int slot)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, HA_PACKET_PING, slot, &header);
    header.nonce             = ++peer->iface->ctl.nonce;
    peer->rail[slot].nonce   = header.nonce;
    peer->rail[slot].waiting = 1;
    (void)send_on(peer, slot, &header, buf, HA_PACKET_HEADER_LEN);
}

void uct_ha_ctl_msg_bye_locked(struct uct_ha_peer *peer, int want)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, HA_PACKET_BYE, 0, &header);
    header.flags = want ? HA_PACKET_WANT : 0;
    (void)send_everywhere(peer, &header, buf, HA_PACKET_HEADER_LEN);
}

/* Answer on the rail that it came on: PONG, UNKNOWN. */
static void answer(struct uct_ha_peer *peer, int slot, enum ha_packet_type type, uint32_t nonce)
{
    struct ha_packet_header header;
    uint8_t                 buf[HA_PACKET_MTU];

    fill_header(peer, type, slot, &header);
    header.nonce = nonce;
    (void)send_on(peer, slot, &header, buf, HA_PACKET_HEADER_LEN);
}

/* ---- in ------------------------------------------------------------------------ */

static void drop(void)
{
    UCT_HA_STATS_ADD(ctl_dropped, 1);
}

static void learn_rails(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    const struct ha_packet_rail *rail;
    struct uct_ha_rail_where     where;

    for (int s = 0; s < HA_SLOTS; s++) {
        rail = &header->rails[s];
        memset(&where, 0, sizeof(where));
        memcpy(where.addr.gid, rail->gid, sizeof(rail->gid));
        where.addr.lid        = rail->lid;
        where.addr.mtu        = rail->mtu;
        where.addr.link_layer = rail->link_layer;
        where.addr.prefix_len = rail->prefix_len;
        where.place           = rail->place;
        uct_ha_peer_set_rail(peer, s, &where, rail->ud_qpn);
    }
}

/* A sign of life on a rail. */
static void heard(struct uct_ha_peer *peer, int slot)
{
    peer->last_rx            = uct_ha_now();
    peer->rail[slot].last_rx = peer->last_rx;
}

static void take_pong(struct uct_ha_peer *peer, int slot, const struct ha_packet_header *header)
{
    struct uct_ha_peer_rail *rail = &peer->rail[slot];

    if (header->nonce != rail->nonce) {
        return; /* an answer to an older question */
    }
    rail->waiting = 0;
    rail->missed  = 0;
    rail->answered++;
    if (rail->bad) {
        rail->bad = 0;
        if (rail->bad_at != 0 && rail->last_rx - rail->bad_at < FALSE_ALARM_NS) {
            UCT_HA_STATS_ADD(false_alarms, 1);
        }
        uct_ha_ctl_usable_locked(peer);
    }
}

static struct uct_ha_conn *find_conn(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct uct_ha_ctl  *ctl = &peer->iface->ctl;
    struct uct_ha_conn *conn;

    if (record->dst_ep != HA_EP_ANY) {
        conn = record->dst_ep < ctl->table_len ? ctl->table[record->dst_ep] : NULL;
        return conn != NULL && conn->peer == peer && conn->tag == record->tag ? conn : NULL;
    }
    ucs_list_for_each(conn, &peer->conns, peer_link) {
        if (conn->sn == record->sn && conn->tag == record->tag) {
            return conn;
        }
    }
    return NULL;
}

static void queue_accept(struct uct_ha_iface *iface, const struct ha_packet_header *header,
                         const struct ha_packet_record *record)
{
    struct uct_ha_ctl *ctl = &iface->ctl;

    if (record->dst_ep != HA_EP_ANY || ctl->leaving ||
        __atomic_load_n(&iface->discard, __ATOMIC_RELAXED) ||
        (record->state.flags & (HA_PAIR_CLOSING | HA_PAIR_FAILED))) {
        return;
    }
    if (record->tag != ha_pair_tag(iface->cookie, header->src_cookie, record->sn)) {
        drop();
        return;
    }
    for (unsigned i = 0; i < ctl->num_accepts; i++) {
        if (ctl->accepts[i].header.src_cookie == header->src_cookie &&
            ctl->accepts[i].record.sn == record->sn) {
            ctl->accepts[i].record = *record; /* said again, perhaps newer */
            return;
        }
    }
    if (ctl->num_accepts < UCT_HA_ACCEPTS_MAX) {
        ctl->accepts[ctl->num_accepts].header   = *header;
        ctl->accepts[ctl->num_accepts++].record = *record;
        __atomic_store_n(&ctl->pending, 1, __ATOMIC_RELEASE);
    }
}

/* The connection is forgotten here, the peer still waits to hear that: both
 * sides have let go, so there is only one thing to say. Of the lanes nothing is
 * known any more: a blank state, which moves nothing at the peer. */
static void answer_forgotten(struct uct_ha_peer *peer, const struct ha_packet_record *record)
{
    struct ha_packet_header header;
    struct ha_packet_record reply;
    uint8_t                 buf[HA_PACKET_MTU];
    size_t                  length;

    if (!(record->state.flags & (HA_PAIR_CLOSING | HA_PAIR_FAILED)) || record->dst_ep == HA_EP_ANY) {
        return;
    }
    memset(&reply, 0, sizeof(reply));
    reply.src_ep           = record->dst_ep;
    reply.dst_ep           = record->src_ep;
    reply.sn               = record->sn;
    reply.tag              = record->tag;
    reply.slots            = record->slots;
    reply.state.flags      = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    reply.state.seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    for (int s = 0; s < HA_SLOTS; s++) {
        reply.state.lane[s].st = reply.state.lane[s].seen_st = HA_LANE_CLOSED;
    }
    fill_header(peer, HA_PACKET_STATE, 0, &header);
    header.count = 1;
    length       = ha_packet_encode_record(buf, HA_PACKET_HEADER_LEN, &reply);
    (void)send_everywhere(peer, &header, buf, length);
}

static void take_record(struct uct_ha_peer *peer, const struct ha_packet_header *header,
                        const struct ha_packet_record *record)
{
    struct uct_ha_conn *conn = find_conn(peer, record);
    struct ha_event     event = { .kind = HA_EV_RECORD, .record = &record->state };

    if (conn == NULL) {
        answer_forgotten(peer, record);
        queue_accept(peer->iface, header, record);
        return;
    }
    if (ha_packet_record_check(&conn->pair, &record->state) != 0) {
        drop();
        return;
    }
    conn->peer_id = record->src_ep;
    uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    if (ha_pair_peer_closing(&conn->pair)) {
        uct_ha_ctl_attention_locked(conn);
    }
}

static void take_state(struct uct_ha_iface *iface, struct uct_ha_peer *peer,
                       const struct ha_packet_header *header, const void *data, size_t length)
{
    struct ha_packet_record record;

    for (unsigned i = 0; i < header->count; i++) {
        if (ha_packet_decode_record(data, length, i, &record) != 0) {
            drop();
            return;
        }
        if (peer != NULL) {
            take_record(peer, header, &record);
        } else {
            queue_accept(iface, header, &record);
        }
    }
}

/* It leaves. If we owe it nothing we say the same; else we stay silent until
 * we do, and it asks again. */
static void take_bye(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    struct uct_ha_conn *conn;

    __atomic_store_n(&peer->bye_rx, 1, __ATOMIC_RELAXED);
    if (!(header->flags & HA_PACKET_WANT)) {
        return;
    }
    ucs_list_for_each(conn, &peer->conns, peer_link) {
        if (!__atomic_load_n(&conn->dead, __ATOMIC_RELAXED) &&
            __atomic_load_n(&conn->log.head, __ATOMIC_RELAXED) !=
            __atomic_load_n(&conn->log.tail, __ATOMIC_RELAXED)) {
            return;
        }
    }
    uct_ha_ctl_msg_bye_locked(peer, 0);
}

/* Another instance has the control port that we address. Believed only as the
 * answer to the question just asked. */
static void take_unknown(struct uct_ha_peer *peer, const struct ha_packet_header *header)
{
    struct uct_ha_conn *conn;
    struct ha_event     event = { .kind = HA_EV_PEER_LOST, .value = HA_FAIL_PEER_RESTART };

    if (header->nonce != peer->nonce || peer->bye_rx) {
        drop();
        return;
    }
    peer->lost = 1;
    ucs_list_for_each(conn, &peer->conns, peer_link) {
        uct_ha_ctl_event_locked(conn, &event, HA_CTX_ASYNC);
    }
}

/* Addressed to somebody who is not here. There is no path to answer on unless
 * we know the sender; then he may have outlived the instance he talks to. */
static void take_stray(struct uct_ha_iface *iface, int slot, const struct ha_packet_header *header)
{
    struct uct_ha_peer *peer = uct_ha_peer_find(iface, header->src_cookie);

    drop();
    if (peer != NULL && header->type == HA_PACKET_STATE) {
        answer(peer, slot, HA_PACKET_UNKNOWN, header->nonce);
    }
}

static void take_packet(struct uct_ha_iface *iface, int slot, const void *data, size_t length)
{
    struct ha_packet_header header;
    struct uct_ha_peer     *peer;

    if (ha_packet_decode_header(data, length, &header) != 0) {
        drop();
        return;
    }
    if (header.dst_cookie != iface->cookie) {
        take_stray(iface, slot, &header);
        return;
    }
    UCT_HA_STATS_ADD(ctl_rx, 1);
    peer = uct_ha_peer_find(iface, header.src_cookie);
    if (peer != NULL) {
        learn_rails(peer, &header);
        heard(peer, slot);
    }
    switch (header.type) {
    case HA_PACKET_STATE:
        take_state(iface, peer, &header, data, length);
        break;
    case HA_PACKET_PING:
        if (peer != NULL) {
            answer(peer, slot, HA_PACKET_PONG, header.nonce);
        }
        break;
    case HA_PACKET_PONG:
        if (peer != NULL) {
            take_pong(peer, slot, &header);
        }
        break;
    case HA_PACKET_UNKNOWN:
        if (peer != NULL) {
            take_unknown(peer, &header);
        }
        break;
    case HA_PACKET_BYE:
        if (peer != NULL) {
            take_bye(peer, &header);
        }
        break;
    }
}

void uct_ha_ctl_msg_receive_locked(struct uct_ha_iface *iface, int slot)
{
    uint8_t data[HA_PACKET_MTU];
    int     length;

    while ((length = ha_ud_recv(iface->ctl.ud[slot], data, sizeof(data))) > 0) {
        take_packet(iface, slot, data, (size_t)length);
    }
}

/* ---- a connection that the peer asks for (progress) -------------------------------- */

void uct_ha_ctl_accept_locked(struct uct_ha_iface *iface, const struct uct_ha_accept *accept)
{
    const struct ha_packet_header *header = &accept->header;
    struct ha_event                event  = { .kind = HA_EV_START };
    struct uct_ha_peer            *peer   = uct_ha_peer_find(iface, header->src_cookie);
    struct uct_ha_conn            *conn;

    if (peer == NULL) {
        peer = uct_ha_peer_create(iface, header->src_cookie, accept->record.slots,
                                  header->credits);
        if (peer == NULL) {
            return; /* the peer asks again */
        }
    }
    learn_rails(peer, header);
    uct_ha_peer_resolve(peer, uct_ha_now());
    conn = find_conn(peer, &accept->record);
    if (conn == NULL) {
        if (uct_ha_conn_create(iface, peer, accept->record.sn, &conn) != UCS_OK) {
            return;
        }
        uct_ha_conn_start_locked(conn);
    }
    if (ha_packet_record_check(&conn->pair, &accept->record.state) != 0) {
        drop();
        return;
    }
    conn->peer_id = accept->record.src_ep;
    event.kind    = HA_EV_RECORD;
    event.record  = &accept->record.state;
    uct_ha_ctl_event_locked(conn, &event, HA_CTX_PROGRESS);
    uct_ha_ctl_attention_locked(conn);
}
