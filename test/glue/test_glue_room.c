/* SPDX-License-Identifier: BSD-3-Clause */

/* Places in completion queues, and who is told when something has to be done. */

#include "glue_tests.h"

#include "uct/ep.h"
#include "uct/iface.h"

#include <poll.h>
#include <unistd.h>

static struct uct_ha_lanes *lanes_of(int s)
{
    return &uct_ha_iface(world.side[s].iface)->lanes;
}

/* What a lane that is gone had under way may complete yet: its places stay until its queue pair is
 * destroyed and the queue was found empty. */
static void test_places_of_a_parked_lane(void **state)
{
    struct uct_ha_room room = {.log_len = 10, .depth = 100};
    unsigned           free_at_first, places;

    (void)state;
    assert_int_equal(uct_ha_room_add_lane(&room, 20, 1), 0);
    free_at_first = room.sends_max - room.sends;
    room.sends    = 7;
    places        = uct_ha_room_park(&room, 20, 7, 1);
    assert_int_equal(room.sends, 0);
    assert_int_equal(room.sends_max, free_at_first - 7); /* the same as before it was parked */
    assert_int_equal(uct_ha_room_add_lane(&room, 70, 1), -EAGAIN);
    uct_ha_room_release(&room, places);
    assert_int_equal(room.sends_max, 100);
    assert_int_equal(uct_ha_room_add_lane(&room, 70, 1), 0);
}

/* Receives that all lanes share have places of their own. Who makes some does not see how much is under way, unless he
 * is progress: then all that may ever be counts. They get half of what the device allows, or what the queue has when
 * the device would not make it deeper. */
static void test_places_of_shared_receives(void **state)
{
    struct uct_ha_room room = {.log_len = 10, .depth = 100};

    (void)state;
    assert_int_equal(uct_ha_room_add_lane(&room, 0, 1), 0);
    assert_int_equal(uct_ha_room_add_lane(&room, 0, 1), 0);
    assert_int_equal(room.reserved, 4);
    assert_int_equal(uct_ha_room_spare(&room, 0), 100 - 4 - 2 * 10);
    assert_int_equal(uct_ha_room_spare(&room, 1), 100 - 4 - 10);
    room.sends = 15;
    assert_int_equal(uct_ha_room_spare(&room, 1), 100 - 4 - 15);
    uct_ha_room_take_receives(&room, 50);
    assert_int_equal(room.reserved, 54);
    assert_int_equal(room.sends_max, 46);
    assert_int_equal(uct_ha_room_spare(&room, 0), 26);
    uct_ha_room_take_receives(&room, 40);
    assert_int_equal(uct_ha_room_spare(&room, 0), 0);
    assert_int_equal(uct_ha_room_spare(&room, 1), 0);
    uct_ha_room_deepened(&room, 0);
    assert_int_equal(uct_ha_room_could_spare(&room), 0);
    uct_ha_room_deepened(&room, 200);
    assert_int_equal(uct_ha_room_spare(&room, 1), 200 - 94 - 15);
    uct_ha_room_deepened(&room, 0);
    assert_int_equal(uct_ha_room_could_spare(&room), 200 - 94 - 10);
}

/* The queue of a standby is looked at rarely, but each time before places in it are given away. */
static void test_places_are_given_from_an_empty_queue(void **state)
{
    struct uct_ha_room *room;

    (void)state;
    redundant_open(960, "HEARTBEAT=0");
    flush_all();
    room = &lanes_of(0)->room[1];
    for (int i = 0; i < 4; i++) {
        unsigned reserved = room->reserved;
        uint64_t looks    = fake_cq_polls(A1);

        room->reserved += 5; /* of a lane that is parked, */
        room->parked += 5;
        uct_ha_room_later(room, 5); /* and destroyed */
        pump_until(room->reserved == reserved);
        assert_true(fake_cq_polls(A1) > looks);
    }
}

static void fall_asleep(struct pollfd *pfd)
{
    ucs_status_t status;
    unsigned     n = 0;

    do {
        pump();
        status = uct_iface_event_arm(world.side[0].iface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        assert_true(n++ < 1000000);
    } while (status != UCS_OK || poll(pfd, 1, 0) != 0);
}

/* The control part has something for progress to do, and nothing completes that would wake its owner. Who was woken can
 * sleep again. */
static void test_owner_is_woken(void **state)
{
    struct pollfd pfd = {.events = POLLIN};

    (void)state;
    redundant_open(961, "HEARTBEAT=0");
    flush_all();
    fake_set(A0, FAKE_LOSE_FLUSHES, FAKE_FLUSHES_NONE);
    assert_int_equal(uct_iface_event_fd_get(world.side[0].iface, &pfd.fd), UCS_OK);
    fall_asleep(&pfd);
    fake_port(A0, 0);
    assert_int_equal(poll(&pfd, 1, (int)PATIENCE_S * 1000), 1);
    fake_set(A0, FAKE_LOSE_FLUSHES, 0);
    am_exchange(0, 20);
    redundant_check();
    fall_asleep(&pfd);
}

/* Who leaves says so again and again, for three seconds, unless he is answered. */
static void test_good_bye_is_answered(void **state)
{
    uint64_t said = UINT64_MAX;

    (void)state;
    for (int i = 0; i < 5 && said > 200; i++) { /* a machine that is busy is late with it now and then */
        world_open(962, "HEARTBEAT=0");
        ep_open(0, 0);
        ep_open(1, 0);
        am_exchange(0, 10);
        flush_all();
        said = stats().ctl_tx;
        side_leave(1);
        said = stats().ctl_tx - said;
        world_close();
        (void)glue_setup(NULL);
    }
    assert_true(said <= 200);
}

#define MANY 300 /* endpoints; of so many the last one begins with a ring of 64 */
#define HALF 32

static uint32_t ring_length(int i)
{
    return uct_ha_ep_flow(world.side[0].ep[i])->tx.log.mask + 1;
}

/* Half a ring at a time, so slowly that those that tell are heard; the others fill no ring. */
static void put_slowly(int i, unsigned halves)
{
    while (halves-- > 0) {
        uint64_t start = now_ns(), silent = fake_counts().silent;

        for (unsigned k = 0; k < HALF; k++) {
            assert_int_equal(rma_put_one(0, i, SHORT, NULL), UCS_OK);
        }
        while (fake_counts().silent < silent + HALF - 1) { /* all but the one that tells, perhaps the last */
            keep_patience(start);
        }
        usleep(5000);
        pump();
    }
}

/* With many connections the ring of operations begins short, and stays so while little is under way at a time. It grows
 * to what TX_QUEUE_LEN says with operations in it, and a failover finds them all. */
static void test_ring_grows(void **state)
{
    unsigned posted = 0;

    (void)state;
    redundant_open(963, "HEARTBEAT=0 TX_QUEUE_LEN=256");
    for (int i = 1; i < MANY; i++) {
        ep_open(0, i);
    }
    assert_int_equal(ring_length(0), 256);
    assert_int_equal(ring_length(MANY - 1), 2 * HALF);
    rma_put(0, MANY - 1, 1);
    wait_standbys(2 * MANY);
    flush_all_of(0);
    put_slowly(MANY - 1, 5);
    assert_int_equal(ring_length(MANY - 1), 2 * HALF);
    flush_all_of(0);
    rma_check(0);
    while (rma_put_one(0, MANY - 1, (enum how)(posted % HOWS), NULL) == UCS_OK) {
        posted++;
    }
    assert_int_equal(posted, 256);
    assert_int_equal(ring_length(MANY - 1), 256);
    fake_port(A0, 0);
    flush_all_of(0);
    rma_check(0);
    assert_true(stats().failovers > 0);
    rma_put(0, MANY - 1, 300);
    redundant_check();
}

/* A limit of operations that nobody looks at while only messages go: left behind by 2^31 of them it would be ahead
 * again, and the next PUT would ask for no room. */
static void test_limits_keep_up(void **state)
{
    const struct uct_ha_flow *flow;

    (void)state;
    redundant_open(964, "RX_QUEUE_LEN=16");
    rma_put(0, 0, 1);
    flush_all();
    flow = uct_ha_ep_flow(world.side[0].ep[0]);
    for (int i = 0; i < 200; i++) {
        am_exchange(0, 4);
        assert_in_range(abs((int32_t)(flow->go.limit[0] - flow->tx.log.tail)), 0, flow->tx.log.mask + 1);
        assert_in_range(abs((int32_t)(flow->go.limit[1] - flow->tx.log.tail)), 0, flow->tx.log.mask + 1);
    }
    redundant_check();
}

static unsigned late_sent, late_tried;

static ucs_status_t send_late(uct_pending_req_t *req)
{
    ucs_status_t status = am_send(0, 0, SHORT, 8, NULL);

    (void)req;
    late_tried++;
    late_sent += status == UCS_OK;
    return status;
}

/* Messages have used up their credits, and one waits; a PUT needs none, and waits all the same, also after that one's
 * turn, which it could not take. */
static void test_puts_wait_behind_messages(void **state)
{
    static uct_pending_req_t late = {.func = send_late};

    (void)state;
    redundant_open(965, "RX_QUEUE_LEN=16");
    rma_put(0, 0, 1);
    flush_all();
    late_sent = late_tried = 0;
    while (am_send(0, 0, SHORT, 8, NULL) == UCS_OK) {
    }
    assert_int_equal(uct_ep_pending_add(world.side[0].ep[0], &late, 0), UCS_OK);
    assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_ERR_NO_RESOURCE);
    while (late_tried < 3) {
        (void)uct_worker_progress(world.side[0].worker);
    }
    assert_int_equal(late_sent, 0);
    assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_ERR_NO_RESOURCE);
    pump_until(late_sent == 1);
    assert_int_equal(rma_put_one(0, 0, SHORT, NULL), UCS_OK);
    redundant_check();
}

int glue_room(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_of_a_parked_lane),
        cmocka_unit_test(test_places_of_shared_receives),
        GLUE_TEST(test_places_are_given_from_an_empty_queue),
        GLUE_TEST(test_owner_is_woken),
        GLUE_TEST(test_good_bye_is_answered),
        GLUE_TEST(test_ring_grows),
        GLUE_TEST(test_limits_keep_up),
        GLUE_TEST(test_puts_wait_behind_messages),
    };

    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
