/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A card that takes long over a command, whatever command it is, costs the other rail nothing: no
 * command is given under the control lock, on UCX's async thread, or where progress waits for it.
 */

#include "glue_tests.h"

#define HANG_MS 1500
#define WITHIN  3 /* exchanges on the other rail while it hangs, at least */

static const struct {
    enum fake_call call;
    const char    *name;
} calls[] = {
    {FAKE_CALL_RC_FENCE, "stop a queue pair"},
    {FAKE_CALL_EXPECTED_PSN, "ask for its packet number"},
    {FAKE_CALL_RC_DESTROY, "destroy it"},
    {FAKE_CALL_RC_CREATE, "create it"},
    {FAKE_CALL_RC_CONNECT, "connect it"},
    {FAKE_CALL_UD_RECYCLE, "bring the control port up again"},
    {FAKE_CALL_AH_CREATE, "find the way to a peer"},
    {FAKE_CALL_AH_DESTROY, "let go of it"},
    {FAKE_CALL_PORT_QUERY, "look at the port"},
    {FAKE_CALL_GID_QUERY, "look for an address"},
};

/* Exchanges over the other rail that began and ended while the command hung. */
static unsigned exchange(enum fake_call call, unsigned count)
{
    unsigned within = 0;
    int      before;

    while (count-- > 0) {
        before = fake_hangs(call);
        am_exchange(0, 2);
        within += before && fake_hangs(call);
    }
    return within;
}

/* The standby's rail fails and comes back while one of its commands hangs; the active one goes on. */
static void hang_once(unsigned i)
{
    enum fake_call call   = calls[i].call;
    unsigned       within = 0;
    uint64_t       start;

    redundant_open(1100 + i, "");
    fake_hang(call, A1, HANG_MS, 1);
    fake_port(A1, 0);
    while (stats().standbys == 2 && fake_hung(call) == 0) {
        within += exchange(call, 1);
    }
    if (call == FAKE_CALL_GID_QUERY) {
        fake_readdress(A1, 77);
    }
    fake_port(A1, 1);
    start = now_ns();
    while (fake_hung(call) == 0) {
        within += exchange(call, 1);
        if (now_ns() - start > PATIENCE_S * 1000000000ull) {
            fail_msg("still not: the card was told to %s", calls[i].name);
        }
    }
    if (within < WITHIN) {
        fail_msg("%u exchanges while the card hung when it was told to %s", within, calls[i].name);
    }
    wait_standbys(2); /* and it is a rail again */
    assert_int_equal(stats().failovers, 0);
    assert_int_equal(stats().ep_errors, 0);
    fake_port(A0, 0);
    am_exchange(0, 10);
}

static void test_any_command_hangs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        hang_once(i);
        world_close();
        (void)glue_setup(NULL);
    }
}

/* ... or is refused, three times in a row. */
static void test_any_command_fails(void **state)
{
    static const enum fake_call refused[] = {FAKE_CALL_RC_FENCE,   FAKE_CALL_EXPECTED_PSN, FAKE_CALL_RC_CREATE,
                                             FAKE_CALL_RC_CONNECT, FAKE_CALL_AH_CREATE,    FAKE_CALL_UD_SEND};

    (void)state;
    for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        redundant_open(1150 + i, "DEAD_PEER=20s");
        fake_fail(refused[i], A0, -5, 3);
        fake_port(A0, 0);
        pump_until(stats().failovers == 2);
        fake_port(A0, 1);
        am_exchange(0, 20);
        wait_standbys(2);
        fake_port(A1, 0);
        am_exchange(0, 20);
        assert_int_equal(stats().ep_errors, 0);
        world_close();
        (void)glue_setup(NULL);
    }
}

static const struct CMUnitTest tests[] = {
    GLUE_TEST(test_any_command_hangs),
    GLUE_TEST(test_any_command_fails),
};

int glue_hang(void)
{
    return cmocka_run_group_tests_name("hang", tests, NULL, NULL);
}
