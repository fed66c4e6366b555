/* SPDX-License-Identifier: BSD-3-Clause */

/* Control packets to bytes and back. The layout is that of docs/wire.md. */

#include <errno.h>
#include <string.h>

#include "ha_packet.h"

#define HA_WIRE_24BIT    0xffffffu /* PSN and queue pair numbers, whatever HA_PSN_BITS is */
#define HA_WIRE_RAIL_LEN 28
#define HA_WIRE_LANE_LEN 40
#define HA_WIRE_LANES_AT 32 /* within a record */
#define HA_WIRE_RAILS_AT 32 /* within the header */

/* ---- a cursor over bytes ---- */

static uint8_t *ha_put8(uint8_t *p, unsigned v)
{
    *p = (uint8_t)v;
    return p + 1;
}

static uint8_t *ha_put16(uint8_t *p, unsigned v)
{
    return ha_put8(ha_put8(p, v >> 8), v);
}

static uint8_t *ha_put32(uint8_t *p, uint32_t v)
{
    return ha_put16(ha_put16(p, v >> 16), v & 0xffffu);
}

static uint8_t *ha_put64(uint8_t *p, uint64_t v)
{
    return ha_put32(ha_put32(p, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint8_t *ha_put_zero(uint8_t *p, size_t n)
{
    memset(p, 0, n);
    return p + n;
}

static uint8_t ha_get8(const uint8_t **p)
{
    return *(*p)++;
}

static uint16_t ha_get16(const uint8_t **p)
{
    uint16_t high = ha_get8(p);

    return (uint16_t)(high << 8 | ha_get8(p));
}

static uint32_t ha_get32(const uint8_t **p)
{
    uint32_t high = ha_get16(p);

    return high << 16 | ha_get16(p);
}

static uint64_t ha_get64(const uint8_t **p)
{
    uint64_t high = ha_get32(p);

    return high << 32 | ha_get32(p);
}

/* Returns 0 unless all of the reserved bytes are zero. */
static int ha_get_zero(const uint8_t **p, size_t n)
{
    uint8_t any = 0;

    while (n-- > 0) {
        any |= ha_get8(p);
    }
    return any == 0;
}

static int ha_mtu_is_valid(unsigned mtu)
{
    return mtu == 0 || (mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0);
}

/* ---- header ---- */

static uint8_t *ha_put_rail(uint8_t *p, const struct ha_packet_rail *rail)
{
    memcpy(p, rail->gid, sizeof(rail->gid));
    p = ha_put16(p + sizeof(rail->gid), rail->lid);
    p = ha_put16(p, rail->mtu);
    p = ha_put32(p, rail->ud_qpn);
    p = ha_put8(p, rail->link_layer);
    p = ha_put8(p, rail->prefix_len);
    p = ha_put8(p, rail->up);
    return ha_put8(p, rail->place);
}

static uint8_t *ha_put_opts(uint8_t *p, const struct ha_opts *opts)
{
    p = ha_put32(p, opts->seg_size);
    p = ha_put16(p, opts->rx_queue_len);
    p = ha_put8(p, opts->timeout);
    p = ha_put8(p, opts->retry_count);
    p = ha_put8(p, opts->rnr_retry);
    p = ha_put8(p, opts->min_rnr_timer);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        p = ha_put8(p, opts->rail[slot].rd_init);
        p = ha_put8(p, opts->rail[slot].rd_resp);
        p = ha_put8(p, opts->rail[slot].sl);
        p = ha_put8(p, opts->rail[slot].traffic_class);
    }
    return p;
}

size_t ha_packet_encode_header(void *buf, const struct ha_packet_header *header)
{
    uint8_t *p = buf;

    p = ha_put32(p, HA_PACKET_MAGIC);
    p = ha_put8(p, HA_PACKET_VERSION);
    p = ha_put8(p, header->type);
    p = ha_put8(p, header->carrier);
    p = ha_put8(p, header->caps);
    p = ha_put16(p, header->flags);
    p = ha_put16(p, header->count);
    p = ha_put32(p, header->nonce);
    p = ha_put64(p, header->src_cookie);
    p = ha_put64(p, header->dst_cookie);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        p = ha_put_rail(p, &header->rails[slot]);
    }
    p = ha_put16(p, header->credits);
    memcpy(p, header->tcp_ip, sizeof(header->tcp_ip));
    p = ha_put16(p + sizeof(header->tcp_ip), header->tcp_port);
    p = ha_put_opts(p, &header->opts);
    p = ha_put16(p, (unsigned)(header->number >> 32));
    p = ha_put32(p, (uint32_t)header->number);
    return (size_t)(p - (uint8_t *)buf);
}

static int ha_get_rail(const uint8_t **p, struct ha_packet_rail *rail)
{
    memset(rail, 0, sizeof(*rail));
    memcpy(rail->gid, *p, sizeof(rail->gid));
    *p += sizeof(rail->gid);
    rail->lid        = ha_get16(p);
    rail->mtu        = ha_get16(p);
    rail->ud_qpn     = ha_get32(p);
    rail->link_layer = ha_get8(p);
    rail->prefix_len = ha_get8(p);
    rail->up         = ha_get8(p);
    rail->place      = ha_get8(p);
    return (rail->place <= 1 || rail->place == HA_PLACE_ALONE) && ha_mtu_is_valid(rail->mtu) &&
           rail->ud_qpn <= HA_WIRE_24BIT && rail->prefix_len <= 128 && rail->up <= 1;
}

static void ha_get_opts(const uint8_t **p, struct ha_opts *opts)
{
    opts->seg_size      = ha_get32(p);
    opts->rx_queue_len  = ha_get16(p);
    opts->timeout       = ha_get8(p);
    opts->retry_count   = ha_get8(p);
    opts->rnr_retry     = ha_get8(p);
    opts->min_rnr_timer = ha_get8(p);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        opts->rail[slot].rd_init       = ha_get8(p);
        opts->rail[slot].rd_resp       = ha_get8(p);
        opts->rail[slot].sl            = ha_get8(p);
        opts->rail[slot].traffic_class = ha_get8(p);
    }
}

#define HA_FLAGS (HA_PACKET_WANT | HA_PACKET_ZONE(0) | HA_PACKET_ZONE(1) | HA_PACKET_OWN | HA_PACKET_CALL)

static int ha_packet_call_is_valid(const struct ha_packet_header *header)
{
    return (header->flags & HA_PACKET_CALL) == 0 ||
           (header->carrier == HA_CARRIER_TCP && (header->type == HA_PACKET_PING || header->type == HA_PACKET_PONG));
}

static int ha_packet_header_is_valid(const struct ha_packet_header *header, size_t length)
{
    return header->type >= HA_PACKET_STATE && header->type <= HA_PACKET_BYE && header->carrier < HA_CARRIERS &&
           header->number != 0 && (header->flags & ~HA_FLAGS) == 0 && ha_packet_call_is_valid(header) &&
           header->count <= HA_PACKET_RECORDS_MAX && (header->count == 0 || header->type == HA_PACKET_STATE) &&
           length == HA_PACKET_HEADER_LEN + (size_t)header->count * HA_PACKET_RECORD_LEN + HA_SEAL_LEN;
}

unsigned ha_packet_version(const void *buf, size_t length)
{
    const uint8_t *p = buf;

    return length > sizeof(uint32_t) && ha_get32(&p) == HA_PACKET_MAGIC ? ha_get8(&p) : 0;
}

int ha_packet_decode_header(const void *buf, size_t length, struct ha_packet_header *header)
{
    const uint8_t          *p = buf;
    struct ha_packet_header h;

    if (length < HA_PACKET_HEADER_LEN) {
        return -EPROTO;
    }
    if (ha_get32(&p) != HA_PACKET_MAGIC || ha_get8(&p) != HA_PACKET_VERSION) {
        return -EPROTO;
    }
    memset(&h, 0, sizeof(h));
    h.type       = ha_get8(&p);
    h.carrier    = ha_get8(&p);
    h.caps       = ha_get8(&p);
    h.flags      = ha_get16(&p);
    h.count      = ha_get16(&p);
    h.nonce      = ha_get32(&p);
    h.src_cookie = ha_get64(&p);
    h.dst_cookie = ha_get64(&p);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (!ha_get_rail(&p, &h.rails[slot])) {
            return -EPROTO;
        }
    }
    h.credits = ha_get16(&p);
    memcpy(h.tcp_ip, p, sizeof(h.tcp_ip));
    p += sizeof(h.tcp_ip);
    h.tcp_port = ha_get16(&p);
    ha_get_opts(&p, &h.opts);
    h.number = (uint64_t)ha_get16(&p) << 32;
    h.number |= ha_get32(&p);
    if (!ha_packet_header_is_valid(&h, length)) {
        return -EPROTO;
    }
    *header = h;
    return 0;
}

/* ---- record ---- */

static uint8_t *ha_put_lane(uint8_t *p, const struct ha_record_lane *lane)
{
    p = ha_put32(p, lane->gen);
    p = ha_put32(p, lane->act);
    p = ha_put32(p, lane->rxpsn);
    p = ha_put32(p, lane->k);
    p = ha_put32(p, lane->qpn);
    p = ha_put32(p, lane->psn);
    p = ha_put32(p, lane->seen_gen);
    p = ha_put16(p, lane->mtu);
    p = ha_put8(p, lane->st);
    p = ha_put8(p, lane->seen_st);
    p = ha_put8(p, lane->proof);
    p = ha_put8(p, lane->cause);
    p = ha_put_zero(p, 2);
    return ha_put32(p, lane->received);
}

size_t ha_packet_encode_record(void *buf, size_t offset, const struct ha_packet_record *record)
{
    const struct ha_record *state = &record->state;
    uint8_t                *p     = (uint8_t *)buf + offset;

    p = ha_put32(p, record->src_ep);
    p = ha_put32(p, record->dst_ep);
    p = ha_put32(p, record->sn);
    p = ha_put32(p, record->tag);
    p = ha_put8(p, record->slots);
    p = ha_put_zero(p, 3);
    p = ha_put32(p, state->epoch);
    p = ha_put32(p, state->seen_epoch);
    p = ha_put16(p, state->flags);
    p = ha_put16(p, state->seen_flags);
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        p = ha_put_lane(p, &state->lane[slot]);
    }
    return (size_t)(p - (uint8_t *)buf);
}

static int ha_record_lane_is_valid(const struct ha_record_lane *lane, uint32_t epoch)
{
    int built = lane->st == HA_LANE_CONN || lane->st == HA_LANE_READY;

    return lane->st <= HA_LANE_CLOSED && lane->seen_st <= HA_LANE_CLOSED && lane->proof < HA_PROOF_LAST &&
           lane->cause < HA_CAUSE_LAST && lane->act <= epoch &&
           (lane->st < HA_LANE_FENCED || lane->rxpsn <= HA_WIRE_24BIT) && lane->psn <= HA_WIRE_24BIT &&
           lane->qpn <= HA_WIRE_24BIT && ha_mtu_is_valid(lane->mtu) && (lane->gen != 0 || lane->st == HA_LANE_CLOSED) &&
           (lane->seen_gen != 0 || lane->seen_st == HA_LANE_CLOSED) && (!built || (lane->qpn != 0 && lane->mtu != 0));
}

static int ha_get_lane(const uint8_t **p, uint32_t epoch, struct ha_record_lane *lane)
{
    memset(lane, 0, sizeof(*lane));
    lane->gen      = ha_get32(p);
    lane->act      = ha_get32(p);
    lane->rxpsn    = ha_get32(p);
    lane->k        = ha_get32(p);
    lane->qpn      = ha_get32(p);
    lane->psn      = ha_get32(p);
    lane->seen_gen = ha_get32(p);
    lane->mtu      = ha_get16(p);
    lane->st       = ha_get8(p);
    lane->seen_st  = ha_get8(p);
    lane->proof    = ha_get8(p);
    lane->cause    = ha_get8(p);
    if (!ha_get_zero(p, 2)) {
        return 0;
    }
    lane->received = ha_get32(p);
    return ha_record_lane_is_valid(lane, epoch);
}

int ha_packet_decode_record(const void *buf, size_t length, unsigned i, struct ha_packet_record *record)
{
    size_t                  at = HA_PACKET_HEADER_LEN + (size_t)i * HA_PACKET_RECORD_LEN;
    struct ha_packet_record r;
    const uint8_t          *p;

    if (i >= HA_PACKET_RECORDS_MAX || length < at + HA_PACKET_RECORD_LEN + HA_SEAL_LEN) {
        return -EPROTO;
    }
    p = (const uint8_t *)buf + at;
    memset(&r, 0, sizeof(r));
    r.src_ep = ha_get32(&p);
    r.dst_ep = ha_get32(&p);
    r.sn     = ha_get32(&p);
    r.tag    = ha_get32(&p);
    r.slots  = ha_get8(&p);
    if (!ha_get_zero(&p, 3) || r.slots < 1 || r.slots > HA_SLOTS || r.src_ep == HA_EP_ANY) {
        return -EPROTO;
    }
    r.state.epoch      = ha_get32(&p);
    r.state.seen_epoch = ha_get32(&p);
    r.state.flags      = ha_get16(&p);
    r.state.seen_flags = ha_get16(&p);
    if ((r.state.flags | r.state.seen_flags) & ~(HA_PAIR_FAILED | HA_PAIR_CLOSING)) {
        return -EPROTO;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (!ha_get_lane(&p, r.state.epoch, &r.state.lane[slot])) {
            return -EPROTO;
        }
    }
    if (r.state.lane[0].act != 0 && r.state.lane[0].act == r.state.lane[1].act) {
        return -EPROTO; /* an epoch is one lane */
    }
    *record = r;
    return 0;
}

/* ---- what depends on the pair ---- */

static uint64_t ha_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

uint32_t ha_pair_tag(uint64_t cookie1, uint64_t cookie2, uint32_t sn)
{
    uint64_t low  = cookie1 < cookie2 ? cookie1 : cookie2;
    uint64_t high = cookie1 < cookie2 ? cookie2 : cookie1;

    return (uint32_t)ha_mix(ha_mix(ha_mix(low) + high) + sn);
}

/* One epoch for one lane, one lane for one epoch; and the decider gave it. */
static int ha_record_act_fits(const struct ha_pair *pair, int slot, const struct ha_record_lane *told)
{
    const struct ha_lane *lane = &pair->lane[slot];
    int                   same = told->gen == lane->gen;

    if (told->act == 0) {
        return 1;
    }
    if (told->act == pair->lane[!slot].act || (!same && told->act == lane->act)) {
        return 0;
    }
    return !same || told->act == lane->act || (lane->act == 0 && !pair->decider);
}

static int ha_record_lane_fits(const struct ha_pair *pair, int slot, const struct ha_record_lane *told)
{
    const struct ha_lane *lane = &pair->lane[slot];
    const struct ha_view *view = &pair->view[slot];

    if (told->gen > lane->gen && (told->gen - lane->gen > 1 || told->act != 0)) {
        return 0; /* an epoch is given only to a lane that both sides have built */
    }
    if (!ha_record_act_fits(pair, slot, told)) {
        return 0;
    }
    if (told->seen_gen > lane->gen || (told->seen_gen == lane->gen && told->seen_st > lane->st)) {
        return 0; /* it cannot have heard what we never said */
    }
    if (told->gen != view->gen || told->gen == 0) {
        return 1;
    }
    return told->qpn == view->qpn && told->psn == view->psn && told->mtu == view->mtu;
}

int ha_packet_record_check(const struct ha_pair *pair, const struct ha_record *record)
{
    uint32_t ahead = pair->decider ? 0 : 2;

    if (record->epoch > pair->epoch && record->epoch - pair->epoch > ahead) {
        return -EPROTO;
    }
    for (int slot = 0; slot < HA_SLOTS; slot++) {
        if (!ha_record_lane_fits(pair, slot, &record->lane[slot])) {
            return -EPROTO;
        }
    }
    return 0;
}
