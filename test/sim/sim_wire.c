/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control datagrams: real packets, encoded and decoded by the product. They
 * are lost, repeated, late, overtake each other, and sometimes a very old one
 * shows up, even one of a process that is no more. One that is genuine must
 * always be accepted, however late; one for another process never.
 */

#include <string.h>

#include "sim.h"

/* A side that has forgotten the pair says no more than that. */
static void blank(struct ha_record *state)
{
    memset(state, 0, sizeof(*state));
    state->flags = state->seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        state->lane[slot].st = state->lane[slot].seen_st = HA_LANE_CLOSED;
    }
}

static size_t encode_record(struct sim_pair *p, int x, uint8_t *bytes, size_t length)
{
    const struct sim_side  *side = &p->side[x], *peer = &p->side[!x];
    struct ha_packet_record record;

    memset(&record, 0, sizeof(record));
    record.src_ep = side->ep;
    record.dst_ep = peer->ep;
    record.tag    = ha_pair_tag(side->cookie, peer->cookie, 0);
    record.slots  = p->slots;
    if (side->gone) {
        blank(&record.state);
    } else {
        ha_pair_snapshot(&side->pair, &record.state);
    }
    return ha_packet_encode_record(bytes, length, &record);
}

static void encode(struct sim_pair *p, int x, enum ha_packet_type type, uint32_t nonce, struct sim_packet *packet)
{
    struct ha_packet_header header;
    size_t                  length;

    memset(&header, 0, sizeof(header));
    header.type       = type;
    header.rail       = packet->slot;
    header.count      = type == HA_PACKET_STATE;
    header.nonce      = nonce;
    header.src_cookie = p->side[x].cookie;
    header.dst_cookie = p->side[!x].cookie;
    length            = ha_packet_encode_header(packet->bytes, &header);
    if (type == HA_PACKET_STATE) {
        length = encode_record(p, x, packet->bytes, length);
    }
    packet->length = (uint16_t)length;
}

static uint64_t arrival(struct sim_pair *p, int slot)
{
    struct sim_world *w    = p->world;
    uint32_t          most = w->delay * (uint32_t)SIM_MS;

    if (sim_port_of(p, 0, slot)->slow || sim_port_of(p, 1, slot)->slow) {
        most += 10 * (uint32_t)SIM_MS;
    }
    return most == 0 ? w->now : w->now + sim_below(w, most);
}

static void put_on_wire(struct sim_pair *p, int x, struct sim_packet *packet)
{
    struct sim_world *w = p->world;

    packet->to                          = (uint8_t)!x;
    packet->number                      = ++p->packets;
    packet->at                          = arrival(p, packet->slot);
    p->old[p->old_used++ % SIM_OLD_MAX] = *packet;
    if (!sim_path_works(p, x, packet->slot) || sim_chance(w, w->loss) ||
        sim_chance(w, sim_port_of(p, x, packet->slot)->ctl_lost) || p->net_used == SIM_NET_MAX) {
        w->cover[SIM_COVER_CTL_LOST]++;
        return;
    }
    p->net[p->net_used++] = *packet;
}

void sim_wire_send(struct sim_pair *p, int x)
{
    struct sim_side  *side   = &p->side[x];
    struct sim_packet packet = {.slot = (uint8_t)(side->send_slot != HA_NO_SLOT ? side->send_slot : side->heard_slot)};

    encode(p, x, HA_PACKET_STATE, ++side->nonce, &packet);
    put_on_wire(p, x, &packet);
}

/* ---- receiving ---------------------------------------------------------------- */

/* The process that has the port now is not the one that is addressed, and says so
 * in its name: the cookies and the nonce are those of the question. */
static void answer_unknown(struct sim_pair *p, int x, const struct sim_packet *packet)
{
    struct ha_packet_header header;
    struct sim_packet       reply = {.slot = packet->slot};

    if (ha_packet_decode_header(packet->bytes, packet->length, &header) != 0 || header.type != HA_PACKET_STATE) {
        return;
    }
    encode(p, x, HA_PACKET_UNKNOWN, header.nonce, &reply);
    put_on_wire(p, x, &reply);
}

/* Is it addressed to this side by its peer? As the glue looks it up. */
static int is_for(const struct sim_pair *p, int x, const struct ha_packet_header *header,
                  const struct ha_packet_record *record)
{
    const struct sim_side *side = &p->side[x], *peer = &p->side[!x];

    return header->dst_cookie == side->cookie && header->src_cookie == peer->cookie &&
           (header->type != HA_PACKET_STATE ||
            (record->dst_ep == side->ep && record->tag == ha_pair_tag(side->cookie, peer->cookie, 0)));
}

static void take_unknown(struct sim_pair *p, int x, const struct ha_packet_header *header)
{
    if (header->nonce != p->side[x].nonce || p->side[x].gone) {
        return; /* not the answer to what we asked last */
    }
    p->world->cover[SIM_COVER_UNKNOWN_BELIEVED]++;
    sim_side_restarted(p, x);
}

static void take_state(struct sim_pair *p, int x, const struct sim_packet *packet,
                       const struct ha_packet_record *record)
{
    struct ha_event event = {.kind = HA_EV_RECORD, .record = &record->state};

    p->side[x].heard_slot = packet->slot;
    if (p->side[x].gone) {
        p->side[x].send_slot = packet->slot;
        sim_wire_send(p, x);
        return;
    }
    if (ha_packet_record_check(&p->side[x].pair, &record->state) != 0) {
        sim_violation(p, "side %d refuses a genuine packet", x);
        return;
    }
    sim_trace(p, "side %d: hears packet %u: epoch %u  0.%u %s  1.%u %s  flags %x", x, packet->number,
              record->state.epoch, record->state.lane[0].gen, ha_lane_status_name(record->state.lane[0].st),
              record->state.lane[1].gen, ha_lane_status_name(record->state.lane[1].st), record->state.flags);
    sim_side_give(p, x, &event);
}

static void accept(struct sim_pair *p, int x, const struct sim_packet *packet)
{
    struct ha_packet_header header;
    struct ha_packet_record record;

    if (p->side[x].dead) {
        if (p->side[x].reborn) {
            answer_unknown(p, x, packet);
        }
        return;
    }
    if (ha_packet_decode_header(packet->bytes, packet->length, &header) != 0 ||
        (header.type == HA_PACKET_STATE && ha_packet_decode_record(packet->bytes, packet->length, 0, &record) != 0)) {
        sim_violation(p, "a genuine packet is malformed");
        return;
    }
    if (!is_for(p, x, &header, &record)) {
        p->world->cover[SIM_COVER_STRANGER]++;
    } else if (header.type == HA_PACKET_UNKNOWN) {
        take_unknown(p, x, &header);
    } else {
        take_state(p, x, packet, &record);
    }
}

/* One that was sent long ago, perhaps to the process that was here before. */
static int receive_old(struct sim_pair *p, int x)
{
    const struct sim_pair   *from = p->before != NULL && sim_chance(p->world, 30) ? p->before : p;
    uint32_t                 n    = from->old_used < SIM_OLD_MAX ? from->old_used : SIM_OLD_MAX;
    const struct sim_packet *packet;

    if (n == 0) {
        return 0;
    }
    packet = &from->old[sim_below(p->world, n)];
    if (packet->to != x || !sim_path_works(p, !x, packet->slot)) {
        return 0;
    }
    p->world->cover[SIM_COVER_CTL_OLD]++;
    accept(p, x, packet);
    return 1;
}

int sim_wire_receive(struct sim_pair *p, int x, int slot)
{
    struct sim_world *w = p->world;
    struct sim_packet packet;
    uint32_t          i;

    (void)slot;
    if (sim_below(w, 200) < w->loss && (p->net_used > 0 || sim_chance(w, 4))) {
        return receive_old(p, x); /* rarely by itself: time would not pass */
    }
    if (p->net_used == 0) {
        return 0;
    }
    i = sim_below(w, p->net_used);
    if (p->net[i].to != x || p->net[i].at > w->now) {
        return 0;
    }
    packet = p->net[i];
    if (sim_chance(w, 10)) {
        w->cover[SIM_COVER_CTL_REPEATED]++; /* and stays on the wire */
    } else {
        p->net[i] = p->net[--p->net_used];
    }
    if (!sim_path_works(p, !x, packet.slot) && !sim_chance(w, 5)) {
        return 1; /* died on the way */
    }
    w->cover[SIM_COVER_CTL_REORDERED] += packet.number < p->newest[x];
    w->cover[SIM_COVER_LATE_CONTROL] += w->now > packet.at && w->delay > 0;
    if (packet.number > p->newest[x]) {
        p->newest[x] = packet.number;
    }
    accept(p, x, &packet);
    return 1;
}
