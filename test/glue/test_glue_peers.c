/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that are killed, come back, or never answer: nothing of them stays, and the
 * others do not wait for them. */

#include "glue_tests.h"

#include "uct_ha_ctl.h"

static struct uct_ha_iface *iface_of(int s)
{
    return uct_ha_iface(world.side[s].iface);
}

static unsigned length_of(const ucs_list_link_t *list)
{
    unsigned               length = 0;
    const ucs_list_link_t *link;

    for (link = list->next; link != list; link = link->next) {
        length++;
    }
    return length;
}

/* Side 0 ends as by SIGKILL: nothing that it says at its end arrives. */
static void kill_side_0(void)
{
    fake_port_silently(A0, 0);
    fake_port_silently(A1, 0);
    ep_close(0, 0);
    side_close(0);
    fake_port_silently(A0, 1);
    fake_port_silently(A1, 1);
    world.side[0].sent[0] = world.side[1].received[0] = 0;
}

/* ---- what stays behind --------------------------------------------------------------- */

#define MORTAL "CONTROL=ud HEARTBEAT=20ms DEAD_PEER=300ms"

/* A server whose clients only send, and are killed: it has no endpoint that would tell. */
static void test_killed_clients(void **state)
{
    (void)state;
    world_open(200, MORTAL);
    side_close(0);
    for (unsigned round = 0; round < 4; round++) {
        side_open(0, MORTAL);
        ep_open(0, 0);
        am_post(0, 0, 10);
        pump_until(am_all_here());
        flush_all_of(0);
        kill_side_0();
        pump_until(fake_objects().rcs == 0);
        assert_int_equal(length_of(&iface_of(1)->ctl.conns), 0);
        assert_int_equal(stats().pairs, 0);
    }
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_killed_clients),
};

int glue_peers(void)
{
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
