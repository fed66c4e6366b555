/* SPDX-License-Identifier: BSD-3-Clause */

/* Control packets that nobody should believe: each is dropped and counted under its
 * own name, and the connection goes on as if nothing had come. */

#include "forged.h"

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
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_forged_packets(void **state)
{
    struct forged f;

    (void)state;
    forged_open(130);
    FORGE(NOTHING, "a genuine packet", (void)0);
    FORGE(STRAY, "a packet for another instance", f.header.dst_cookie ^= 1);
    FORGE(UNFIT, "a record of an unknown instance with our pair", f.header.src_cookie ^= 1);
    FORGE(UNFIT, "another tag", f.record.tag ^= 0x100);
    FORGE(STALE, "an endpoint that does not exist", f.record.dst_ep = 77);
    FORGE(UNFIT, "a generation too far", f.record.state.lane[0].gen += 2);
    FORGE(UNFIT, "an epoch too far", (f.record.state.epoch += 3, f.record.state.seen_epoch += 3));
    FORGE(STRAY, "a ping of nobody", (f.header.count = 0, f.header.type = HA_PACKET_PING, f.header.src_cookie ^= 1));
    FORGE(STRAY, "a good-bye of nobody", (f.header.count = 0, f.header.type = HA_PACKET_BYE, f.header.src_cookie ^= 1));
    am_exchange(0, 20);
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
}

static unsigned versions_said;

static ucs_log_func_rc_t listen_for_versions(const char *file, unsigned line, const char *function,
                                             ucs_log_level_t level, const ucs_log_component_config_t *config,
                                             const char *message, va_list args)
{
    char text[512];

    (void)file, (void)line, (void)function, (void)config;
    vsnprintf(text, sizeof(text), message, args);
    versions_said += level == UCS_LOG_LEVEL_WARN && strstr(text, "HA-323") != NULL &&
                     strstr(text, "a control packet of a peer has version 2, this library speaks version 3") != NULL;
    return UCS_LOG_FUNC_RC_STOP;
}

/* Of the release before: refused, and said once. It runs before others that bend versions. */
static void test_other_version(void **state)
{
    ucs_log_level_t level = ucs_global_opts.log_component.log_level;
    struct forged   f;

    (void)state;
    forged_open(133);
    ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_WARN;
    ucs_log_push_handler(listen_for_versions);
    forged_make(&f);
    forged_seal(&f);
    f.bytes[4] = 2;
    forged_expect(&f, MALFORMED, "a packet of another version");
    f.length = 114;
    forged_expect(&f, MALFORMED, "one with its length");
    ucs_log_pop_handler();
    ucs_global_opts.log_component.log_level = level;
    assert_int_equal(versions_said, 1);
    am_exchange(0, 20);
}

static void test_broken_packets(void **state)
{
    struct forged f;

    (void)state;
    forged_open(131);
    forged_make(&f);
    forged_seal(&f);
    for (size_t length = 0; length < f.length; length++) {
        struct forged cut = f;

        cut.length = length;
        forged_expect(&cut, MALFORMED, "a packet that is cut off");
    }
    for (size_t at = 0; at < 6; at++) { /* magic, version, type; another version is told once, by name */
        struct forged bent = f;

        bent.bytes[at] ^= 0x80;
        forged_expect(&bent, MALFORMED, "another magic, version or type");
    }
    f.length++;
    forged_expect(&f, MALFORMED, "a packet with something behind it");
    am_exchange(0, 20);
}

/* However many ask for somebody else, or for us without knowing us, from hosts that are not there:
 * nobody answers, nobody looks for them, nothing is remembered. */
static void test_flood_of_strangers(void **state)
{
    struct uct_ha_stats before;
    struct forged       f;
    uint64_t            lookups;

    (void)state;
    forged_open(132);
    fake_set(A0, FAKE_BLOCK_MS, 1); /* look-ups count */
    forged_make(&f);
    before  = stats();
    lookups = fake_counts().lookups;
    for (unsigned i = 0; i < 5000; i++) {
        for (int s = 0; s < HA_SLOTS; s++) {
            f.header.rails[s].mtu = 1024;
            memcpy(f.header.rails[s].gid, ha_rail_addr(forged_iface(1)->lanes.rail[s]).gid, 15);
            f.header.rails[s].gid[15] = (uint8_t)(100 + i % 100);
        }
        f.header.src_cookie += 7;
        f.header.dst_cookie = forged_iface(0)->pairs.cookie + (i % 3 == 0 ? i + 1 : 0);
        f.header.type       = (uint8_t)(1 + i % 4);
        f.header.count      = f.header.type == HA_PACKET_STATE;
        f.header.flags      = i / 4 % 2 ? HA_PACKET_OWN : 0;
        forged_seal_by(&f, &(struct ha_secret){{1}});
        forged_bring(&f);
    }
    assert_int_equal(stats().ctl_stray + stats().ctl_forged - before.ctl_stray - before.ctl_forged, 5000);
    assert_in_range(stats().ctl_forged - before.ctl_forged, 1000, 4000);
    assert_int_equal(stats().ctl_tx, before.ctl_tx);
    assert_int_equal(stats().ctl_rx, before.ctl_rx);
    assert_int_equal(forged_iface(0)->ctl.num_accepts, 0);
    assert_int_equal(ucs_list_length(&forged_iface(0)->pairs.peers), 1);
    assert_int_equal(forged_iface(0)->pairs.num_forgotten, 0);
    pump_ms(20);
    assert_int_equal(fake_counts().lookups, lookups);
    fake_set(A0, FAKE_BLOCK_MS, 0);
    am_exchange(0, 20);
}

#define LOOKUP_MS 300
#define DEAD      12

/* Side 0 finds a way to this host of side 1 on its first rail: few others' are looked for once it knows of it, and has
 * heard it there since. */
static void find_way(uint8_t host, uint64_t since)
{
    uint64_t            before = fake_counts().lookups;
    struct uct_ha_peer *peer;
    int                 known = 0, found = 0;

    while (!found) {
        pump_ms(1);
        pthread_mutex_lock(&forged_iface(0)->lanes.wake.lock);
        peer   = forged_peer(0);
        before = known ? before : fake_counts().lookups;
        known  = peer->rail[0].where.addr.gid[15] == host && peer->rail[0].last_rx >= since;
        found  = known && peer->rail[0].way != NULL;
        pthread_mutex_unlock(&forged_iface(0)->lanes.wake.lock);
        assert_in_range(fake_counts().lookups - before, 0, DEAD / 2);
    }
}

/* Side 0 has looked for side 1 at this host, on its first rail, in vain. */
static int looked_in_vain(uint8_t host)
{
    const struct uct_ha_peer *peer;
    int                       is_so;

    pthread_mutex_lock(&forged_iface(0)->lanes.wake.lock);
    peer  = forged_peer(0);
    is_so = peer->rail[0].where.addr.gid[15] == host && peer->rail[0].ah_fails > 0;
    pthread_mutex_unlock(&forged_iface(0)->lanes.wake.lock);
    return is_so;
}

/* In the addresses that UCX carries: docs/wire.md. */
#define DEV_HOST    16 /* the last byte of an IPv4 address */
#define DEV_STANDBY 21 /* ... of the standby rail */
#define ADDR_SECRET 2

/* Endpoints to hosts that are not there. */
static void call_the_dead(uct_ep_h *eps)
{
    struct side    *side = &world.side[0], *peer = &world.side[1];
    uint8_t         dev[sizeof(peer->dev_addr)], addr[sizeof(peer->iface_addr)];
    uct_ep_params_t params;

    for (uint8_t i = 0; i < DEAD; i++) {
        memcpy(dev, peer->dev_addr, sizeof(dev));
        memcpy(addr, peer->iface_addr, sizeof(addr));
        dev[DEV_HOST]    = (uint8_t)(200 + i);
        dev[DEV_STANDBY] = (uint8_t)(200 + i);
        addr[ADDR_SECRET] ^= (uint8_t)(1 + i);
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
    uint64_t before, since;

    (void)state;
    redundant_open(1180, "CONNECT_TIMEOUT=200s HEARTBEAT=200ms");
    fake_set(A0, FAKE_BLOCK_MS, LOOKUP_MS);
    before = fake_counts().lookups;
    call_the_dead(dead);
    pump_until(fake_counts().lookups >= before + 2 * DEAD);
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    fake_port(A0, 1); /* all ways are looked for anew, that to the living peer first, by its age */
    find_way(2, 0);
    fake_readdress(B0, 55); /* ... and now the others wait already */
    find_way(55, 0);
    fake_port_silently(B0, 0);
    fake_readdress(B0, 56);
    pump_until(looked_in_vain(56));
    fake_set(A0, FAKE_BLOCK_MS, 3 * LOOKUP_MS);
    fake_port(A0, 0);
    pump_ms(20);
    before = fake_counts().lookups;
    fake_port(A0, 1); /* once more it waits, behind all of them ... */
    pump_until(fake_counts().lookups > before);
    since = uct_ha_now();
    fake_port_silently(B0, 1);
    find_way(56, since); /* ... until it is heard */
    for (unsigned i = 0; i < DEAD; i++) {
        uct_ep_destroy(dead[i]);
    }
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
    struct uct_ha_tcp_addr addr = uct_ha_tcp_addr(forged_iface(0)->ctl.tcp);
    uint64_t               told = stats().ctl_unfit;
    int                    fd   = call(&addr);
    struct forged          f;
    uint8_t                length[2];

    forged_make(&f);
    f.record.tag ^= 1;
    forged_seal(&f);
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
        struct uct_ha_tcp_addr addr = uct_ha_tcp_addr(forged_iface(0)->ctl.tcp);

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
    forged_make(&f);
    f.record.tag ^= 1;
    forged_seal(&f);
    addr = uct_ha_tcp_addr(forged_iface(0)->ctl.tcp);
    pthread_mutex_lock(&forged_iface(1)->lanes.wake.lock);
    link = uct_ha_tcp_link_create(forged_iface(1)->ctl.tcp, &addr);
    assert_int_equal(uct_ha_tcp_send(link, "\x00", 1, 1000000000), 1); /* the newest word counts */
    assert_int_equal(uct_ha_tcp_send(link, f.bytes, f.length, 1000000000), 1);
    pthread_mutex_unlock(&forged_iface(1)->lanes.wake.lock);
    pump_until(stats().ctl_unfit > told);
    pthread_mutex_lock(&forged_iface(1)->lanes.wake.lock);
    uct_ha_tcp_link_destroy(link);
    pthread_mutex_unlock(&forged_iface(1)->lanes.wake.lock);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_other_version),      GLUE_TEST(test_forged_packets),       GLUE_TEST(test_broken_packets),
    GLUE_TEST(test_flood_of_strangers), GLUE_TEST(test_dead_neighbours_wait), GLUE_TEST(test_silent_callers),
    GLUE_TEST(test_first_word_by_tcp),
};

int glue_forged(void)
{
    return cmocka_run_group_tests_name("forged", tests, NULL, NULL);
}
