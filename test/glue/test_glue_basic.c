/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages, flow control, waiting: no misfortune. */

#include "glue_tests.h"

#include <ucs/datastruct/string_buffer.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_messages_both_ways(void **state)
{
    (void)state;
    world_open(1, "");
    memory_open(1 << 20);
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 500);
    flush_all();
    assert_int_equal(stats().pairs, 2);
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().connecting + stats().accepting, 0);
    assert_int_equal(stats().connects + stats().accepts, 2);
    assert_int_equal(stats().connect_failures + stats().accept_failures, 0);
    assert_true(stats().connects == 0 || stats().connect_ns_total > 0);
}

/* Both sides connect at the same time: the endpoints meet in pairs. */
static void test_many_endpoints(void **state)
{
    (void)state;
    world_open(2, "");
    for (int i = 0; i < EPS_MAX; i++) {
        ep_open(i % 2, i);
        ep_open(!(i % 2), i);
    }
    for (int i = 0; i < EPS_MAX; i++) {
        am_exchange(i, 40);
    }
    flush_all();
    wait_standbys(2 * EPS_MAX);
}

static void test_flush_completion(void **state)
{
    struct counted message, flush;

    (void)state;
    world_open(3, "");
    memory_open(1 << 20);
    ep_open(0, 0);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, count_completion(&flush)), UCS_OK);
    assert_int_equal(am_send(0, 0, ZCOPY, 100, count_completion(&message)), UCS_OK);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, &flush.comp), UCS_INPROGRESS);
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_INPROGRESS);
    pump_until(flush.called == 1);
    assert_int_equal(message.called, 1);
    assert_int_equal(flush.status, UCS_OK);
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, NULL), UCS_OK);
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_OK);
    pump_until(am_all_here());
}

/* How many messages go to a receiver that does not poll; all of them are acknowledged. */
static unsigned send_without_credit(void)
{
    unsigned sent = 0;

    for (unsigned idle = 0; idle < 2000; idle++) {
        if (am_send(0, 0, SHORT, 20, NULL) == UCS_OK) {
            sent++;
            idle = 0;
        }
        (void)uct_worker_progress(world.side[0].worker);
    }
    return sent;
}

static unsigned send_to_deaf_ears(void)
{
    unsigned sent = send_without_credit();

    pump_until(am_all_here());
    return sent;
}

/* A receiver that does not poll takes what it has promised, and no more; it
 * promises more to a peer that keeps it busy. */
static void test_credits(void **state)
{
    uint64_t few;

    (void)state;
    world_open(4, "RX_QUEUE_INIT=8 RX_QUEUE_LEN=64 TX_QUEUE_LEN=128");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 3);
    wait_standbys(2); /* they have receives of their own */
    few = stats().rx_bytes;
    assert_in_range(send_to_deaf_ears(), 4, 8);
    assert_int_equal(stats().rx_bytes, few);

    am_post(0, 0, 1000);
    pump_until(am_all_here());
    assert_in_range(send_to_deaf_ears(), 33, 64);
    assert_true(stats().rx_bytes > few);
    assert_int_equal(fake_counts().rnr, 0);
    am_exchange(0, 200);
}

/* The window has grown on the standby's lane as well: after a failover nobody meets a receiver without buffers. */
static void test_credits_after_failover(void **state)
{
    uint64_t few;

    (void)state;
    world_open(4, "RX_QUEUE_INIT=8 RX_QUEUE_LEN=64 TX_QUEUE_LEN=128 SEG_SIZE=8k");
    ep_open(0, 0);
    ep_open(1, 0);
    wait_standbys(2);
    few = stats().rx_bytes;
    am_post(0, 0, 1000);
    pump_until(am_all_here());
    assert_in_range(send_to_deaf_ears(), 33, 64);
    assert_int_equal(stats().rx_bytes - few, 2 * (64 - 8 + 17 - 3) * 8192); /* on both lanes; and longer chains */
    fake_port(A0, 0);
    pump_until(stats().failovers == 2);
    assert_in_range(send_to_deaf_ears(), 64 - 31 - 15, 64); /* not told yet: below half, and below a chain */
    assert_int_equal(fake_counts().rnr, 0);
}

/* Where the memory for that is limited, everybody keeps what he has. */
static void test_credits_without_memory(void **state)
{
    uint64_t few;

    (void)state;
    world_open(4, "RX_QUEUE_INIT=8 RX_QUEUE_LEN=64 TX_QUEUE_LEN=128 RX_MEM=100k");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 3);
    wait_standbys(2); /* they have receives of their own */
    few = stats().rx_bytes;
    am_post(0, 0, 1000);
    pump_until(am_all_here());
    assert_in_range(send_to_deaf_ears(), 4, 8);
    assert_int_equal(stats().rx_bytes, few);
}

/* Both wait for credits of the other one. */
static void test_credits_both_ways(void **state)
{
    int room = 1;

    (void)state;
    world_open(5, "RX_QUEUE_LEN=16 TX_QUEUE_LEN=16");
    ep_open(0, 0);
    ep_open(1, 0);
    for (unsigned round = 0; round < 30; round++) {
        room = 1;
        while (room) {
            room = 0;
            for (int s = 0; s < 2; s++) {
                room |= am_send(s, 0, BCOPY, 64, NULL) == UCS_OK;
            }
        }
        pump_until(am_all_here());
    }
}

/* ---- requests that wait ----------------------------------------------------- */

#define REQUESTS 40

static struct request {
    uct_pending_req_t super;
    int               done, purged;
} requests[REQUESTS];

static ucs_status_t retry(uct_pending_req_t *super)
{
    struct request *request = (struct request *)(void *)super;
    ucs_status_t    status  = am_send(0, 0, SHORT, 8, NULL);

    if (status == UCS_OK) {
        request->done++;
    }
    return status;
}

static void on_purge(uct_pending_req_t *super, void *arg)
{
    struct request *request = (struct request *)(void *)super;

    request->purged++;
    ++*(unsigned *)arg;
}

static void fill_until_no_room(void)
{
    while (am_send(0, 0, SHORT, 8, NULL) == UCS_OK) {
    }
}

static void queue_requests(void)
{
    memset(requests, 0, sizeof(requests));
    for (int i = 0; i < REQUESTS; i++) {
        requests[i].super.func = retry;
        assert_int_equal(uct_ep_pending_add(world.side[0].ep[0], &requests[i].super, 0), UCS_OK);
    }
}

static void test_pending(void **state)
{
    unsigned halfway = 0;

    (void)state;
    world_open(6, "RX_QUEUE_LEN=16");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 1);
    requests[0].super.func = retry;
    assert_int_equal(uct_ep_pending_add(world.side[0].ep[0], &requests[0].super, 0), UCS_ERR_BUSY);
    fill_until_no_room();
    queue_requests();
    assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_ERR_NO_RESOURCE); /* not before them */
    while (!requests[REQUESTS - 1].done) {
        pump();
        if (requests[0].done && !requests[REQUESTS - 1].done) { /* nor when there was room for some */
            assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_ERR_NO_RESOURCE);
            halfway++;
        }
    }
    assert_true(halfway > 0);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(requests[i].done, 1);
    }
    pump_until(am_all_here());
    am_exchange(0, 10);
}

static unsigned asked, overtook;

/* Who receives a message answers it at once: credits have come with it, and those who wait have not had their turn. */
static ucs_status_t answer(void *arg, void *data, size_t length, unsigned flags)
{
    ucs_status_t status = am_received(arg, data, length, flags);

    if (!requests[REQUESTS - 1].done) {
        asked++;
        overtook += am_send(0, 0, SHORT, 8, NULL) == UCS_OK;
    }
    return status;
}

static void test_pending_is_not_overtaken(void **state)
{
    (void)state;
    world_open(6, "RX_QUEUE_LEN=16");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 1);
    assert_int_equal(uct_iface_set_am_handler(world.side[0].iface, AM_ID, answer, &world.side[0], 0), UCS_OK);
    fill_until_no_room();
    queue_requests();
    asked = overtook = 0;
    while (!requests[REQUESTS - 1].done) {
        assert_int_equal(am_send(0, 0, SHORT, 8, NULL), UCS_ERR_NO_RESOURCE);
        (void)am_send(1, 0, SHORT, 8, NULL);
        pump();
    }
    assert_true(asked > 0);
    assert_int_equal(overtook, 0);
    pump_until(am_all_here());
}

static struct counted behind; /* a flush that waits like any other request */

static ucs_status_t flush_again(uct_pending_req_t *super)
{
    ucs_status_t status = uct_ep_flush(world.side[0].ep[0], 0, count_completion(&behind));

    (void)super;
    behind.called += status == UCS_OK;
    return status == UCS_INPROGRESS ? UCS_OK : status;
}

/* UCP counts on it: what waits for room has gone out, and is over, when a flush that was asked for later ends. */
static void test_flush_waits_behind_requests(void **state)
{
    static uct_pending_req_t flush = {.func = flush_again};

    (void)state;
    world_open(12, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 1);
    fill_until_no_room();
    queue_requests();
    assert_int_equal(uct_ep_flush(world.side[0].ep[0], 0, NULL), UCS_ERR_NO_RESOURCE);
    assert_int_equal(uct_ep_pending_add(world.side[0].ep[0], &flush, 0), UCS_OK);
    behind.called = 0;
    while (behind.called == 0) {
        pump();
        assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL) == UCS_OK && requests[REQUESTS - 1].done == 0,
                         0);
    }
    assert_int_equal(requests[REQUESTS - 1].done, 1);
    pump_until(am_all_here());
    flush_all();
}

/* The peer has acknowledged all and takes no more: nothing is out, and all the same not all is done. */
static void test_flush_of_the_interface_waits_for_requests(void **state)
{
    (void)state;
    world_open(13, "RX_QUEUE_INIT=8 RX_QUEUE_LEN=64 TX_QUEUE_LEN=128");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 3);
    (void)send_without_credit();
    for (uint64_t start = now_ns();
         uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK && now_ns() - start < 20000000000ull;) {
        (void)uct_worker_progress(world.side[0].worker); /* the last ones are acknowledged when the net gets to it */
    }
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_OK);
    queue_requests();
    assert_int_equal(uct_iface_flush(world.side[0].iface, 0, NULL), UCS_INPROGRESS);
    flush_all();
    assert_int_equal(requests[REQUESTS - 1].done, 1);
    pump_until(am_all_here());
}

static void test_pending_purge(void **state)
{
    unsigned purged = 0;

    (void)state;
    world_open(7, "");
    ep_open(0, 0);
    fill_until_no_room();
    queue_requests();
    uct_ep_pending_purge(world.side[0].ep[0], on_purge, &purged);
    assert_int_equal(purged, REQUESTS);
    pump_until(am_all_here());
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(requests[i].done, 0);
    }
    am_post(0, 0, 1);
    pump_until(am_all_here());
}

/* ---- asleep on the event descriptor --------------------------------------------- */

/* Sleep as UCX does: progress, arm, and only then wait. A wake-up that is lost
 * shows as a time-out. Sides are bits. */
static void sleep_once(unsigned sides)
{
    struct pollfd pfd[2];
    nfds_t        count = 0;

    for (int s = 0; s < 2; s++) {
        struct side *side = &world.side[s];

        if (!(sides & 1u << s)) {
            continue;
        }
        if (uct_worker_progress(side->worker) != 0 ||
            uct_iface_event_arm(side->iface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV) != UCS_OK) {
            return;
        }
        pfd[count].events = POLLIN;
        assert_int_equal(uct_iface_event_fd_get(side->iface, &pfd[count++].fd), UCS_OK);
    }
    assert_true(poll(pfd, count, (int)PATIENCE_S * 1000) > 0);
}

/* An interface with nothing to do lets its owner sleep. */
static void wait_quiet(int s)
{
    uint64_t start = now_ns();
    unsigned quiet = 0;

    while (quiet < 3) {
        keep_patience(start);
        quiet = uct_worker_progress(world.side[s].worker) == 0 &&
                        uct_iface_event_arm(world.side[s].iface, UCT_EVENT_RECV) == UCS_OK
                    ? quiet + 1
                    : 0;
    }
}

static void test_sleep_for_messages(void **state)
{
    (void)state;
    world_open(8, "");
    ep_open(0, 0); /* side 1 has no endpoint of its own */
    am_post(0, 0, 1);
    pump_until(am_all_here());
    wait_standbys(2);
    for (unsigned i = 0; i < 100; i++) {
        wait_quiet(0);
        wait_quiet(1);
        assert_int_equal(am_send(0, 0, (enum how)(i % 2), 100, NULL), UCS_OK);
        while (!am_all_here()) {
            sleep_once(2);
        }
        while (uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK) {
            sleep_once(3); /* a false alarm takes both */
        }
    }
}

/* Nobody polls: every step of the failover has to wake them. */
static void test_sleep_through_failover(void **state)
{
    (void)state;
    world_open(9, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 5);
    wait_standbys(2);
    am_post(0, 0, 10);
    fake_port(A0, 0);
    am_post(0, 0, 10);
    while (!am_all_here() || uct_iface_flush(world.side[0].iface, 0, NULL) != UCS_OK) {
        sleep_once(3);
    }
    assert_int_equal(stats().ep_errors, 0);
}

static void ignore(const char *name, void *arg)
{
    (void)name;
    (void)arg;
}

/* The counters, as ucx_vfs would show them. */
static void test_counters_in_vfs(void **state)
{
    ucs_string_buffer_t text;
    unsigned long       shown;
    char                path[128];

    (void)state;
    world_open(19, "");
    ep_open(0, 0);
    ep_open(1, 0);
    am_exchange(0, 10);
    wait_standbys(2);
    snprintf(path, sizeof(path), "/uct/worker/%p/iface/%p/ha_process/pairs", (void *)world.side[0].worker,
             (void *)world.side[0].iface);
    ucs_string_buffer_init(&text);
    /* Files appear when their directory is looked at. */
    assert_int_equal(ucs_vfs_path_read_file(path, &text), UCS_ERR_NO_ELEM);
    *strstr(path, "/ha_process") = '\0';
    assert_int_equal(ucs_vfs_path_list_dir(path, ignore, NULL), UCS_OK);
    strcat(path, "/ha_process/pairs");
    assert_int_equal(ucs_vfs_path_read_file(path, &text), UCS_OK);
    shown = strtoul(ucs_string_buffer_cstr(&text), NULL, 10);
    assert_int_equal(shown, stats().pairs);
    ucs_string_buffer_cleanup(&text);
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_messages_both_ways),
    GLUE_TEST(test_many_endpoints),
    GLUE_TEST(test_flush_completion),
    GLUE_TEST(test_credits),
    GLUE_TEST(test_credits_after_failover),
    GLUE_TEST(test_credits_without_memory),
    GLUE_TEST(test_credits_both_ways),
    GLUE_TEST(test_pending),
    GLUE_TEST(test_pending_is_not_overtaken),
    GLUE_TEST(test_flush_waits_behind_requests),
    GLUE_TEST(test_flush_of_the_interface_waits_for_requests),
    GLUE_TEST(test_pending_purge),
    GLUE_TEST(test_sleep_for_messages),
    GLUE_TEST(test_sleep_through_failover),
    GLUE_TEST(test_counters_in_vfs),
};

int glue_basic(void)
{
    return cmocka_run_group_tests_name("basic", tests, NULL, NULL);
}
