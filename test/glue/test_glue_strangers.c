/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A thousand strangers a second, of both kinds, at the doors of both sides, while a rail flaps: datagrams that
 * nobody should believe, and callers by TCP that say nothing. Recovery takes no longer, and nothing grows.
 *
 *   GLUE_STRANGERS=60 test_glue test_thousand_strangers     a minute of them, and a tight bound; 3 s if not given
 */

#include "forged.h"

#include "ctl/tcp.h"
#include "pair/conn.h"
#include "uct/iface.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PER_SECOND 1000u /* datagrams, and as many callers */
#define CALLS      64    /* a caller hangs up when so many came behind it */
#define FLAPS_MIN  8     /* of each kind, at least */
#define FLAPS_MAX  16384
#define HEAP_SLACK 524288 /* what flaps themselves leave behind, see test_glue_many.c: 87 bytes per stranger in 3 s */

/* ---- the strangers ------------------------------------------------------------------ */

static struct crowd {
    pthread_t              thread;
    uint64_t               start;
    int                    stop, is_here;
    unsigned               random;
    struct forged          model; /* what side 1 could say to side 0 */
    struct uct_ha_tcp_addr door[2];
    int                    fd[CALLS];
    uint64_t               datagrams, calls; /* that came */
    uint64_t               sent_away;        /* callers, by whom they called */
} crowd;

static unsigned draw(unsigned below)
{
    crowd.random = crowd.random * 1664525u + 1013904223u;
    return (crowd.random >> 8) % below;
}

static void make_garbage(struct forged *f)
{
    f->length = 1 + draw(HA_PACKET_MTU - 1);
    for (size_t i = 0; i < f->length; i++) {
        f->bytes[i] = (uint8_t)draw(256);
    }
}

/* For side `to`: bytes without meaning; a packet of its peer but for the seal; one of nobody it knows, by a secret
 * that it cannot know, his own or any; one for somebody else. */
static void make_datagram(struct forged *f, int to)
{
    struct ha_secret secret;

    *f                   = crowd.model;
    f->header.type       = (uint8_t)(1 + draw(4));
    f->header.count      = f->header.type == HA_PACKET_STATE;
    f->header.number     = 1000000u + draw(1000000);
    f->header.src_cookie = to == 0 ? crowd.model.header.src_cookie : crowd.model.header.dst_cookie;
    f->header.dst_cookie = to == 0 ? crowd.model.header.dst_cookie : crowd.model.header.src_cookie;
    for (size_t i = 0; i < sizeof(secret.byte); i++) {
        secret.byte[i] = (uint8_t)draw(256);
    }
    switch (draw(5)) {
    case 0:
        make_garbage(f);
        return;
    case 1:
        break; /* forged */
    case 2:
        f->header.src_cookie += 1 + draw(1u << 20);
        break;
    case 3:
        f->header.src_cookie += 1 + draw(1u << 20);
        f->header.flags |= HA_PACKET_OWN;
        break;
    default:
        f->header.dst_cookie += 1 + draw(1u << 20);
        break;
    }
    forged_seal_by(f, &secret);
}

static void knock_by_datagram(void)
{
    int           to = (int)draw(2), slot = (int)draw(2);
    struct forged f;

    make_datagram(&f, to);
    fake_ud_bring(forged_iface(to)->ctl.ud[slot], f.bytes, f.length);
    crowd.datagrams++;
}

/* With a reset: nothing of it lingers on this machine. */
static void hang_up(int *fd)
{
    struct linger at_once = {.l_onoff = 1};
    char          byte;

    if (*fd >= 0) {
        crowd.sent_away += recv(*fd, &byte, 1, MSG_DONTWAIT) == 0;
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(*fd);
        *fd = -1;
    }
}

static void knock_by_call(void)
{
    const struct uct_ha_tcp_addr *door = &crowd.door[draw(2)];
    struct sockaddr_in            sin  = {.sin_family = AF_INET, .sin_port = htons(door->port)};
    int                          *fd   = &crowd.fd[crowd.calls % CALLS];

    hang_up(fd);
    memcpy(&sin.sin_addr, door->ip, sizeof(door->ip));
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)connect(*fd, (struct sockaddr *)&sin, sizeof(sin)); /* who was there is counted when he is sent away */
    crowd.calls++;
}

/* Who is late comes at once, the last ones when the time is over. */
static void *run_crowd(void *arg)
{
    uint64_t due;
    int      stop;

    do {
        usleep(500);
        stop = __atomic_load_n(&crowd.stop, __ATOMIC_ACQUIRE);
        due  = (now_ns() - crowd.start) * PER_SECOND / 1000000000u;
        while (crowd.calls < due) {
            knock_by_datagram();
            knock_by_call();
        }
    } while (!stop);
    return arg;
}

static void crowd_comes(void)
{
    memset(&crowd, 0, sizeof(crowd));
    for (int i = 0; i < CALLS; i++) {
        crowd.fd[i] = -1;
    }
    for (int s = 0; s < 2; s++) {
        crowd.door[s] = uct_ha_tcp_addr(forged_iface(s)->ctl.tcp);
    }
    forged_make(&crowd.model);
    crowd.start = now_ns();
    assert_int_equal(pthread_create(&crowd.thread, NULL, run_crowd, NULL), 0);
    crowd.is_here = 1;
}

static void crowd_goes(void)
{
    __atomic_store_n(&crowd.stop, 1, __ATOMIC_RELEASE);
    pthread_join(crowd.thread, NULL);
    crowd.is_here = 0;
    for (int i = 0; i < CALLS; i++) {
        hang_up(&crowd.fd[i]);
    }
}

/* ---- a rail flaps ------------------------------------------------------------------- */

/* Microseconds from the cut on. */
static struct flaps {
    unsigned count;
    uint32_t moved[FLAPS_MAX];     /* messages go both ways by the other rail, and the one that was cut comes back */
    uint32_t recovered[FLAPS_MAX]; /* it is a standby again */
} calm, crowded;

static uint32_t us_since(uint64_t start)
{
    return (uint32_t)((now_ns() - start) / 1000);
}

static int rail_in_use(void)
{
    struct uct_ha_wake   *wake = &forged_iface(0)->lanes.wake;
    const struct ha_pair *pair = &forged_conn(0)->pair;
    int                   rail;

    pthread_mutex_lock(&wake->lock);
    rail = pair->lane[0].act == pair->epoch ? A0 : A1;
    pthread_mutex_unlock(&wake->lock);
    return rail;
}

static void flap(struct flaps *flaps)
{
    uint64_t before = stats().failovers, start = now_ns();
    int      rail = rail_in_use();

    rail += flaps->count % 2 ? B0 : A0; /* there, or here */
    fake_port(rail, 0);
    am_post(0, 0, 1);
    am_post(1, 0, 1);
    pump_until(am_all_here() && stats().failovers >= before + 2);
    flaps->moved[flaps->count] = us_since(start);
    fake_port(rail, 1);
    wait_standbys(2);
    flaps->recovered[flaps->count++] = us_since(start);
    pump_ms(5);
}

/* On a busy machine it takes longer. */
static void flap_for(struct flaps *flaps, uint64_t ns)
{
    uint64_t until = now_ns() + ns;
    unsigned least = flaps->count + FLAPS_MIN;

    while (flaps->count < FLAPS_MAX && (now_ns() < until || flaps->count < least)) {
        flap(flaps);
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static uint32_t median(uint32_t *of, unsigned count)
{
    qsort(of, count, sizeof(*of), compare);
    return of[count / 2];
}

/* ---- what could grow ---------------------------------------------------------------- */

struct holdings {
    struct fake_objects objects;
    unsigned            descriptors;
    size_t              heap;
};

static unsigned count_descriptors(void)
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

/* Queue pairs rest for two seconds before they go; nobody calls any more, but who has may not have been sent away. */
static struct holdings holdings(unsigned descriptors)
{
    struct holdings now;

    flush_all();
    pump_until(fake_objects().rcs == 4 && stats().standbys == 2);
    pump_until((now.descriptors = count_descriptors()) <= descriptors);
    now.objects = fake_objects();
    now.heap    = mallinfo2().uordblks + mallinfo2().hblkhd;
    if (now.heap > 0) { /* sanitizers do not tell */
        now.heap -= fake_cq_bytes();
    }
    return now;
}

/* ---- all of it ------------------------------------------------------------------------ */

static unsigned seconds(void)
{
    const char *wanted = getenv("GLUE_STRANGERS");

    return wanted == NULL ? 3 : (unsigned)atoi(wanted);
}

/* Not believed, each for its own reason. */
static uint64_t disbelieved(void)
{
    struct uct_ha_stats now = stats();

    return now.ctl_malformed + now.ctl_forged + now.ctl_stray;
}

static void print_figures(const struct holdings *before, const struct holdings *after, uint64_t dropped)
{
    print_message("{\"seconds\": %u, \"datagrams\": %lu, \"disbelieved\": %lu, \"callers\": %lu, \"sent_away\": %lu, "
                  "\"flaps\": [%u, %u], \"moved_us\": [%u, %u], \"recovered_us\": [%u, %u], "
                  "\"descriptors\": [%u, %u], \"heap\": [%zu, %zu], \"objects\": [%d, %d]}\n",
                  seconds(), crowd.datagrams, dropped, crowd.calls, crowd.sent_away, calm.count, crowded.count,
                  median(calm.moved, calm.count), median(crowded.moved, crowded.count),
                  median(calm.recovered, calm.count), median(crowded.recovered, crowded.count), before->descriptors,
                  after->descriptors, before->heap, after->heap, before->objects.all, after->objects.all);
}

/* A minute is for a machine that has nothing else to do; that the suite passes does not hang on one that has. */
static uint32_t longest(uint32_t without)
{
    return seconds() >= 60 ? without + without / 5 : 3 * without + 500000;
}

/* With a heartbeat of 10 ms a process that gets no processor for some 40 is silent, and its rail is left. */
static uint64_t most_failovers(uint64_t cuts)
{
    return seconds() >= 60 ? 2 * cuts : 2 * cuts + cuts / 4;
}

/* Calm before and after, so that it matters less if the machine changes meanwhile. */
static void test_thousand_strangers(void **state)
{
    uint64_t        ns = seconds() * 1000000000ull, dropped;
    struct holdings before, after;

    (void)state;
    redundant_open(1320, "HEARTBEAT=10ms");
    memset(&calm, 0, sizeof(calm));
    memset(&crowded, 0, sizeof(crowded));
    flap_for(&calm, ns / 4);
    before  = holdings(UINT_MAX);
    dropped = disbelieved();
    crowd_comes();
    flap_for(&crowded, ns);
    crowd_goes();
    after   = holdings(before.descriptors);
    dropped = disbelieved() - dropped;
    flap_for(&calm, ns / 4);
    print_figures(&before, &after, dropped);
    assert_in_range(crowd.datagrams, PER_SECOND * seconds(), UINT64_MAX);
    assert_in_range(dropped, crowd.datagrams * 3 / 4, UINT64_MAX); /* ports that are brought up anew lose some */
    assert_in_range(crowd.calls, PER_SECOND * seconds(), UINT64_MAX);
    assert_in_range(crowd.sent_away, 1, UINT64_MAX); /* others hung up before */
    assert_in_range(stats().failovers, 2 * (calm.count + crowded.count), most_failovers(calm.count + crowded.count));
    assert_memory_equal(&before.objects, &after.objects, sizeof(before.objects));
    assert_in_range(after.heap, 0, before.heap + HEAP_SLACK);
    assert_in_range(median(crowded.recovered, crowded.count), 0, longest(median(calm.recovered, calm.count)));
}

/* Of a test that failed: it must not knock where nobody is any more. */
static int leave(void **state)
{
    if (crowd.is_here) {
        crowd_goes();
    }
    return glue_teardown(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_thousand_strangers, glue_setup, leave),
};

int glue_strangers(void)
{
    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
