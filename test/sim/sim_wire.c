/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control datagrams: real packets, encoded and decoded by the product. They
 * are lost, repeated, late, overtake each other, and sometimes a very old one
 * shows up, even one of a process that is no more. The glue drops those, by their
 * number; the core has to do without that: here every genuine one is accepted,
 * however late; one for another process never.
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

/* Who has been told a process' name knows its secret here. */
static struct ha_secret key_of(uint64_t from, uint64_t to)
{
    struct ha_secret secret = {{0}};

    memcpy(secret.byte, &to, sizeof(to));
    return ha_seal_key(&secret, from, to);
}

static void encode(struct sim_pair *p, int x, struct sim_packet *packet)
{
    struct ha_secret        key = key_of(p->side[x].cookie, p->side[!x].cookie);
    struct ha_packet_header header;
    size_t                  length;

    memset(&header, 0, sizeof(header));
    header.type       = HA_PACKET_STATE;
    header.carrier    = packet->slot;
    header.count      = 1;
    header.flags      = p->side[x].send_asks ? HA_PACKET_WANT : 0;
    header.number     = ++p->side[x].told;
    header.src_cookie = p->side[x].cookie;
    header.dst_cookie = p->side[!x].cookie;
    length            = ha_packet_encode_header(packet->bytes, &header);
    length            = encode_record(p, x, packet->bytes, length);
    packet->length    = (uint16_t)ha_seal_add(&key, packet->bytes, length);
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

    encode(p, x, &packet);
    side->send_asks = 0;
    put_on_wire(p, x, &packet);
}

/* ---- receiving ---------------------------------------------------------------- */

/* Is it addressed to this side by its peer? As the glue looks it up. */
static int is_for(const struct sim_pair *p, int x, const struct ha_packet_header *header,
                  const struct ha_packet_record *record)
{
    const struct sim_side *side = &p->side[x], *peer = &p->side[!x];

    return header->dst_cookie == side->cookie && header->src_cookie == peer->cookie && record->dst_ep == side->ep &&
           record->tag == ha_pair_tag(side->cookie, peer->cookie, 0);
}

static void take_state(struct sim_pair *p, int x, const struct sim_packet *packet,
                       const struct ha_packet_record *record, int asks)
{
    struct ha_event event = {.kind = HA_EV_RECORD, .record = &record->state, .value = (uint32_t)asks};

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
    struct ha_secret        key;

    if (p->side[x].dead) {
        return;
    }
    if (ha_packet_decode_header(packet->bytes, packet->length, &header) != 0 ||
        ha_packet_decode_record(packet->bytes, packet->length, 0, &record) != 0) {
        sim_violation(p, "a genuine packet is malformed");
        return;
    }
    key = key_of(header.src_cookie, header.dst_cookie);
    if (!ha_seal_is_whole(&key, packet->bytes, packet->length)) {
        sim_violation(p, "the seal of a genuine packet is broken");
        return;
    }
    if (!is_for(p, x, &header, &record)) {
        p->world->cover[SIM_COVER_STRANGER]++;
    } else {
        take_state(p, x, packet, &record, (header.flags & HA_PACKET_WANT) != 0);
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
