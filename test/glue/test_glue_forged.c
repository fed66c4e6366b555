/* SPDX-License-Identifier: BSD-3-Clause */

/* Control packets that nobody should believe: each is dropped and counted under its
 * own name, and the connection goes on as if nothing had come. */

#include "glue_tests.h"

#include "base/now.h"
#include "ctl/msg.h"
#include "ctl/tcp.h"
#include "pair/conn.h"
#include "pair/peer.h"
#include "uct/iface.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static struct uct_ha_peer *peer_of(int s)
{
    return uct_ha_peer_find(&iface_of(s)->pairs, iface_of(!s)->pairs.cookie);
}

static struct uct_ha_conn *conn_of(int s)
{
    return ucs_list_head(&iface_of(s)->pairs.conns, struct uct_ha_conn, list);
}

struct forged {
    struct ha_packet_header header;
    struct ha_packet_record record;
    uint8_t                 bytes[HA_PACKET_MTU];
    size_t                  length;
};

/* What side 1 could say to side 0 just now, with one record. */
static void make_genuine(struct forged *forged)
{
    struct uct_ha_conn *conn = conn_of(1);

    memset(forged, 0, sizeof(*forged));
    pthread_mutex_lock(&iface_of(1)->lanes.wake.lock);
    forged->header.type       = HA_PACKET_STATE;
    forged->header.count      = 1;
    forged->header.credits    = 32;
    forged->header.src_cookie = iface_of(1)->pairs.cookie;
    forged->header.dst_cookie = iface_of(0)->pairs.cookie;
    for (int s = 0; s < HA_SLOTS; s++) {
        forged->header.rails[s].up         = 1;
        forged->header.rails[s].place      = (uint8_t)s;
        forged->header.rails[s].link_layer = HA_LINK_ETHERNET;
    }
    forged->record.src_ep = conn->id;
    forged->record.dst_ep = conn->peer_id;
    forged->record.sn     = conn->sn;
    forged->record.tag    = conn->tag;
    forged->record.slots  = conn->pair.slots;
    ha_pair_snapshot(&conn->pair, &forged->record.state);
    pthread_mutex_unlock(&iface_of(1)->lanes.wake.lock);
}

static void encode(struct forged *forged)
{
    forged->length = ha_packet_encode_header(forged->bytes, &forged->header);
    if (forged->header.count > 0) {
        forged->length = ha_packet_encode_record(forged->bytes, forged->length, &forged->record);
    }
}

static void bring(const struct forged *forged)
{
    struct uct_ha_iface *iface = iface_of(0);

    pthread_mutex_lock(&iface->lanes.wake.lock);
    uct_ha_msg_tcp(&iface->ctl, forged->bytes, forged->length);
    pthread_mutex_unlock(&iface->lanes.wake.lock);
}

enum reason { NOTHING, MALFORMED, STRAY, UNFIT, STALE };

static void expect(const struct forged *forged, enum reason reason, const char *what)
{
    struct uct_ha_stats before = stats(), after;
    uint32_t            epoch  = conn_of(0)->pair.epoch;

    bring(forged);
    after = stats();
    if (after.ctl_malformed - before.ctl_malformed != (reason == MALFORMED) ||
        after.ctl_stray - before.ctl_stray != (reason == STRAY) ||
        after.ctl_unfit - before.ctl_unfit != (reason == UNFIT) ||
        after.ctl_stale - before.ctl_stale != (reason == STALE) ||
        after.ctl_dropped - before.ctl_dropped != (reason != NOTHING)) {
        fail_msg("%s is not counted as it should", what);
    }
    assert_int_equal(conn_of(0)->pair.epoch, epoch);
    assert_false(ha_pair_failed(&conn_of(0)->pair));
}

static void open_quiet(uint64_t seed)
{
    world_open(seed, "HEARTBEAT=0");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 8);
    wait_standbys(2);
    flush_all();
    pump_ms(100); /* all has been said */
}

#define FORGED(_reason, _what, _change) \
    do {                                \
        make_genuine(&f);               \
        _change;                        \
        encode(&f);                     \
        expect(&f, _reason, _what);     \
    } while (0)

static void test_forged_packets(void **state)
{
    struct forged f;

    (void)state;
    open_quiet(130);
    FORGED(NOTHING, "a genuine packet", (void)0);
    FORGED(STRAY, "a packet for another instance", f.header.dst_cookie ^= 1);
    FORGED(UNFIT, "a record of an unknown instance with our pair", f.header.src_cookie ^= 1);
    FORGED(UNFIT, "another tag", f.record.tag ^= 0x100);
    FORGED(STALE, "an endpoint that does not exist", f.record.dst_ep = 77);
    FORGED(UNFIT, "a generation too far", f.record.state.lane[0].gen += 2);
    FORGED(UNFIT, "an epoch too far", (f.record.state.epoch += 3, f.record.state.seen_epoch += 3));
    FORGED(STRAY, "a ping of nobody", (f.header.count = 0, f.header.type = HA_PACKET_PING, f.header.src_cookie ^= 1));
    FORGED(STRAY, "a good-bye of nobody",
           (f.header.count = 0, f.header.type = HA_PACKET_BYE, f.header.src_cookie ^= 1));
    FORGED(STALE, "UNKNOWN as the answer to nothing",
           (f.header.count = 0, f.header.type = HA_PACKET_UNKNOWN, f.header.nonce = peer_of(0)->nonce + 1000));
    FORGED(STALE, "UNKNOWN of a peer that is alive",
           (f.header.count = 0, f.header.type = HA_PACKET_UNKNOWN, f.header.nonce = peer_of(0)->nonce,
            peer_of(0)->last_rx = uct_ha_now()));
    am_exchange(0, 20);
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

static void test_broken_packets(void **state)
{
    struct forged f;

    (void)state;
    open_quiet(131);
    make_genuine(&f);
    encode(&f);
    for (size_t length = 0; length < f.length; length++) {
        struct forged cut = f;

        cut.length = length;
        expect(&cut, MALFORMED, "a packet that is cut off");
    }
    for (size_t at = 0; at < 6; at++) { /* magic, version, type */
        struct forged bent = f;

        bent.bytes[at] ^= 0x80;
        expect(&bent, MALFORMED, "another magic, version or type");
    }
    f.length++;
    expect(&f, MALFORMED, "a packet with something behind it");
    am_exchange(0, 20);
}

/* However many strangers ask for somebody else, few get an answer, and all are forgotten. */
static void test_flood_of_strangers(void **state)
{
    struct uct_ha_peer *peer;
    struct uct_ha_stats before;
    struct forged       f;
    unsigned            peers = 0;

    (void)state;
    open_quiet(132);
    make_genuine(&f);
    before = stats();
    for (unsigned i = 0; i < 5000; i++) {
        f.header.src_cookie += 7;
        f.header.dst_cookie += 13;
        encode(&f);
        bring(&f);
    }
    assert_int_equal(stats().ctl_stray - before.ctl_stray, 5000);
    assert_in_range(stats().ctl_tx - before.ctl_tx, 0, 20);
    ucs_list_for_each (peer, &iface_of(0)->pairs.peers, list) {
        peers++;
    }
    assert_in_range(peers, 2, 20);
    am_exchange(0, 20);
    pump_until((pthread_mutex_lock(&iface_of(0)->lanes.wake.lock),
                peers = (unsigned)ucs_list_length(&iface_of(0)->pairs.peers),
                pthread_mutex_unlock(&iface_of(0)->lanes.wake.lock), peers == 1));
    am_exchange(0, 20);
}

/* A packet for the instance that was here before us creates a peer that nothing is known
 * of. When it connects, or we to it, it is what it says then. */
static void test_stranger_becomes_peer(void **state)
{
    struct uct_ha_peer *peer;
    struct forged       f;

    (void)state;
    for (int first = 0; first < 2; first++) {
        world_open(196 + (uint64_t)first, "");
        side_close(1);
        side_open(1, "PROOF=count RX_QUEUE_INIT=64");
        rma_open();
        memset(&f, 0, sizeof(f));
        f.header.type       = HA_PACKET_PING;
        f.header.src_cookie = iface_of(1)->pairs.cookie;
        f.header.dst_cookie = iface_of(0)->pairs.cookie + 1;
        f.header.credits    = 3;
        encode(&f);
        bring(&f);
        assert_non_null(peer_of(0));
        assert_int_equal(peer_of(0)->stranger, 1);
        ep_open(first, 0);
        ep_open(!first, 0);
        am_exchange(0, 8);
        peer = peer_of(0);
        assert_int_equal(peer->stranger, 0);
        assert_true(peer->caps & HA_CAP_COUNTED);
        assert_int_equal(peer->credits, iface_of(1)->lanes.credits);
        assert_int_equal(uct_ha_flow_of(conn_of(0)->road)->put_counts, 1);
        wait_standbys(2);
        rma_put(0, 0, 20);
        fake_port(A0, 0);
        redundant_check();
        assert_int_equal(stats().in_doubt + stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

#define LOOKUP_MS 300

/* Side 0 finds a way to this host of side 1 on its first rail: few others' are looked for before. */
static void find_way(uint8_t host)
{
    uint64_t            before = fake_counts().lookups;
    struct uct_ha_peer *peer;
    int                 found = 0;

    while (!found) {
        pump_ms(1);
        pthread_mutex_lock(&iface_of(0)->lanes.wake.lock);
        peer  = peer_of(0);
        found = peer->rail[0].where.addr.gid[15] == host && peer->rail[0].way != NULL;
        pthread_mutex_unlock(&iface_of(0)->lanes.wake.lock);
        assert_in_range(fake_counts().lookups - before, 0, 4);
    }
}

/* In the addresses that UCX carries: docs/wire.md. */
#define DEV_HOST    23 /* the last byte of a GID */
#define ADDR_HOST   48
#define ADDR_COOKIE 2
#define DEAD        8

/* Endpoints to hosts that are not there. */
static void call_the_dead(uct_ep_h *eps)
{
    struct side    *side = &world.side[0], *peer = &world.side[1];
    uint8_t         dev[sizeof(peer->dev_addr)], addr[sizeof(peer->iface_addr)];
    uct_ep_params_t params;

    for (uint8_t i = 0; i < DEAD; i++) {
        memcpy(dev, peer->dev_addr, sizeof(dev));
        memcpy(addr, peer->iface_addr, sizeof(addr));
        dev[DEV_HOST]   = (uint8_t)(200 + i);
        addr[ADDR_HOST] = (uint8_t)(200 + i);
        addr[ADDR_COOKIE] ^= (uint8_t)(1 + i);
        memset(&params, 0, sizeof(params));
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = side->iface;
        params.dev_addr   = (void *)dev;
        params.iface_addr = (void *)addr;
        assert_int_equal(uct_ep_create(&params, &eps[i]), UCS_OK);
    }
}

/* Each dead neighbour costs the card a while, again and again: who answers does not wait for them. */
static void test_dead_neighbours_wait(void **state)
{
    uct_ep_h dead[DEAD];
    uint64_t before;

    (void)state;
    redundant_open(1180, "CONNECT_TIMEOUT=200s HEARTBEAT=200ms");
    fake_set(A0, FAKE_BLOCK_MS, LOOKUP_MS);
    before = fake_counts().lookups;
    call_the_dead(dead);
    pump_until(fake_counts().lookups >= before + 2 * DEAD);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    fake_port(A0, 1); /* all ways are looked for anew, that to the living peer first, by its age */
    find_way(2);
    fake_readdress(B0, 55); /* ... and now the others wait already */
    find_way(55);
    for (unsigned i = 0; i < DEAD; i++) {
        uct_ep_destroy(dead[i]);
    }
}

/* Each stranger's neighbour costs the card a while: nobody else waits for that. */
static void test_strangers_hold_nobody_up(void **state)
{
    struct forged f;

    (void)state;
    redundant_open(198, "HEARTBEAT=200ms");
    make_genuine(&f);
    fake_set(A0, FAKE_BLOCK_MS, LOOKUP_MS);
    for (uint8_t i = 0; i < 20; i++) {
        for (int s = 0; s < HA_SLOTS; s++) {
            f.header.rails[s].mtu = 1024;
            memcpy(f.header.rails[s].gid, ha_rail_addr(iface_of(1)->lanes.rail[s]).gid, 15);
            f.header.rails[s].gid[15] = (uint8_t)(200 + i);
        }
        f.header.src_cookie += 7;
        f.header.dst_cookie += 13;
        encode(&f);
        bring(&f);
    }
    fake_readdress(B0, 55); /* the way to the peer is looked for anew */
    find_way(55);
    am_exchange(0, 20);
}

#define CALLERS 60

static unsigned descriptors(void)
{
    DIR     *dir   = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static int call(const struct uct_ha_tcp_addr *addr)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(addr->port)};
    int                fd  = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&sin.sin_addr, addr->ip, sizeof(addr->ip));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

/* One that says what is for us, though it is not believed. */
static int call_as_peer(void)
{
    struct uct_ha_tcp_addr addr = uct_ha_tcp_addr(iface_of(0)->ctl.tcp);
    uint64_t               told = stats().ctl_unfit;
    int                    fd   = call(&addr);
    struct forged          f;
    uint8_t                length[2];

    make_genuine(&f);
    f.record.tag ^= 1;
    encode(&f);
    length[0] = (uint8_t)(f.length >> 8);
    length[1] = (uint8_t)f.length;
    assert_int_equal(send(fd, length, sizeof(length), MSG_NOSIGNAL), sizeof(length));
    assert_int_equal(send(fd, f.bytes, f.length, MSG_NOSIGNAL), f.length);
    pump_until(stats().ctl_unfit > told);
    return fd;
}

static int is_closed(int fd)
{
    char    byte;
    ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/* Who connects and says nothing, or not enough, is sent away; few of them are kept until then. */
static void test_silent_callers(void **state)
{
    unsigned before, left = CALLERS;
    int      fd[CALLERS], known;

    (void)state;
    redundant_open(199, "CONTROL=tcp HEARTBEAT=50ms");
    known  = call_as_peer();
    before = descriptors();
    for (unsigned i = 0; i < CALLERS; i++) {
        struct uct_ha_tcp_addr addr = uct_ha_tcp_addr(iface_of(0)->ctl.tcp);

        fd[i] = call(&addr);
        assert_int_equal(send(fd[i], "\x01", i % 2, MSG_NOSIGNAL), i % 2);
    }
    pump_ms(50);
    assert_in_range(descriptors(), before, before + CALLERS + 40); /* ours, and few of theirs */
    while (left > 0) {
        pump_ms(20);
        left = 0;
        for (unsigned i = 0; i < CALLERS; i++) {
            left += !is_closed(fd[i]);
        }
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        close(fd[i]);
    }
    assert_false(is_closed(known)); /* it came before them */
    close(known);
    fake_port(A0, 0);
    am_exchange(0, 20);
    pump_until(stats().failovers == 2);
    assert_in_range(descriptors(), before - 8, before + 8);
}

/* What is said first, while the connection is made, arrives: who calls is not sent away for silence. */
static void test_first_word_by_tcp(void **state)
{
    struct uct_ha_tcp_link *link;
    struct uct_ha_tcp_addr  addr;
    uint64_t                told;
    struct forged           f;

    (void)state;
    redundant_open(230, "CONTROL=tcp HEARTBEAT=50ms");
    told = stats().ctl_unfit;
    make_genuine(&f);
    f.record.tag ^= 1;
    encode(&f);
    addr = uct_ha_tcp_addr(iface_of(0)->ctl.tcp);
    pthread_mutex_lock(&iface_of(1)->lanes.wake.lock);
    link = uct_ha_tcp_link_create(iface_of(1)->ctl.tcp, &addr);
    assert_int_equal(uct_ha_tcp_send(link, "\x00", 1, 1000000000), 1); /* the newest word counts */
    assert_int_equal(uct_ha_tcp_send(link, f.bytes, f.length, 1000000000), 1);
    pthread_mutex_unlock(&iface_of(1)->lanes.wake.lock);
    pump_until(stats().ctl_unfit > told);
    pthread_mutex_lock(&iface_of(1)->lanes.wake.lock);
    uct_ha_tcp_link_destroy(link);
    pthread_mutex_unlock(&iface_of(1)->lanes.wake.lock);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_forged_packets),        GLUE_TEST(test_broken_packets),           GLUE_TEST(test_flood_of_strangers),
    GLUE_TEST(test_dead_neighbours_wait),  GLUE_TEST(test_strangers_hold_nobody_up), GLUE_TEST(test_silent_callers),
    GLUE_TEST(test_stranger_becomes_peer), GLUE_TEST(test_first_word_by_tcp),
};

int glue_forged(void)
{
    return cmocka_run_group_tests_name("forged", tests, NULL, NULL);
}
