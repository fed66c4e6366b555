/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Control datagrams into the living library: two interfaces over made-up
 * hardware with a connection between them; the input goes to side 0 as if the
 * network had brought it. Packets of a stranger who knows no cookie end at the
 * first check, so the input says which fields are put right; the seal
 * and, if even, the number always are. Several packets: what one has broken the next one meets.
 *
 *   packet: flags, length (2, big endian), bytes
 *
 * Connections may end by this. What is asked for is that the library survives,
 * and that its sanitizers are content. Threads run as they like: a finding may
 * need its input more than once.
 */

#include "fuzz.h"

#include "fake_priv.h"
#include "glue_side.h"
#include "base/now.h"
#include "ctl/flush.h"
#include "ctl/msg.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <string.h>
#include <unistd.h>

const char     fuzz_name[] = "glue";
const unsigned fuzz_runs   = 3000;

enum {
    RIGHT_DESTINATION = 0x01,
    RIGHT_SOURCE      = 0x02,
    RIGHT_RAILS       = 0x04, /* else our path to the peer is lost as well */
    RIGHT_PAIR        = 0x08, /* indices and tag of its first record */
    RIGHT_NONCE       = 0x10,
    BY_TCP            = 0x20,
    ON_RAIL_1         = 0x40,
    GENUINE           = 0x80, /* what side 1 would say; the bytes are changes: where, what */
};

#define PACKETS_MAX 8
#define WORLD_RUNS  512 /* then a new one: what is forgotten late would add up */

static int runs;

/* UCX reads its environment before main(); see test_glue.c. */
__attribute__((constructor)) static void prepare(int argc, char **argv)
{
    (void)argc;
    if (getenv("UCX_MEM_EVENTS") == NULL) {
        setenv("UCX_MEM_EVENTS", "n", 1);
        setenv("UCX_LOG_LEVEL", "fatal", 0);
        execv("/proc/self/exe", argv);
    }
}

/* ---- the world ------------------------------------------------------------------ */

static struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static struct uct_ha_conn *conn_of(int s)
{
    struct uct_ha_iface *iface = iface_of(s);

    return ucs_list_is_empty(&iface->pairs.conns) ? NULL : ucs_list_head(&iface->pairs.conns, struct uct_ha_conn, list);
}

static struct uct_ha_peer *peer_of(int s)
{
    return uct_ha_peer_find(&iface_of(s)->pairs, iface_of(!s)->pairs.cookie);
}

static void begin(void)
{
    world_open(1, "DEAD_PEER=200ms CONNECT_TIMEOUT=200ms");
    ep_open(0, 0);
    for (int i = 0; i < 400; i++) {
        pump();
    }
}

static void end(void)
{
    for (int s = 0; s < 2; s++) {
        iface_of(s)->pairs.dead_peer = 1; /* what the input has broken is not waited for */
    }
    side_close(0);
    side_close(1);
    fuzz_expect(fake_end() == 0, "the library has left something behind");
    memset(&world, 0, sizeof(world));
    runs = 0;
}

/* ---- packets ---------------------------------------------------------------------- */

static void set_record(struct ha_packet_record *record)
{
    struct uct_ha_conn *conn = conn_of(0);

    record->dst_ep = conn != NULL ? conn->id : 0;
    record->src_ep = conn != NULL ? conn->peer_id : 0;
    record->sn     = conn != NULL ? conn->sn : 0;
    record->tag    = ha_pair_tag(iface_of(0)->pairs.cookie, iface_of(1)->pairs.cookie, record->sn);
    record->slots  = HA_SLOTS;
}

/* Put right what the flags say, in a packet that is well-formed. */
static void put_right(uint8_t *packet, size_t length, unsigned flags)
{
    struct ha_packet_header header, again;
    struct ha_packet_record record;
    struct uct_ha_peer     *peer = peer_of(0);

    if (ha_packet_decode_header(packet, length, &header) != 0) {
        return;
    }
    again = header;
    if (flags & RIGHT_DESTINATION) {
        again.dst_cookie = iface_of(0)->pairs.cookie;
    }
    if (flags & RIGHT_SOURCE) {
        again.src_cookie = iface_of(1)->pairs.cookie;
    }
    if ((flags & RIGHT_NONCE) && peer != NULL) {
        again.nonce = header.type == HA_PACKET_PONG ? peer->rail[flags & ON_RAIL_1 ? 1 : 0].nonce : peer->nonce;
    }
    for (int s = 0; s < HA_SLOTS && (flags & RIGHT_RAILS) && peer != NULL; s++) {
        memcpy(again.rails[s].gid, peer->rail[s].where.addr.gid, sizeof(again.rails[s].gid));
        again.rails[s].mtu        = peer->rail[s].where.addr.mtu;
        again.rails[s].link_layer = peer->rail[s].where.addr.link_layer;
        again.rails[s].prefix_len = peer->rail[s].where.addr.prefix_len;
        again.rails[s].place      = peer->rail[s].where.place;
        again.rails[s].ud_qpn     = peer->rail[s].ud_qpn;
    }
    ha_packet_encode_header(packet, &again);
    if (!(flags & RIGHT_PAIR) || ha_packet_decode_record(packet, length, 0, &record) != 0) {
        return;
    }
    set_record(&record);
    ha_packet_encode_record(packet, HA_PACKET_HEADER_LEN, &record);
}

/* What knows both names is sealed by who may do that. */
static void seal(uint8_t *packet, size_t length, int carrier)
{
    struct uct_ha_pairs    *pairs = &iface_of(0)->pairs;
    struct uct_ha_peer     *peer  = peer_of(0);
    struct ha_packet_header header;
    struct ha_secret        key;

    if (ha_packet_decode_header(packet, length, &header) != 0) {
        return;
    }
    header.carrier = (uint8_t)carrier;
    if (header.number % 2 == 0 && peer != NULL) {
        header.number = peer->newest + 1;
    }
    ha_packet_encode_header(packet, &header);
    key = ha_seal_key(header.flags & HA_PACKET_OWN && peer != NULL ? &peer->secret : &pairs->secret, header.src_cookie,
                      header.dst_cookie);
    (void)ha_seal_add(&key, packet, length - HA_SEAL_LEN);
}

/* What side 1 would say now, with changes. */
static size_t disguise(const uint8_t *data, size_t size, uint8_t *packet)
{
    struct ha_packet_header header = {.type = HA_PACKET_STATE, .count = 1, .number = 2};
    struct ha_packet_record record;
    struct uct_ha_conn     *conn   = conn_of(1);
    size_t                  length = ha_packet_encode_header(packet, &header);

    memset(&record, 0, sizeof(record));
    set_record(&record);
    if (conn != NULL) {
        ha_pair_snapshot(&conn->pair, &record.state);
    }
    length = ha_packet_encode_record(packet, length, &record) + HA_SEAL_LEN;
    put_right(packet, length, RIGHT_DESTINATION | RIGHT_SOURCE | RIGHT_RAILS);
    for (; size >= 2; data += 2, size -= 2) {
        packet[data[0] % length] = data[1];
    }
    return length;
}

/* ---- into the library ---------------------------------------------------------------- */

/* As if the network had brought it to the rail's control port. */
static void deliver_ud(const uint8_t *packet, size_t length, int slot)
{
    struct ha_ud *ud = iface_of(0)->ctl.ud[slot];

    if (ud == NULL || length == 0) {
        return;
    }
    fake_ud_bring(ud, packet, length);
    uct_ha_msg_receive_locked(&iface_of(0)->ctl, slot);
    uct_ha_flush_locked(&iface_of(0)->ctl);
}

static void deliver(uint8_t *packet, size_t length, unsigned flags)
{
    struct uct_ha_iface *iface   = iface_of(0);
    int                  carrier = flags & BY_TCP ? HA_CARRIER_TCP : flags & ON_RAIL_1 ? 1 : 0;

    pthread_mutex_lock(&iface->lanes.wake.lock);
    put_right(packet, length, flags);
    seal(packet, length, carrier);
    if (flags & BY_TCP) {
        uct_ha_msg_tcp(&iface->ctl, packet, length);
    } else {
        deliver_ud(packet, length, carrier);
    }
    pthread_mutex_unlock(&iface->lanes.wake.lock);
}

static int is_broken(void)
{
    struct uct_ha_conn *conn = conn_of(0);
    struct uct_ha_peer *peer = peer_of(0);

    return conn == NULL || peer == NULL || conn->tx->dead || peer->bye_rx || peer->lost ||
           world.side[0].errors + world.side[1].errors > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t packet[HA_PACKET_MTU];

    if (world.side[0].iface == NULL) {
        begin();
    }
    for (int n = 0; n < PACKETS_MAX && size >= 3; n++) {
        unsigned flags  = data[0];
        size_t   length = (size_t)data[1] << 8 | data[2], used;

        length = length > size - 3 ? size - 3 : length;
        length = length > sizeof(packet) ? sizeof(packet) : length;
        used   = length;
        if (flags & GENUINE) {
            pthread_mutex_lock(&iface_of(1)->lanes.wake.lock);
            length = disguise(data + 3, length, packet);
            pthread_mutex_unlock(&iface_of(1)->lanes.wake.lock);
            flags &= BY_TCP | ON_RAIL_1;
        } else {
            memcpy(packet, data + 3, length);
        }
        deliver(packet, length, flags);
        data += 3 + used;
        size -= 3 + used;
        pump();
    }
    for (int i = 0; i < 20; i++) {
        pump();
    }
    if (++runs == WORLD_RUNS || is_broken()) {
        end();
    }
    return 0;
}
