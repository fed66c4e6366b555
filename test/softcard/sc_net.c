/* SPDX-License-Identifier: BSD-3-Clause */

/* The way of a packet: straight to a queue pair of this process, or through a ring. */

#include <stdlib.h>
#include <string.h>

#include "sc_card.h"

#define OP_FILLER 0xff /* up to the end of the ring */

static uint64_t record_size(uint32_t bytes)
{
    return sizeof(struct sc_packet) + ((bytes + 63ull) & ~63ull);
}

static void deliver(const struct sc_packet *packet, const uint8_t *payload)
{
    struct sc_qp *qp = sc_qp_find(packet->dst_qpn);

    if (qp == NULL || qp->base.qp_num != packet->dst_qpn || qp->sport != packet->dport) {
        return;
    }
    softcard_counts.packets++;
    if (packet->op == SC_OP_DATAGRAM) {
        sc_ud_receive(qp, packet, payload);
    } else if (qp->base.qp_type != IBV_QPT_RC || packet->src_qpn != qp->attr.dest_qp_num ||
               packet->sport != qp->dport) {
        return;
    } else if (sc_op_is_answer(packet->op)) {
        sc_requester_answer(qp, packet, payload);
    } else {
        sc_responder_request(qp, packet, payload);
    }
}

/* NULL: that process is not there (any more). */
static struct sc_peer *find_peer(unsigned place)
{
    struct sc_member *member = &sc.fabric->member[place];
    struct sc_peer   *peer   = &sc.peer[place];

    if (__atomic_load_n(&member->pid, __ATOMIC_ACQUIRE) == 0) {
        return NULL;
    }
    if (peer->inbox != NULL && peer->life == member->life) {
        return peer;
    }
    if (peer->inbox != NULL) {
        sc_fabric_unmap(peer->inbox);
    }
    peer->life  = member->life;
    peer->inbox = sc_fabric_map((int)place, peer->life);
    if (peer->inbox == NULL) {
        return NULL;
    }
    peer->head_seen = peer->inbox->ring[sc.place].head;
    return peer;
}

static int has_room(struct sc_peer *peer, struct sc_ring *ring, uint64_t size)
{
    if (SC_RING_BYTES - (ring->tail - peer->head_seen) >= size) {
        return 1;
    }
    peer->head_seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    if (SC_RING_BYTES - (ring->tail - peer->head_seen) >= size) {
        return 1;
    }
    __atomic_store_n(&ring->want_room, 1, __ATOMIC_SEQ_CST);
    peer->head_seen = __atomic_load_n(&ring->head, __ATOMIC_SEQ_CST);
    return SC_RING_BYTES - (ring->tail - peer->head_seen) >= size;
}

/* After something was put into our ring in its inbox, or taken out of its ring in ours. What is set already is left
 * alone, and its owner the line that it is in: he takes it before he looks at the rings. */
static void tell(unsigned place, struct sc_inbox *inbox)
{
    struct sc_member *member = &sc.fabric->member[place];
    uint64_t          ours   = 1ull << sc.place;

    if ((__atomic_load_n(&inbox->ready, __ATOMIC_SEQ_CST) & ours) == 0) {
        __atomic_fetch_or(&inbox->ready, ours, __ATOMIC_SEQ_CST); /* and then `asleep`, in this order */
    }
    if (__atomic_load_n(&member->asleep, __ATOMIC_SEQ_CST) &&
        __atomic_exchange_n(&member->asleep, 0, __ATOMIC_SEQ_CST)) {
        sc_member_ring(member);
    }
}

static void block(struct sc_qp *qp)
{
    if (!qp->blocked) {
        qp->blocked = 1;
        __atomic_fetch_add(&sc.blocked, 1, __ATOMIC_RELAXED);
    }
}

static int put(struct sc_qp *from, unsigned place, const struct sc_packet *packet, const void *payload)
{
    struct sc_peer *peer = find_peer(place);
    struct sc_ring *ring;
    uint64_t        size = record_size(packet->bytes), to_end, skip;
    uint8_t        *at;

    if (peer == NULL) {
        return 1;
    }
    ring   = &peer->inbox->ring[sc.place];
    to_end = SC_RING_BYTES - ring->tail % SC_RING_BYTES;
    skip   = to_end < size ? to_end : 0;
    if (!has_room(peer, ring, skip + size)) {
        if (from != NULL) {
            block(from);
        }
        return 0;
    }
    if (skip > 0) {
        ((struct sc_packet *)(void *)&ring->data[ring->tail % SC_RING_BYTES])->op = OP_FILLER;
    }
    at = &ring->data[(ring->tail + skip) % SC_RING_BYTES];
    memcpy(at, packet, sizeof(*packet));
    if (packet->bytes > 0) {
        memcpy(at + sizeof(*packet), payload, packet->bytes);
    }
    __atomic_store_n(&ring->tail, ring->tail + skip + size, __ATOMIC_SEQ_CST); /* before `ready` is looked at */
    tell(place, peer->inbox);
    return 1;
}

/* `from` is NULL when nobody has to send it again: it stays where it was kept. */
static int send_once(struct sc_qp *from, const struct sc_packet *packet, const void *payload)
{
    unsigned place = (packet->dst_qpn >> 16) - 1;

    if (place == (unsigned)sc.place) {
        deliver(packet, payload);
        if (packet->flags & SC_ACK_REQ) {
            sc_responder_acks();
        }
        return 1;
    }
    return place < SC_PROCS_MAX ? put(from, place, packet, payload) : 1;
}

/* Keeps what later ones overtake. Its sender may be gone by then: a packet under way does not ask. */
static void hold_back(const struct sc_packet *packet, const void *payload, uint64_t due)
{
    struct sc_late **link = &sc.late, *late = malloc(sizeof(*late) + packet->bytes);

    if (late == NULL) {
        return; /* lost: that happens to packets */
    }
    late->due    = due;
    late->packet = *packet;
    if (packet->bytes > 0) {
        memcpy(late->payload, payload, packet->bytes);
    }
    while (*link != NULL && (*link)->due <= due) {
        link = &(*link)->next;
    }
    late->next = *link;
    *link      = late;
    sc_nic_mind_time();
}

void sc_net_send_late(uint64_t now)
{
    struct sc_late *late;

    while ((late = sc.late) != NULL && late->due <= now) {
        sc.late = late->next; /* before: what it causes may be held back, too */
        if (!sc_fault_cut(&late->packet) && !send_once(NULL, &late->packet, late->payload)) {
            late->next = sc.late;
            sc.late    = late;
            return; /* no room: at the next tick */
        }
        free(late);
    }
}

#define BURST_NS    1000000ull
#define FRAME_BYTES 64u

/* A port of some rate takes what it can send within BURST_NS. Processes of its host share it. */
static int has_time(struct sc_port_state *port, uint32_t bytes)
{
    uint32_t rate = __atomic_load_n(&port->rate, __ATOMIC_RELAXED);
    uint64_t now, before, from;

    if (rate == 0) {
        return 1;
    }
    now    = sc_now();
    before = __atomic_load_n(&port->free_at, __ATOMIC_RELAXED);
    do {
        if (before > now + BURST_NS) {
            return 0;
        }
        from = before > now ? before : now;
    } while (!__atomic_compare_exchange_n(&port->free_at, &before, from + (bytes + FRAME_BYTES) * 1000000ull / rate, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_fetch_add(&port->bytes, bytes, __ATOMIC_RELAXED);
    return 1;
}

int sc_net_send(struct sc_qp *from, struct sc_packet *packet, const void *payload)
{
    uint64_t delay_ns = 0;

    if (packet->dport == SC_NO_PORT || packet->sport == SC_NO_PORT) {
        return 1;
    }
    if (__atomic_load_n(&sc.fabric->faulty, __ATOMIC_RELAXED)) {
        if (from != NULL && !has_time(&sc.fabric->port[packet->sport], packet->bytes)) {
            block(from);
            sc_nic_busy(from); /* its thread tries again, if nobody else does */
            return 0;
        }
        switch (sc_fault_of(from, packet, &delay_ns)) {
        case SC_FATE_LOST:
            return 1;
        case SC_FATE_TWICE:
            (void)send_once(from, packet, payload);
            break;
        case SC_FATE_LATE:
            hold_back(packet, payload, sc_now() + delay_ns);
            return 1;
        default:
            break;
        }
    }
    return send_once(from, packet, payload);
}

static void drain_ring(unsigned place, struct sc_ring *ring)
{
    uint64_t tail;

    while (ring->head != (tail = __atomic_load_n(&ring->tail, __ATOMIC_SEQ_CST))) {
        while (ring->head != tail) {
            uint64_t                at     = ring->head % SC_RING_BYTES;
            const struct sc_packet *packet = (const void *)&ring->data[at];
            uint64_t                size   = SC_RING_BYTES - at;

            if (packet->op != OP_FILLER) {
                size = record_size(packet->bytes);
                deliver(packet, (const uint8_t *)(packet + 1));
            }
            __atomic_store_n(&ring->head, ring->head + size, __ATOMIC_RELEASE);
        }
    }
    if (__atomic_load_n(&ring->want_room, __ATOMIC_SEQ_CST)) {
        struct sc_peer *peer = find_peer(place);

        __atomic_store_n(&ring->want_room, 0, __ATOMIC_SEQ_CST);
        if (peer != NULL) {
            tell(place, peer->inbox);
        }
    }
}

void sc_net_drain(void)
{
    uint64_t ready = __atomic_load_n(&sc.inbox->ready, __ATOMIC_RELAXED);

    if (ready == 0) {
        return;
    }
    ready = __atomic_exchange_n(&sc.inbox->ready, 0, __ATOMIC_SEQ_CST);
    while (ready != 0) {
        unsigned place = (unsigned)__builtin_ctzll(ready);

        ready &= ready - 1;
        drain_ring(place, &sc.inbox->ring[place]);
    }
}

void sc_net_unblock(struct sc_qp *qp)
{
    if (qp->blocked) {
        qp->blocked = 0;
        __atomic_fetch_sub(&sc.blocked, 1, __ATOMIC_RELAXED);
        sc_responder_pump(qp);
        sc_requester_pump(qp);
    }
}
