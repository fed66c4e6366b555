/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control datagrams: real packets, encoded and decoded by the product. They
 * are lost, repeated, overtake each other, and sometimes a very old one shows
 * up. One that is genuine must always be accepted, however late.
 */

#include <string.h>

#include "sim.h"

static const uint64_t cookie[2] = { 0x1111111111111111ull, 0x2222222222222222ull };

/* A side that has forgotten the pair says no more than that. */
static void blank(struct ha_record *state)
{
    memset(state, 0, sizeof(*state));
    state->flags = state->seen_flags = HA_PAIR_CLOSING | HA_PAIR_FAILED;
    for (int slot = 0; slot < HA_SLOTS; slot++)
        state->lane[slot].st = state->lane[slot].seen_st = HA_LANE_CLOSED;
}

static void encode(struct sim_world *w, int x, struct sim_packet *packet)
{
    struct ha_packet_header header;
    struct ha_packet_record record;
    size_t length;

    memset(&header, 0, sizeof(header));
    memset(&record, 0, sizeof(record));
    header.type       = HA_PACKET_STATE;
    header.rail       = packet->slot;
    header.count      = 1;
    header.nonce      = w->side[x].nonce++;
    header.src_cookie = cookie[x];
    header.dst_cookie = cookie[!x];
    record.src_ep     = (uint32_t)x;
    record.dst_ep     = (uint32_t)!x;
    record.tag        = ha_pair_tag(cookie[0], cookie[1], 0);
    record.slots      = w->slots;
    if (w->side[x].gone)
        blank(&record.state);
    else
        ha_pair_snapshot(&w->side[x].pair, &record.state);
    length         = ha_packet_encode_header(packet->bytes, &header);
    length         = ha_packet_encode_record(packet->bytes, length, &record);
    packet->length = (uint16_t)length;
}

static int wire_works(const struct sim_world *w, int from, int slot)
{
    return !w->rail[slot].data_lost[from] && !w->side[0].port_down[slot] &&
           !w->side[1].port_down[slot];
}

void sim_wire_send(struct sim_world *w, int x)
{
    struct sim_side *side = &w->side[x];
    struct sim_packet packet;

    packet.slot   = (uint8_t)(side->send_slot != HA_NO_SLOT ? side->send_slot : side->heard_slot);
    packet.to     = (uint8_t)!x;
    packet.number = ++w->packets;
    encode(w, x, &packet);
    w->old[w->old_used++ % SIM_OLD_MAX] = packet;
    if (!wire_works(w, x, packet.slot) || sim_chance(w, w->loss) || w->net_used == SIM_NET_MAX) {
        w->cover[SIM_COVER_CTL_LOST]++;
        return;
    }
    w->net[w->net_used++] = packet;
}

static void accept(struct sim_world *w, int x, const struct sim_packet *packet)
{
    struct ha_event event = { .kind = HA_EV_RECORD };
    struct ha_packet_header header;
    struct ha_packet_record record;

    if (w->side[x].gone) {
        w->side[x].send_slot = packet->slot;
        sim_wire_send(w, x);
        return;
    }
    if (ha_packet_decode_header(packet->bytes, packet->length, &header) != 0 ||
        ha_packet_decode_record(packet->bytes, packet->length, 0, &record) != 0) {
        sim_violation(w, "a genuine packet is malformed");
        return;
    }
    if (ha_packet_record_check(&w->side[x].pair, &record.state) != 0) {
        sim_violation(w, "side %d refuses a genuine packet", x);
        return;
    }
    sim_trace(w, "side %d: hears packet %u: epoch %u  0.%u %s  1.%u %s  flags %x", x,
              packet->number, record.state.epoch, record.state.lane[0].gen,
              ha_lane_status_name(record.state.lane[0].st), record.state.lane[1].gen,
              ha_lane_status_name(record.state.lane[1].st), record.state.flags);
    w->side[x].heard_slot = packet->slot;
    event.record          = &record.state;
    sim_side_give(w, x, &event);
}

static int receive_old(struct sim_world *w, int x)
{
    uint32_t n = w->old_used < SIM_OLD_MAX ? w->old_used : SIM_OLD_MAX;
    const struct sim_packet *packet;

    if (n == 0)
        return 0;
    packet = &w->old[sim_below(w, n)];
    if (packet->to != x || !wire_works(w, !x, packet->slot))
        return 0;
    w->cover[SIM_COVER_CTL_OLD]++;
    accept(w, x, packet);
    return 1;
}

int sim_wire_receive(struct sim_world *w, int x)
{
    struct sim_packet packet;
    uint32_t i;

    if (sim_below(w, 200) < w->loss)
        return receive_old(w, x);
    if (w->net_used == 0)
        return 0;
    i = sim_below(w, w->net_used);
    if (w->net[i].to != x)
        return 0;
    packet = w->net[i];
    if (sim_chance(w, 10)) {
        w->cover[SIM_COVER_CTL_REPEATED]++; /* and stays on the wire */
    } else {
        w->net[i] = w->net[--w->net_used];
    }
    if (!wire_works(w, !x, packet.slot) && !sim_chance(w, 5))
        return 1; /* died on the way */
    w->cover[SIM_COVER_CTL_REORDERED] += packet.number < w->newest[x];
    if (packet.number > w->newest[x])
        w->newest[x] = packet.number;
    accept(w, x, &packet);
    return 1;
}
